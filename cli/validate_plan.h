#pragma once

#include <string>
#include <vector>

#include "api/fleet.pb.h"
#include "api/gpunode.pb.h"
#include "cli/run.h"
#include "core/base/result.h"
#include "core/base/time.h"

namespace bimetal::cli {

// What a profile would change for one vendor's devices of a node.
struct Change {
  std::string node, vendor, pool, now;  // now: the phase
  bool rerun = false;                   // it would be validated again
  bool quarantine = false;              // it would fail, at once or at its next run
  std::vector<std::string> why;
};

struct Plan {
  std::vector<std::string> pools;  // that use the profile
  int nodes = 0;                   // of those pools, one counted per vendor
  std::vector<Change> changes;     // sorted by node and vendor
};

// Compares the profile with what the statuses of the nodes say: expectations with the inventory,
// floors with the rates of the last run, level and expiry with the last pass. Pure. Errors:
// kInvalid names the field of the profile.
Result<Plan> PlanProfile(const api::ValidationProfile& profile,
                         const std::vector<api::GPUPool>& pools,
                         const std::vector<api::GPUNode>& nodes, TimePoint now);

Answer RenderPlan(const api::ValidationProfile& profile, const Plan& plan);

}  // namespace bimetal::cli
