#pragma once

#include <string>
#include <vector>

#include "core/base/time.h"
#include "core/model/fleet.h"

namespace bimetal::op {

// What a validation pod is made of.
struct ValidationPodSpec {
  std::string name_space, name;
  std::string node;
  core::Vendor vendor = core::Vendor::kNvidia;
  std::string image, pull_policy, service_account, priority_class;
  bool path = false;                 // goes the way of a job instead of opening devices by id
  std::string resource_name;         // of the path's one device
  std::string level;                 // L0 | L1 | L2; of the path always L0
  std::vector<std::string> checks;   // empty: all of the level
  std::vector<std::string> devices;  // stable ids
  std::string fingerprint;
  std::string socket_dir;   // on the host: where the agent listens
  std::string machine_dir;  // on the host: the simulated machine; empty on a real one
  Millis timeout = Minutes(2);
  std::vector<core::Toleration> tolerations;
};

// Deterministic for everything that makes a run a new run, so that a repeated create meets its
// twin.
std::string ValidationPodName(core::Vendor vendor, const std::string& node,
                              const std::string& cause);

// The JSON of the pod. It tolerates the taint of an unproven node, runs without a token, and
// reports to the agent's socket. It asks the scheduler for no device: the agent withholds them, and
// the pod opens them by id. A path pod does the opposite: it asks for one device as a job would,
// gets it from the plug-in and the runtime, and looks at what it was given.
std::string BuildValidationPod(const ValidationPodSpec& spec);

}  // namespace bimetal::op
