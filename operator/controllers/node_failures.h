#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/time.h"
#include "core/model/job.h"
#include "core/model/vendor.h"

namespace bimetal::op {

// An attempt that failed on a node.
struct NodeFailure {
  std::string node;
  core::Vendor vendor = core::Vendor::kNvidia;
  core::FailureClass failure = core::FailureClass::kUserError;
  bool refused = false;  // the kubelet would not take the pod
  std::string name_space, job;
  TimePoint when;
};

// A node that fails the jobs of too many owners to be innocent.
struct Suspicion {
  std::string event;     // tells this suspicion from any other
  std::string evidence;  // "3 jobs failed here within 1h: ..."
};

// Remembers the failures of each node for a while. A program's own failures count by namespace (one
// team's broken program must not close a node), what the node did to a job counts by job; a success
// forgets the former. Told the same in the same order it says the same. Loop thread only.
class NodeFailures {
 public:
  struct Options {
    std::size_t owners = 3;
    Millis window = Minutes(60);
  };
  explicit NodeFailures(Options options) : options_(options) {}

  // The node has become suspect by this failure; its failures are forgotten then.
  std::optional<Suspicion> Note(const NodeFailure& failure);
  // A program ran well on the node.
  void NoteSuccess(const std::string& node, core::Vendor vendor);

 private:
  Options options_;
  std::map<std::pair<std::string, core::Vendor>, std::vector<NodeFailure>> failures_;
};

}  // namespace bimetal::op
