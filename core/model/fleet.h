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

struct Pool {
  PoolName name;
  Vendor vendor = Vendor::kNvidia;
  std::map<std::string, std::string> node_selector;
  std::string resource_name;  // never empty
  bool enforce = true;        // gate: Enforce
  bool bimetal_plugin = false;
  std::string price_book;
  std::string profile;
};

enum class QueueOrder { kStrict, kBackfill };

struct Queue {
  QueueName name;
  std::map<std::string, std::string> namespace_selector;  // empty: all
  std::map<Vendor, std::int64_t> limit;                   // whole devices; no entry: no limit
  QueueOrder order = QueueOrder::kBackfill;
  bool hold = false;
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
