#include "core/cost/running_total.h"

#include <algorithm>

#include "core/model/saturate.h"

namespace bimetal::core::cost {
namespace {

using Wide = __int128;

std::int64_t Elapsed(TimePoint from, TimePoint to) {
  return Saturate(static_cast<Wide>(to.ms) - from.ms);
}

TimePoint HourOf(TimePoint t) {
  const std::int64_t into = ((t.ms % kMsPerHour) + kMsPerHour) % kMsPerHour;
  return TimePoint{Saturate(static_cast<Wide>(t.ms) - into)};
}

NanoCurrency ForTime(NanoCurrency per_hour, std::int64_t ms) {
  return NanoCurrency{MultiplyDivide(per_hour.v, ms, kMsPerHour)};
}

NanoCurrency Less(NanoCurrency a, NanoCurrency b) { return NanoCurrency{a.v - b.v}; }

}  // namespace

Amounts RunningTotal::At(TimePoint t) const {
  Amounts total;
  total.device_ms = Elapsed(begin_, t);
  total.millijoules = energy_->Before(t) - energy_->Before(begin_);
  if (!rates_.missing.empty()) {
    total.unpriced_ms = total.device_ms;
    return total;
  }
  total.hardware = ForTime(rates_.hardware, total.device_ms);
  total.labour = ForTime(rates_.labour, total.device_ms);
  if (!rates_.metered) {
    total.energy = ForTime(rates_.energy, total.device_ms);
    return total;
  }
  // Time that no reading tells of is charged with the assumed power, or shown as unmetered.
  const std::int64_t untold =
      total.device_ms - (energy_->CoveredBefore(t) - energy_->CoveredBefore(begin_));
  if (rates_.energy.v == 0 && rates_.per_kilowatt_hour.v > 0) total.unmetered_ms = untold;
  total.energy.v =
      SaturatingAdd(EnergyCost(total.millijoules, rates_.pue_milli, rates_.per_kilowatt_hour).v,
                    ForTime(rates_.energy, untold).v);
  return total;
}

Amounts RunningTotal::Between(TimePoint from, TimePoint to) const {
  const Amounts before = At(from), after = At(to);
  return {.device_ms = after.device_ms - before.device_ms,
          .unpriced_ms = after.unpriced_ms - before.unpriced_ms,
          .unmetered_ms = after.unmetered_ms - before.unmetered_ms,
          .millijoules = after.millijoules - before.millijoules,
          .hardware = Less(after.hardware, before.hardware),
          .energy = Less(after.energy, before.energy),
          .labour = Less(after.labour, before.labour)};
}

void ForEachStretch(const DeviceTimeline& timeline, const PriceBook* book,
                    const EnergyCurve& energy,
                    const std::function<void(const RunningTotal&)>& take) {
  const PriceBook none;
  TimePoint at = HourOf(timeline.begin);
  while (at < timeline.end) {
    Rates rates = RatesAt(book == nullptr ? none : *book, timeline.kind, at);
    if (book == nullptr) rates.missing += ", because no price book applies";
    const TimePoint hour{Saturate(static_cast<Wide>(HourOf(at).ms) + kMsPerHour)};
    const TimePoint end = std::min(hour, rates.until.value_or(hour));
    if (end > timeline.begin) take(RunningTotal(at, end, rates, energy));
    if (end <= at) return;  // the end of representable time
    at = end;
  }
}

}  // namespace bimetal::core::cost
