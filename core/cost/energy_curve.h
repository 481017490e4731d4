#pragma once

#include <vector>

#include "core/base/result.h"
#include "core/cost/energy.h"

namespace bimetal::core::cost {

// The joules of a device as a function of time: power is even within a span. Immutable.
class EnergyCurve {
 public:
  // The order of spans is of no meaning, and the same span twice counts once. Error kData where
  // spans overlap.
  static Result<EnergyCurve> Make(std::vector<EnergySpan> spans);

  // Millijoules before `t`, rounded half to even; never falls. A span without length is at its
  // instant, which is before every later one.
  std::int64_t Before(TimePoint t) const;
  // Milliseconds before `t` of which a span tells.
  std::int64_t CoveredBefore(TimePoint t) const;
  // The worst source of spans that reach into [begin, end); kMeasured where none does.
  EnergySource Source(TimePoint begin, TimePoint end) const;

 private:
  // Spans up to the first that has not ended before `t`, as an index.
  std::size_t EndedBefore(TimePoint t) const;

  std::vector<EnergySpan> spans_;     // by begin, then end
  std::vector<std::int64_t> joules_;  // mJ of the first i spans
  std::vector<std::int64_t> covered_ms_;
};

}  // namespace bimetal::core::cost
