#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "api/pod.pb.h"
#include "core/base/result.h"
#include "core/model/fleet.h"

namespace bimetal::core {

using ContainerList = google::protobuf::RepeatedPtrField<api::Container>;
using QuantityMap = google::protobuf::Map<std::string, std::string>;

// What a pod asks of its node.
struct PodDemand {
  Resources requests;                            // pods = 1
  std::map<std::string, std::int64_t> extended;  // every other resource, in whole units
};

// Kubernetes' own rule, for users' templates and for live pods alike: the containers' requests
// together, or what the init containers need at their hungriest moment where that is more; an init
// container with restartPolicy Always counts on beside all that start after it; a limit stands in
// for a request that is left out; `overhead` is added. Error kInvalid names the field below `path`:
// "spec.containers[1].resources.requests["cpu"]: ...".
Result<PodDemand> DemandOfPod(const ContainerList& containers, const ContainerList& init_containers,
                              const QuantityMap& overhead, const std::string& path);

}  // namespace bimetal::core
