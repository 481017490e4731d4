#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/model/fleet.h"
#include "core/model/job.h"
#include "core/queue/cycle.h"

// Short ways to say a node, a job and a pod; what is left out is ordinary.
namespace bimetal::core::testing {

inline constexpr std::int64_t kGi = std::int64_t{1} << 30;

class NodeBuilder {
 public:
  explicit NodeBuilder(const std::string& name) {
    node_.name = NodeName{name};
    node_.ready = true;
    node_.allocatable = Resources{.cpu_milli = 64'000, .memory_bytes = 512 * kGi, .pods = 110};
  }
  NodeBuilder& Gpus(Vendor vendor, int count, const std::string& pool = "",
                    const std::string& model = "X") {
    auto& devices = node_.devices[vendor];
    devices.pool = PoolName{pool.empty() ? std::string(VendorName(vendor)) : pool};
    for (int i = 0; i < count; ++i) {
      const std::string id = node_.name.value + "-" + std::string(VendorName(vendor)) + "-" +
                             std::to_string(devices.devices.size());
      devices.devices.push_back(Device{.id = DeviceId{id},
                                       .model = model,
                                       .memory_bytes = 80 * kGi,
                                       .capacity = kWholeDevice,
                                       .open = true});
    }
    devices.offered = static_cast<std::int64_t>(devices.devices.size());
    return *this;
  }
  NodeBuilder& Shut(Vendor vendor, std::size_t count = 1000) {
    for (auto& device : node_.devices[vendor].devices) {
      if (count-- == 0) break;
      device.open = false;
    }
    return *this;
  }
  NodeBuilder& Offered(Vendor vendor, std::optional<std::int64_t> offered) {
    node_.devices[vendor].offered = offered;
    return *this;
  }
  NodeBuilder& UnknownMemory(Vendor vendor) {
    for (auto& device : node_.devices[vendor].devices) device.memory_bytes.reset();
    return *this;
  }
  NodeBuilder& WithTaint(const std::string& key, const std::string& effect = "NoSchedule") {
    node_.taints.push_back(Taint{.key = key, .value = "", .effect = effect});
    return *this;
  }
  NodeBuilder& Label(const std::string& key, const std::string& value) {
    node_.labels[key] = value;
    return *this;
  }
  NodeBuilder& Cordoned() {
    node_.cordoned = true;
    return *this;
  }
  NodeBuilder& NotReady() {
    node_.ready = false;
    return *this;
  }
  NodeBuilder& Cpu(std::int64_t milli) {
    node_.allocatable.cpu_milli = milli;
    return *this;
  }
  NodeBuilder& PodSlots(std::int64_t slots) {
    node_.allocatable.pods = slots;
    return *this;
  }
  Node Build() const { return node_; }
  operator Node() const { return node_; }

 private:
  Node node_;
};

class JobBuilder {
 public:
  explicit JobBuilder(const std::string& name) {
    job_.uid = Uid{"uid-" + name};
    job_.name_space = "team";
    job_.name = name;
    job_.queue = QueueName{"default"};
    job_.created = TimePoint{1'000};
  }
  JobBuilder& On(Vendor vendor, std::int64_t devices_per_pod = 1) {
    Variant variant;
    variant.name = vendor == Vendor::kAmd ? "rocm" : "cuda";
    variant.vendor = vendor;
    variant.devices_per_pod = devices_per_pod;
    job_.variants.push_back(std::move(variant));
    return *this;
  }
  JobBuilder& Models(std::vector<std::string> models) {
    job_.variants.back().models = std::move(models);
    return *this;
  }
  JobBuilder& MinMemory(std::int64_t bytes) {
    job_.variants.back().min_memory_bytes = bytes;
    return *this;
  }
  JobBuilder& Pods(std::int64_t replicas, std::int64_t cpu_milli = 1000,
                   const std::string& role = "worker") {
    Role made;
    made.name = role;
    made.replicas = replicas;
    made.requests = Resources{.cpu_milli = cpu_milli, .memory_bytes = kGi, .pods = 1};
    job_.roles.push_back(made);
    return *this;
  }
  JobBuilder& Tolerating(const std::string& key) {
    job_.roles.back().tolerations.push_back(
        Toleration{.key = key, .op = "Exists", .value = "", .effect = ""});
    return *this;
  }
  JobBuilder& Selecting(const std::string& key, const std::string& value) {
    job_.roles.back().node_selector[key] = value;
    return *this;
  }
  JobBuilder& Topology(const std::string& level, TopologyMode mode) {
    job_.roles.back().topology = RoleTopology{.level = level, .mode = mode};
    return *this;
  }
  JobBuilder& Queue(const std::string& queue) {
    job_.queue = QueueName{queue};
    return *this;
  }
  JobBuilder& Priority(std::int64_t priority) {
    job_.priority = priority;
    return *this;
  }
  JobBuilder& Created(std::int64_t ms) {
    job_.created = TimePoint{ms};
    return *this;
  }
  Job Build() const { return job_; }
  operator Job() const { return job_; }

 private:
  Job job_;
};

inline Pod PodOn(const std::string& uid, const std::string& node, Vendor vendor,
                 std::int64_t devices, std::int64_t cpu_milli = 0) {
  Pod pod;
  pod.uid = Uid{uid};
  pod.name_space = "team";
  pod.name = uid;
  pod.node = NodeName{node};
  pod.requests = Resources{.cpu_milli = cpu_milli, .memory_bytes = 0, .pods = 1};
  if (devices > 0) pod.devices[vendor] = MilliDevice{devices * kWholeDevice.v};
  return pod;
}

inline Pool PoolOf(Vendor vendor, const std::string& name = "") {
  Pool pool;
  pool.name = PoolName{name.empty() ? std::string(VendorName(vendor)) : name};
  pool.vendor = vendor;
  pool.resource_name = std::string(DefaultResourceName(vendor));
  return pool;
}

// A queue's quota of one class.
inline QuotaLine Quota(const std::string& device_class, std::optional<std::int64_t> limit,
                       std::int64_t guaranteed = 0,
                       std::optional<std::int64_t> lending_limit = std::nullopt) {
  QuotaLine line;
  line.device_class = device_class;
  line.guaranteed = guaranteed;
  line.limit = limit;
  line.lending_limit = lending_limit;
  return line;
}

// A job that runs with `devices` on each of `nodes`, one pod there.
inline queue::Running RunningJob(const std::string& name, const std::string& queue, Vendor vendor,
                                 std::int64_t devices, const std::vector<std::string>& nodes) {
  queue::Running running;
  running.job = Uid{"uid-" + name};
  running.name_space = "team";
  running.name = name;
  running.queue = QueueName{queue};
  running.vendor = vendor;
  running.pool = PoolName{std::string(VendorName(vendor))};
  running.devices = devices * static_cast<std::int64_t>(nodes.size());
  for (const std::string& node : nodes) {
    running.places.push_back(
        queue::Place{.node = NodeName{node}, .devices = devices, .requests = Resources{.pods = 1}});
  }
  return running;
}

// Puts the running job into the snapshot, with a pod for each of its places.
inline void AddRunning(queue::Snapshot* snapshot, const queue::Running& running) {
  int index = 0;
  for (const queue::Place& place : running.places) {
    Pod pod = PodOn(running.job.value + "/" + std::to_string(index++), place.node.value,
                    running.vendor, place.devices);
    pod.requests = place.requests;
    snapshot->pods.push_back(pod);
  }
  snapshot->running.push_back(running);
}

inline Queue QueueNamed(const std::string& name, QueueOrder order = QueueOrder::kBackfill) {
  Queue queue;
  queue.name = QueueName{name};
  queue.order = order;
  return queue;
}

}  // namespace bimetal::core::testing
