#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/gpujob.pb.h"
#include "core/base/ids.h"
#include "core/base/result.h"
#include "core/base/time.h"
#include "core/model/fleet.h"

namespace bimetal::core {

struct Variant {
  std::string name;
  Vendor vendor = Vendor::kNvidia;
  std::int64_t devices_per_pod = 1;              // whole devices
  std::vector<std::string> models;               // empty: any
  std::optional<std::int64_t> min_memory_bytes;  // unknown memory never matches
};

struct Role {
  std::string name;
  std::int64_t replicas = 1;
  Resources requests;  // of one pod, devices apart; pods = 1
  std::vector<Toleration> tolerations;
  std::map<std::string, std::string> node_selector;
};

// A job whose spec has been checked. Immutable.
struct Job {
  Uid uid;
  std::string name_space, name;
  QueueName queue;
  std::int64_t priority = 0;
  TimePoint created;
  bool suspended = false;
  int retry_limit = 2;
  std::vector<Variant> variants;
  std::vector<Role> roles;
};

inline constexpr std::int64_t kMaxPodsOfJob = 4096;

// Checks everything that the CRD's schema checks and what it cannot (old servers have no CEL):
// names, counts without overflow, quantities, resources in templates. Error kInvalid names the
// field and the remedy: "spec.roles[0].replicas: 10000 is over 4096; use fewer pods".
Result<Job> JobFromApi(const api::GPUJob& job, std::int64_t priority);

// Pods of all roles.
std::int64_t PodCount(const Job& job);
// Whole devices that `variant` of `job` needs in all.
std::int64_t DevicesNeeded(const Job& job, const Variant& variant);

}  // namespace bimetal::core
