#include "core/cost/unit.h"

#include <algorithm>
#include <limits>

#include "core/cost/ratio.h"
#include "core/model/saturate.h"

namespace bimetal::core::cost {
namespace {

using Wide = __int128;

// The part of a row's amounts after `from`.
Amounts PartAfter(const Row& row, TimePoint from) {
  if (from <= row.begin) return row.amounts;
  const std::int64_t part = Saturate(static_cast<Wide>(row.end.ms) - from.ms);
  const std::int64_t whole = Saturate(static_cast<Wide>(row.end.ms) - row.begin.ms);
  if (part <= 0) return {};
  const auto of = [&](std::int64_t value) { return MultiplyDivide(value, part, whole); };
  const Amounts& all = row.amounts;
  return {.device_ms = of(all.device_ms),
          .unpriced_ms = of(all.unpriced_ms),
          .unmetered_ms = of(all.unmetered_ms),
          .millijoules = of(all.millijoules),
          .hardware = {of(all.hardware.v)},
          .energy = {of(all.energy.v)},
          .labour = {of(all.labour.v)}};
}

}  // namespace

std::int64_t Count(UnitCounts& counts, const UnitReading& reading, bool born) {
  if (reading.value < 0) return 0;
  const auto [last, first] = counts.last.try_emplace({reading.replica, reading.engine});
  if (!first && reading.at <= last->second.at) return 0;
  std::int64_t added = first && !born ? 0 : reading.value;
  if (!first) {
    if (reading.value >= last->second.value) {
      added = reading.value - last->second.value;
    } else {
      ++counts.resets;
    }
  }
  last->second = {reading.at, reading.value};
  counts.total = SaturatingAdd(counts.total, added);
  return added;
}

ActiveCost ActivePart(AllocationCost cost, Millis active, Millis allocated) {
  if (allocated.v <= 0) return {};
  const std::int64_t part = std::clamp<std::int64_t>(active.v, 0, allocated.v);
  return {NanoCurrency{MultiplyDivide(cost.v.v, part, allocated.v)}};
}

NanoCurrency PriceOfWaiting(AllocationCost cost, ActiveCost active) {
  return NanoCurrency{Saturate(static_cast<Wide>(cost.v.v) - active.v.v)};
}

std::optional<NanoCurrency> CostPer(NanoCurrency cost, std::int64_t units, std::int64_t per) {
  if (units <= 0 || per <= 0) return std::nullopt;
  return NanoCurrency{MultiplyDivide(cost.v, per, units)};
}

Amounts LostWork(const std::vector<Row>& rows, const Uid& job, std::int64_t attempt,
                 std::optional<TimePoint> checkpoint) {
  Amounts lost;
  for (const Row& row : rows) {
    const bool counts = row.state == DeviceState::kAllocated && row.job == job &&
                        row.attempt == attempt && row.phase == Phase::kRunning;
    if (counts) lost.Add(PartAfter(row, checkpoint.value_or(row.begin)));
  }
  return lost;
}

NanoCurrency WorkloadLabourCost(const WorkloadLabour& labour, std::int64_t units, Millis time) {
  const std::int64_t made = MultiplyDivide(labour.total.v, std::max<std::int64_t>(0, units),
                                           std::max<std::int64_t>(1, labour.planned_units));
  const std::int64_t upkeep =
      MultiplyDivide(labour.upkeep_per_month.v, std::max<std::int64_t>(0, time.v), kMsPerMonth);
  return NanoCurrency{SaturatingAdd(made, upkeep)};
}

std::optional<std::int64_t> BreakEvenUnits(NanoCurrency porting, NanoCurrency incumbent,
                                           NanoCurrency challenger, std::int64_t per) {
  const Wide saved = static_cast<Wide>(incumbent.v) - challenger.v;
  if (saved <= 0 || per <= 0 || porting.v < 0) return std::nullopt;
  const Wide cost = static_cast<Wide>(porting.v) * per;
  const Wide units = cost / saved + (cost % saved == 0 ? 0 : 1);
  if (units > std::numeric_limits<std::int64_t>::max()) return std::nullopt;
  return static_cast<std::int64_t>(units);
}

}  // namespace bimetal::core::cost
