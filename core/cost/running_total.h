#pragma once

#include <functional>

#include "core/cost/account.h"
#include "core/cost/energy_curve.h"

namespace bimetal::core::cost {

// What a whole device has cost since an hour or a set of rates began, as a function of time. Keeps
// pointers to what it is made of.
class RunningTotal {
 public:
  // Nothing changes from `begin` until `end`, which is within an hour.
  RunningTotal(TimePoint begin, TimePoint end, const Rates& rates, const EnergyCurve& energy)
      : begin_(begin), end_(end), rates_(rates), energy_(&energy) {}

  TimePoint begin() const { return begin_; }
  TimePoint end() const { return end_; }
  const Rates& rates() const { return rates_; }

  // Of [from, to), the difference of two running totals. REQUIRES: begin <= from <= to <= end.
  Amounts Between(TimePoint from, TimePoint to) const;

 private:
  Amounts At(TimePoint t) const;

  TimePoint begin_, end_;
  Rates rates_;
  const EnergyCurve* energy_;
};

// Calls `take` for every stretch of [begin, end), cut at hours and where rates change. The first
// begins with its hour or its rates, which may be before `begin`.
void ForEachStretch(const DeviceTimeline& timeline, const PriceBook* book,
                    const EnergyCurve& energy,
                    const std::function<void(const RunningTotal&)>& take);

}  // namespace bimetal::core::cost
