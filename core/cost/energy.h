#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/time.h"

// How a device's readings become joules (notes: cost model 3.3). The hardware's accumulator is
// believed where it moves as hardware can; else power is integrated over that step; where neither
// says anything the idle floor is charged and the time is counted. What was posted is never taken
// back: an implausible step costs a step's accuracy, not the counter.
namespace bimetal::core::cost {

// One reading of a device. Values that a library answered with its "not available" number may be
// passed as they came: they are dropped and counted.
struct EnergySample {
  Millis monotonic;   // the node's clock that never steps, since boot
  TimePoint wall;     // the same instant in wall time; only places the joules
  std::string epoch;  // boot id and when the driver was loaded: what resets the accumulator
  std::optional<std::int64_t> counter_mj;  // accumulated millijoules since the epoch began
  std::optional<std::int64_t> power_mw;    // milliwatts
};

struct EnergyLimits {
  std::int64_t power_limit_mw = 0;  // of the device; above 1.2 times it nothing is believed
  std::int64_t idle_floor_mw = 0;   // from a validation run or configuration, never from the least
                                    // that was seen
  Millis gap_limit = Seconds(3);    // readings of power further apart say nothing about between
};

// Where the joules of a step come from, the best first.
enum class EnergySource { kMeasured, kIntegrated, kEstimated };
// "measured", "integrated", "estimated".
std::string_view EnergySourceName(EnergySource source);
// The worse of both: a sum is as good as its worst part.
EnergySource Worse(EnergySource a, EnergySource b);

enum class EnergyAnomaly { kBackward, kJump, kStuck, kSentinel, kGap };
inline constexpr int kEnergyAnomalies = 5;
// "backward", "jump", "stuck", "sentinel", "gap".
std::string_view EnergyAnomalyName(EnergyAnomaly anomaly);

// The joules of one device between two readings. [begin, end) in wall time.
struct EnergySpan {
  TimePoint begin, end;
  std::int64_t millijoules = 0;  // never negative
  EnergySource source = EnergySource::kMeasured;
  bool operator==(const EnergySpan&) const = default;
};

// What an energy meter carries from reading to reading. An agent writes it to its log.
struct EnergyState {
  std::optional<EnergySample> last;  // cleaned of what was not believed
  std::int64_t rest = 0;             // of integration, in 1/2000 mJ: nothing is lost to rounding
  std::int64_t measured_mj = 0, integrated_mj = 0, estimated_mj = 0;
  std::array<std::int64_t, kEnergyAnomalies> anomalies{};  // by EnergyAnomaly
  std::int64_t gap_ms = 0;     // time of which no reading tells, and after resets
  std::int64_t Total() const;  // stops at the end of int64
};

// Takes one reading in. Nothing for the first one and for readings that are not later than the
// last, so that reading a log again changes nothing. Pure.
//
// - Both readings have the counter, same epoch: its change counts if it is within 0 and
//   power limit * (elapsed + 0.2 s) * 1.2, over a gap of any length; it is stuck where it stands
//   still for a second or more while power is drawn.
// - Another epoch: the counter began again, so its new value counts, if the device can have drawn
//   it; the time between the readings is a gap, for what was drawn before the reset is unknown.
// - Else power by the trapezoid, within the gap limit.
// - Else the idle floor, and a gap.
std::optional<EnergySpan> Take(EnergyState& state, const EnergySample& sample,
                               const EnergyLimits& limits);

}  // namespace bimetal::core::cost
