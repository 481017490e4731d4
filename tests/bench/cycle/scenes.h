#pragma once

#include <optional>
#include <vector>

#include "core/queue/cycle.h"

// Generated clusters and queues of the size that the benches name.
namespace bimetal::bench {

struct FleetShape {
  int nodes = 5000;
  int devices = 8;  // of each node
  int racks = 50;   // nodes go round them; label bimetal.dev/rack
  int pools = 1;    // of `vendors` in turn
  int vendors = 1;  // 1 or 2
};

inline constexpr const char* kRack = "bimetal.dev/rack";

// An empty fleet with its pools, and queue "default" without limits.
core::queue::Snapshot Fleet(const FleetShape& shape);

struct JobShape {
  int pods = 1;
  int devices_per_pod = 1;
  bool either_vendor = false;
  std::optional<core::TopologyMode> mode = std::nullopt;  // of level kRack
};
core::Job MakeJob(const JobShape& shape, int number);

// What the snapshot is once the plan's pods are live and its jobs no longer wait.
void Apply(const core::queue::Plan& plan, core::queue::Snapshot* snapshot);
// The same, and the jobs are among those that run.
void Start(const core::queue::Plan& plan, core::queue::Snapshot* snapshot);
// What it is once the jobs that these evict have gone, with their pods.
void End(const std::vector<core::queue::Eviction>& evictions, core::queue::Snapshot* snapshot);

}  // namespace bimetal::bench
