#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/ids.h"
#include "core/base/result.h"
#include "core/base/time.h"
#include "core/model/affinity.h"
#include "core/model/fleet.h"

namespace bimetal::api {
class GPUJob;  // its header is large, and most who include this one do without
}

namespace bimetal::core {

struct Variant {
  std::string name;
  Vendor vendor = Vendor::kNvidia;
  std::int64_t devices_per_pod = 1;              // whole devices
  std::vector<std::string> models;               // empty: any
  std::optional<std::int64_t> min_memory_bytes;  // unknown memory never matches
  std::vector<std::string> precisions;           // sorted; all must be proven
  int min_validation_level = 0;                  // 0 | 1 | 2: L0, L1, L2
  // Thousandths; how fast the variant is beside the others of its job. nullopt: nobody said.
  std::optional<std::int64_t> relative_throughput_milli;
  // Billionths of the PriceBook's currency for one device and hour. nullopt: any price.
  std::optional<std::int64_t> max_nano_per_hour;
};

enum class TopologyMode { kRequired, kPreferred, kSpread };

// How the pods of one role lie to each other.
struct RoleTopology {
  std::string level;  // a topology key of the pool, or "node"
  TopologyMode mode = TopologyMode::kRequired;
};

struct Role {
  std::string name;
  std::int64_t replicas = 1;
  Resources requests;  // of one pod, devices apart; pods = 1
  std::vector<Toleration> tolerations;
  std::map<std::string, std::string> node_selector;
  std::vector<NodeTerm> node_affinity;       // required; empty: every node
  std::optional<std::int64_t> min_replicas;  // 1 .. replicas; nullopt: all of them
  std::optional<RoleTopology> topology;
  std::vector<NodeName> avoid;  // sorted; its pods must not go there for now
};

enum class SelectionPolicy { kInOrder, kEarliestStart, kLowestCost, kBestValue };
enum class SwitchOnRestart { kNever, kIfPortable, kAlways };
enum class Preemption { kAllowed, kAfterMinRuntime, kNever };
enum class FailureClass {
  kUserError,
  kOutOfMemory,
  kImagePull,
  kDeviceFault,
  kNodeLost,
  kEvicted,
  kPreempted,
  kTimeout
};
enum class RetryAction { kRetry, kRetryElsewhere, kFail };
enum class BudgetAction { kWarn, kSuspend, kStop };

struct RetryRule {
  FailureClass failure = FailureClass::kUserError;
  RetryAction action = RetryAction::kRetry;
  bool counts = true;  // towards Job::retry_limit
};

struct Budget {
  std::int64_t nano_amount = 0;  // billionths of `currency`
  std::string currency;
  BudgetAction action = BudgetAction::kWarn;
};

struct Checkpoint {
  std::string claim_name, path;
  std::string signal = "SIGTERM";
  int grace_seconds = 30;
  bool portable_across_vendors = false;
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
  Millis retry_backoff = Seconds(5);   // before the first retry; doubles
  std::vector<RetryRule> retry_rules;  // one for each class at most
  std::vector<Variant> variants;
  std::vector<Role> roles;
  SelectionPolicy selection = SelectionPolicy::kInOrder;
  std::optional<Millis> fallback_after;  // with kInOrder alone
  SwitchOnRestart switch_on_restart = SwitchOnRestart::kIfPortable;
  Preemption preemption = Preemption::kAllowed;
  // From creation to the first start; of one attempt; expected; after the end. nullopt: no bound,
  // unknown.
  std::optional<Millis> start_deadline, max_duration, estimated_duration, ttl_after_finished;
  std::optional<Budget> budget;
  std::optional<Checkpoint> checkpoint;
  // Since when it has waited for its next start; what fallback_after counts from.
  TimePoint waiting_since;
};

std::string_view FailureClassName(FailureClass failure);

// What is done about `failure`: the job's own rule, or the default. UserError and OutOfMemory are
// retried and count, Timeout fails, all others are retried and do not count.
RetryRule RuleFor(const Job& job, FailureClass failure);

inline constexpr std::int64_t kMaxPodsOfJob = 8192;

// Checks everything that the CRD's schema checks and what it cannot (old servers have no CEL):
// names, counts without overflow, quantities, resources in templates. Error kInvalid names the
// field and the remedy: "spec.roles[0].replicas: 10000 is over 8192; use fewer pods".
Result<Job> JobFromApi(const api::GPUJob& job, std::int64_t priority);

// Pods of all roles.
std::int64_t PodCount(const Job& job);
// Whole devices that `variant` of `job` needs in all.
std::int64_t DevicesNeeded(const Job& job, const Variant& variant);

}  // namespace bimetal::core
