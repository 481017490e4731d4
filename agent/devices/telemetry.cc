#include "agent/devices/telemetry.h"

#include <utility>

namespace bimetal::agent {

void ThrottleFromCounts(const Telemetry& before, Telemetry& now) {
  if (now.throttle.known() || !before.throttle_counts.known() || !now.throttle_counts.known()) {
    return;
  }
  std::vector<std::string> reasons;
  for (const auto& [reason, count] : now.throttle_counts.value) {
    const auto old = before.throttle_counts.value.find(reason);
    // A counter that is new or fell back (the driver was reloaded) says nothing yet.
    if (old != before.throttle_counts.value.end() && old->second < count) reasons.push_back(reason);
  }
  now.throttle = Reading<std::vector<std::string>>::Of(std::move(reasons), "by its counters");
}

}  // namespace bimetal::agent
