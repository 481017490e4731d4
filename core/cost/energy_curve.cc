#include "core/cost/energy_curve.h"

#include <algorithm>
#include <tuple>

#include "core/cost/ratio.h"
#include "core/model/saturate.h"

namespace bimetal::core::cost {
namespace {

std::int64_t Length(TimePoint begin, TimePoint end) {
  return Saturate(static_cast<__int128>(end.ms) - begin.ms);
}

}  // namespace

Result<EnergyCurve> EnergyCurve::Make(std::vector<EnergySpan> spans) {
  const auto key = [](const EnergySpan& span) {
    return std::tie(span.begin, span.end, span.millijoules, span.source);
  };
  std::sort(spans.begin(), spans.end(),
            [&](const EnergySpan& a, const EnergySpan& b) { return key(a) < key(b); });
  spans.erase(std::unique(spans.begin(), spans.end()), spans.end());
  EnergyCurve curve;
  curve.joules_.push_back(0);
  curve.covered_ms_.push_back(0);
  for (const EnergySpan& span : spans) {
    if (span.end < span.begin || span.millijoules < 0 ||
        (!curve.spans_.empty() && span.begin < curve.spans_.back().end)) {
      return Fail(ErrorCode::kData,
                  "energy from " + FormatMicroTime(span.begin) + " on is told twice or backwards");
    }
    curve.spans_.push_back(span);
    curve.joules_.push_back(SaturatingAdd(curve.joules_.back(), span.millijoules));
    curve.covered_ms_.push_back(
        SaturatingAdd(curve.covered_ms_.back(), Length(span.begin, span.end)));
  }
  return curve;
}

std::size_t EnergyCurve::EndedBefore(TimePoint t) const {
  // A span without length at `t` itself is not before `t`.
  const auto first =
      std::partition_point(spans_.begin(), spans_.end(),
                           [&](const EnergySpan& span) { return span.end <= t && span.begin < t; });
  return static_cast<std::size_t>(first - spans_.begin());
}

std::int64_t EnergyCurve::Before(TimePoint t) const {
  const std::size_t ended = EndedBefore(t);
  if (ended == spans_.size() || spans_[ended].begin >= t) return joules_[ended];
  const EnergySpan& span = spans_[ended];
  return SaturatingAdd(joules_[ended],
                       MultiplyDivide(span.millijoules, Length(span.begin, t),
                                      std::max<std::int64_t>(1, Length(span.begin, span.end))));
}

std::int64_t EnergyCurve::CoveredBefore(TimePoint t) const {
  const std::size_t ended = EndedBefore(t);
  if (ended == spans_.size() || spans_[ended].begin >= t) return covered_ms_[ended];
  return SaturatingAdd(covered_ms_[ended], Length(spans_[ended].begin, t));
}

EnergySource EnergyCurve::Source(TimePoint begin, TimePoint end) const {
  EnergySource worst = EnergySource::kMeasured;
  for (std::size_t i = EndedBefore(begin); i < spans_.size() && spans_[i].begin < end; ++i) {
    if (spans_[i].end > begin || spans_[i].begin == begin) worst = Worse(worst, spans_[i].source);
  }
  return worst;
}

}  // namespace bimetal::core::cost
