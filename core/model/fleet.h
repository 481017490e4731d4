#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/ids.h"
#include "core/base/time.h"
#include "core/model/vendor.h"

namespace bimetal::core {

// What a node offers or a pod asks for beside devices.
struct Resources {
  std::int64_t cpu_milli = 0;
  std::int64_t memory_bytes = 0;
  std::int64_t pods = 0;
  auto operator<=>(const Resources&) const = default;
};

// Saturating at the ends of int64: absurd requests must not wrap into small ones.
Resources operator+(const Resources& a, const Resources& b);
// True where `need` fits into what is left of `capacity` after `used`.
bool Fits(const Resources& need, const Resources& capacity, const Resources& used);

// On a node whose devices are shut (gate Enforce), with effect NoSchedule.
inline constexpr std::string_view kUnvalidatedTaint = "bimetal.dev/unvalidated";

// The innermost level of every pool's topology; never a key of topologyKeys.
inline constexpr std::string_view kNodeLevel = "node";

struct Taint {
  std::string key, value, effect;
  auto operator<=>(const Taint&) const = default;
};

struct Toleration {
  std::string key;  // empty with Exists: every key
  std::string op;   // "Exists" | "Equal" | "" (Equal)
  std::string value;
  std::string effect;  // empty: every effect
};

// Kubernetes' own rule (ToleratesTaint): key, operator, value and effect all match.
bool Tolerates(const std::vector<Toleration>& tolerations, const Taint& taint);

// One device as the agent reported it and admission judged it.
struct Device {
  DeviceId id;
  std::string model;
  std::optional<std::int64_t> memory_bytes;  // nullopt: unknown, never 0
  MilliDevice capacity = kWholeDevice;
  bool open = false;  // a pass matches the present fingerprint and the device is healthy
};

// The devices of one vendor on one node. The kubelet picks which device a pod gets, so the books
// count devices by node and vendor.
struct NodeDevices {
  PoolName pool;                // empty: no pool selects them
  std::vector<Device> devices;  // sorted by id
  std::optional<std::int64_t>
      offered;  // whole devices in the Node's allocatable; nullopt: not offered
  std::vector<std::string> precisions;  // sorted; every open device has proven them
  int validation_level = 0;             // of the last pass: 0 | 1 | 2
};

// A node as the scheduler sees it. Immutable within a snapshot.
struct Node {
  NodeName name;
  std::map<std::string, std::string> labels;
  std::vector<Taint> taints;
  bool ready = false;     // condition Ready is True
  bool cordoned = false;  // spec.unschedulable, or an admin's hold
  Resources allocatable;
  std::map<Vendor, NodeDevices> devices;
};

// Whole devices of `vendor` on `node` that jobs may use: open ones, at most what the kubelet
// offers.
std::int64_t UsableDevices(const Node& node, Vendor vendor);
// Devices that `held` takes out of use; one that is held in part counts whole. Never negative.
std::int64_t WholeDevices(MilliDevice held);

// Devices of the same standing for quotas, by model.
struct DeviceClass {
  std::string name;
  std::vector<std::string> models;
  auto operator<=>(const DeviceClass&) const = default;
};

struct Pool {
  PoolName name;
  Vendor vendor = Vendor::kNvidia;
  std::map<std::string, std::string> node_selector;
  std::string resource_name;  // never empty
  bool enforce = true;        // gate: Enforce
  bool bimetal_plugin = false;
  std::string price_book;
  std::string profile;
  std::vector<DeviceClass> device_classes;  // names are unique
  std::vector<std::string> topology_keys;   // labels of nodes, widest first, each once
};

// The class of a device of `model` in `pool`: the first that names it, else the vendor's name.
std::string DeviceClassOf(const Pool& pool, const std::string& model);

// How jobs of one queue may pass each other. Strict: never one that waits for the same vendor.
// Backfill: while what stands before them cannot start, but never for longer than the starvation
// bound. BestEffort: always.
enum class QueueOrder { kStrict, kBackfill, kBestEffort };
// Whom a queue's jobs may evict in their own queue, and in others to have back what is guaranteed.
enum class WithinQueue { kNever, kLowerPriority };
enum class Reclaim { kNever, kLowerPriority, kAny };
// Hold: nothing new starts. HoldAndDrain: and what runs is evicted.
enum class StopPolicy { kNone, kHold, kHoldAndDrain };

// A queue's quota of one device class. A device counts on the line of its class where the queue has
// one, else on the line that is named like its vendor, else on none. Whole devices.
struct QuotaLine {
  std::string device_class;
  std::int64_t guaranteed = 0;
  std::optional<std::int64_t> limit;          // nullopt: none
  std::optional<std::int64_t> lending_limit;  // of `guaranteed`, to others; nullopt: all of it
};

struct FairShare {
  std::int64_t weight = 1;  // 0: only what nobody else wants
  Millis half_life;         // of past use; 0: the past does not count
};

struct QueuePreemption {
  WithinQueue within_queue = WithinQueue::kNever;
  Reclaim reclaim = Reclaim::kNever;
  // What protects the queue's own jobs.
  Millis min_runtime;
  std::optional<std::int64_t> max_evictions_per_hour;
};

inline constexpr Millis kDefaultStarvationBound = Minutes(60);

struct Queue {
  QueueName name;
  QueueName parent;                                       // empty: none
  std::map<std::string, std::string> namespace_selector;  // empty: all
  std::vector<QuotaLine> quotas;                          // one for each class at most
  std::optional<std::int64_t> total_limit;                // of all classes together
  QueueOrder order = QueueOrder::kBackfill;
  Millis starvation_bound = kDefaultStarvationBound;
  std::optional<FairShare> fair_share;
  QueuePreemption preemption;
  std::optional<std::int64_t> max_devices_per_job;
  std::optional<Millis> max_duration_per_job;
  std::optional<std::int64_t> max_running_jobs;
  StopPolicy stop = StopPolicy::kNone;
};

// Which pod of which job a pod is.
struct PodOfJob {
  Uid job;
  int attempt = 0;
  std::string role;
  int index = 0;
  auto operator<=>(const PodOfJob&) const = default;
};

// A live pod (not Succeeded or Failed), whoever made it: what it holds of its node.
struct Pod {
  Uid uid;
  std::string name_space, name;
  NodeName node;  // bound to, or pinned to by us; empty where neither
  Resources requests;
  std::map<Vendor, MilliDevice> devices;
  std::optional<PodOfJob> of_job;
};

}  // namespace bimetal::core
