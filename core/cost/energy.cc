#include "core/cost/energy.h"

#include <algorithm>

#include "core/cost/ratio.h"
#include "core/model/saturate.h"

namespace bimetal::core::cost {
namespace {

using Wide = __int128;

// 10^12 joules are 45 years at 700 W. The libraries' "not available" numbers (near 2^63, and 2^47
// for DCGM's floating-point values) are dropped by name or by this.
constexpr std::int64_t kMaxCounterMj = 1'000'000'000'000'000;
constexpr std::int64_t kBlank = 140'737'488'355'328;
// NVML's power is an average over a second, AMD's an instant: bursts above the limit are real,
// twice the limit is not.
constexpr std::int64_t kPowerCeiling = 2;
constexpr std::int64_t kStuckAfterMs = 1000;
constexpr std::int64_t kSlackMs = 200;

void Note(EnergyState& state, EnergyAnomaly anomaly) {
  ++state.anomalies[static_cast<std::size_t>(anomaly)];
}

// The reading without what no device can mean by it.
EnergySample Cleaned(EnergyState& state, EnergySample sample, const EnergyLimits& limits) {
  bool dropped = false;
  if (auto& counter = sample.counter_mj;
      counter && (*counter < 0 || *counter >= kMaxCounterMj || *counter == kBlank)) {
    counter.reset();
    dropped = true;
  }
  const Wide ceiling = static_cast<Wide>(limits.power_limit_mw) * kPowerCeiling;
  if (auto& power = sample.power_mw; power && (*power < 0 || *power > ceiling)) {
    power.reset();
    dropped = true;
  }
  if (dropped) Note(state, EnergyAnomaly::kSentinel);
  return sample;
}

// Whether a device of this limit can have drawn so much: limit * (elapsed + 0.2 s) * 1.2.
bool IsPossible(std::int64_t millijoules, std::int64_t elapsed_ms, const EnergyLimits& limits) {
  const Wide micro = static_cast<Wide>(limits.power_limit_mw) *
                     (static_cast<Wide>(elapsed_ms) + kSlackMs);  // mW x ms
  return static_cast<Wide>(millijoules) * 1000 * 5 <= micro * 6;
}

bool DrawsPower(const EnergySample& a, const EnergySample& b) {
  return a.power_mw.value_or(0) > 0 && b.power_mw.value_or(0) > 0;
}

// The change of the counter, where it is to be believed.
std::optional<std::int64_t> Measured(EnergyState& state, const EnergySample& from,
                                     const EnergySample& to, std::int64_t elapsed_ms,
                                     const EnergyLimits& limits) {
  if (!from.counter_mj || !to.counter_mj) return std::nullopt;
  const std::int64_t change = *to.counter_mj - *from.counter_mj;
  if (change < 0) {
    Note(state, EnergyAnomaly::kBackward);
  } else if (!IsPossible(change, elapsed_ms, limits)) {
    Note(state, EnergyAnomaly::kJump);
  } else if (change == 0 && elapsed_ms >= kStuckAfterMs && DrawsPower(from, to)) {
    Note(state, EnergyAnomaly::kStuck);
  } else {
    return change;
  }
  return std::nullopt;
}

// Sum of two powers in mW over a time in ms, halved: the remainder stays in the state.
std::int64_t Area(EnergyState& state, std::int64_t both_mw, std::int64_t elapsed_ms) {
  const Wide area = static_cast<Wide>(both_mw) * elapsed_ms + state.rest;
  state.rest = static_cast<std::int64_t>(area % 2000);
  return Saturate(area / 2000);
}

// The joules of a step that the counter does not tell.
EnergySpan Integrated(EnergyState& state, const EnergySample& from, const EnergySample& to,
                      std::int64_t elapsed_ms, const EnergyLimits& limits) {
  EnergySpan span;
  if (from.power_mw && to.power_mw && elapsed_ms <= limits.gap_limit.v) {
    span.source = EnergySource::kIntegrated;
    span.millijoules = Area(state, *from.power_mw + *to.power_mw, elapsed_ms);
    return span;
  }
  Note(state, EnergyAnomaly::kGap);
  state.gap_ms = SaturatingAdd(state.gap_ms, elapsed_ms);
  span.source = EnergySource::kEstimated;
  span.millijoules = Area(state, SaturatingMultiply(limits.idle_floor_mw, 2), elapsed_ms);
  return span;
}

// The joules since the last reading of an epoch that is over.
EnergySpan AfterReset(EnergyState& state, const EnergySample& from, const EnergySample& to,
                      const EnergyLimits& limits) {
  const std::int64_t elapsed_ms =
      std::max<std::int64_t>(0, Saturate(static_cast<Wide>(to.wall.ms) - from.wall.ms));
  if (to.counter_mj && IsPossible(*to.counter_mj, elapsed_ms, limits)) {
    state.gap_ms = SaturatingAdd(state.gap_ms, elapsed_ms);
    Note(state, EnergyAnomaly::kGap);
    return {.begin = {}, .end = {}, .millijoules = *to.counter_mj};
  }
  // A counter that outlived the driver goes on where it was.
  if (from.counter_mj && to.counter_mj && *to.counter_mj >= *from.counter_mj &&
      IsPossible(*to.counter_mj - *from.counter_mj, elapsed_ms, limits)) {
    return {.begin = {}, .end = {}, .millijoules = *to.counter_mj - *from.counter_mj};
  }
  if (to.counter_mj) Note(state, EnergyAnomaly::kJump);
  return Integrated(state, from, to, elapsed_ms, limits);
}

}  // namespace

std::string_view EnergySourceName(EnergySource source) {
  switch (source) {
    case EnergySource::kMeasured:
      return "measured";
    case EnergySource::kIntegrated:
      return "integrated";
    case EnergySource::kEstimated:
      break;
  }
  return "estimated";
}

std::int64_t EnergyState::Total() const {
  return SaturatingAdd(SaturatingAdd(measured_mj, integrated_mj), estimated_mj);
}

EnergySource Worse(EnergySource a, EnergySource b) { return std::max(a, b); }

std::string_view EnergyAnomalyName(EnergyAnomaly anomaly) {
  switch (anomaly) {
    case EnergyAnomaly::kBackward:
      return "backward";
    case EnergyAnomaly::kJump:
      return "jump";
    case EnergyAnomaly::kStuck:
      return "stuck";
    case EnergyAnomaly::kSentinel:
      return "sentinel";
    case EnergyAnomaly::kGap:
      break;
  }
  return "gap";
}

std::optional<EnergySpan> Take(EnergyState& state, const EnergySample& sample,
                               const EnergyLimits& limits) {
  const bool same = state.last && state.last->epoch == sample.epoch;
  if (same && sample.monotonic <= state.last->monotonic) return std::nullopt;
  EnergySample now = Cleaned(state, sample, limits);
  if (!state.last) {
    state.last = std::move(now);
    return std::nullopt;
  }
  const EnergySample& last = *state.last;
  now.wall = std::max(now.wall, last.wall);  // a clock set back places nothing before the past
  EnergySpan span;
  if (same) {
    const std::int64_t elapsed_ms = Saturate(static_cast<Wide>(now.monotonic.v) - last.monotonic.v);
    if (const auto change = Measured(state, last, now, elapsed_ms, limits)) {
      span.millijoules = *change;
    } else {
      span = Integrated(state, last, now, elapsed_ms, limits);
    }
  } else {
    span = AfterReset(state, last, now, limits);
  }
  span.begin = last.wall;
  span.end = now.wall;
  std::int64_t& sum = span.source == EnergySource::kMeasured     ? state.measured_mj
                      : span.source == EnergySource::kIntegrated ? state.integrated_mj
                                                                 : state.estimated_mj;
  sum = SaturatingAdd(sum, span.millijoules);
  state.last = std::move(now);
  return span;
}

}  // namespace bimetal::core::cost
