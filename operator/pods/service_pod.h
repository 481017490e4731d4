#pragma once

#include <string>

#include "api/gpuservice.pb.h"
#include "core/base/result.h"
#include "core/model/service.h"

namespace bimetal::op {

struct ReplicaContext {
  const api::GPUService& object;
  const core::Service& service;
  std::size_t variant = 0;     // index into service.variants
  int index = 0;               // unique among the service's pods
  std::string resource_name;   // of the pool
  std::string priority_class;  // of the pods, not of the service
};

// "chat-0a1b2c3d-4": unique in the namespace for a service, a revision and an index.
std::string ReplicaPodName(const ReplicaContext& replica);

// The JSON of a replica's pod: the template as the user wrote it, with image, command and
// environment of the variant in its first container, the devices, the port, the readiness probe and
// the pause between leaving the Service and the stop signal, pinned to `node` by required node
// affinity. Probe and hook of the user's own stay. Error kData where the template is not what the
// API server would have accepted.
Result<std::string> BuildReplicaPod(const ReplicaContext& replica, const std::string& node);

// The label selector of a service's replicas, as text.
std::string ReplicaSelector(const std::string& service_uid);

// The JSON of the Service that leads to the ready replicas; its name is the GPUService's.
std::string BuildReplicaService(const api::GPUService& object);

}  // namespace bimetal::op
