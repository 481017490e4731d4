#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "tests/bench/place/policy.h"
#include "tests/bench/place/trace.h"

// The two protocols of docs/explanation/placement.md.
namespace bimetal::place {

// Pods arrive in random order until `kLastLoad` % of the devices were asked for; nothing leaves,
// nothing is retried. Mean allocation in % by arrived load in whole %.
inline constexpr std::int64_t kLastLoad = 130;
Result<std::map<int, double>> ReplayInflow(const Trace& trace, PolicyOptions options,
                                           std::uint64_t seed);

// Pods arrive and leave: Poisson arrivals at `load` of the capacity by device time, traced run
// times within a minute and a day, what does not fit is lost. Of the second half of the arrivals:
struct ChurnFigures {
  double allocated = 0;   // % of the devices, mean over time
  double lost_time = 0;   // % of the device time asked for
  double lost_multi = 0;  // % of the pods with two or more devices
};
Result<ChurnFigures> ReplayChurn(const Trace& trace, PolicyOptions options, std::uint64_t seed,
                                 double load, std::int64_t arrivals);

// The pods in the order in which they arrive, up to `kLastLoad` %.
std::vector<TracePod> Arrivals(const Trace& trace, std::uint64_t seed);
// The nodes under names of which the order is random.
std::vector<core::placement::EngineNode> Renamed(std::vector<core::placement::EngineNode> nodes,
                                                 std::uint64_t seed);

}  // namespace bimetal::place
