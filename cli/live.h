#pragma once

#include <map>
#include <string>
#include <vector>

#include "api/fleet.pb.h"
#include "api/gpujob.pb.h"
#include "api/gpunode.pb.h"
#include "api/kubernetes.pb.h"
#include "core/queue/cycle.h"
#include "kube/client/client.h"

namespace bimetal::cli {

// The objects on which the scheduler decides.
struct LiveObjects {
  std::vector<api::Node> nodes;
  std::vector<api::GPUNode> gpu_nodes;
  std::vector<api::Pod> pods;
  std::vector<api::GPUPool> pools;
  std::vector<api::GPUQueue> queues;
  std::vector<api::GPUJob> jobs;
  std::vector<api::Namespace> namespaces;
  std::vector<api::PriorityClass> priorities;
};

// Reads them all, with the caller's own rights. Blocks. Errors: the client's; kForbidden names the
// kind that the caller may not list.
Result<LiveObjects> ReadLive(kube::Client& client);

// The snapshot that the operator would decide on. What only the operator knows is not in it: pods
// that were asked for a moment ago, and what it holds back for jobs that evict others. Pure.
core::queue::Snapshot SnapshotOf(const LiveObjects& live, TimePoint now);

}  // namespace bimetal::cli
