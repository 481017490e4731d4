#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "api/gpujob.pb.h"
#include "core/base/result.h"
#include "core/model/job.h"
#include "core/queue/cycle.h"

namespace bimetal::op {

// Port on which rank 0 of a gang is told to listen (the convention of torchrun).
inline constexpr int kMasterPort = 29500;

struct GangContext {
  const api::GPUJob& object;
  const core::Job& job;
  std::size_t variant = 0;     // index into job.variants
  std::string resource_name;   // of the pool
  std::string priority_class;  // of the pods, not of the job
  int attempt = 1;
  std::vector<std::int64_t> gang = {};  // pods of each role in this attempt; empty: all of the job
};

// "train-1-worker-0": unique in the namespace for a job, an attempt, a role and an index.
std::string JobPodName(const GangContext& gang, std::size_t role, int index);
// The headless Service under which the pods of a job find each other.
std::string GangServiceName(const api::GPUJob& object);

// The JSON of one pod of a gang: the role's template as the user wrote it, with image, command and
// environment of the variant in its first container, the devices, the gang's environment, where it
// keeps checkpoints and how it is stopped, and pinned to `placement.node` by required node affinity
// (as a DaemonSet pins its own, never by nodeName). Each attempt is built afresh from the spec.
// Error kData where the template is not what the API server would have accepted.
Result<std::string> BuildJobPod(const GangContext& gang,
                                const core::placement::PodPlacement& placement);

// The JSON of the headless Service.
std::string BuildGangService(const api::GPUJob& object);

}  // namespace bimetal::op
