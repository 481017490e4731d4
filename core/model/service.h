#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/gpuservice.pb.h"
#include "core/base/result.h"
#include "core/model/job.h"

namespace bimetal::core {

// What a service says of a variant beside what every job says of one.
struct ServiceVariant {
  int port = 8080;
  std::int64_t min_replicas = 0;
  std::optional<std::int64_t> max_replicas;  // nullopt: no bound
  std::optional<std::int64_t> weight;        // nullopt: none given
  // Of all that makes a replica of this variant; replicas of another revision are replaced.
  std::string revision;  // 8 hex digits
};

// A service whose spec has been checked. Immutable.
struct Service {
  // What one replica is to the queue: a gang of one pod. Its uid, name and creation are the
  // service's.
  Job replica;
  std::vector<ServiceVariant> variants;  // as replica.variants
  std::int64_t replicas = 1;             // wanted; 0 while suspended
  std::int64_t surge = 1;                // replicas beyond the wanted ones during a rollout
  std::int64_t unavailable = 0;          // replicas that may be missing during a rollout
  std::int64_t disrupted = 1;            // replicas that may be missing because of preemption
  Millis min_runtime;                    // before a replica may be preempted
  bool suspended = false;
};

inline constexpr std::int64_t kMaxReplicas = 1000;

// Checks everything that the CRD's schema checks and what it cannot (old servers have no CEL).
// Error kInvalid names the field and the remedy.
Result<Service> ServiceFromApi(const api::GPUService& service, std::int64_t priority);

// The variant as a GPUJob would write it; ports and counts are left out.
api::Variant VariantOf(const api::ServiceVariant& variant);

// Index of the variant of this name; the number of variants where the service has none.
std::size_t VariantIndex(const Service& service, std::string_view name);

// Replicas that are never preempted: the sum of the variants' minimums, at most `replicas`.
std::int64_t MinimumOf(const Service& service);

}  // namespace bimetal::core
