#include "tests/bench/cycle/scenes.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace bimetal::bench {
namespace {

constexpr std::int64_t kGi = std::int64_t{1} << 30;

core::Vendor VendorOf(int pool, int vendors) {
  return vendors > 1 && pool % 2 == 1 ? core::Vendor::kAmd : core::Vendor::kNvidia;
}

std::string PoolName(int pool) { return "pool-" + std::to_string(pool); }

std::string Padded(int number) {
  const std::string text = std::to_string(number);
  return std::string(5 - std::min<std::size_t>(5, text.size()), '0') + text;
}

core::Node MakeNode(int number, const FleetShape& shape) {
  const int pool = number % shape.pools;
  const core::Vendor vendor = VendorOf(pool, shape.vendors);
  core::Node node;
  node.name = NodeName{"node-" + Padded(number)};
  // Labels of an ordinary cloud node, so that looking one up costs what it does there.
  for (const char* key : {"beta.kubernetes.io/arch", "beta.kubernetes.io/os", "kubernetes.io/arch",
                          "kubernetes.io/os", "node.kubernetes.io/instance-type",
                          "topology.kubernetes.io/region", "topology.kubernetes.io/zone"}) {
    node.labels[key] = "some-value";
  }
  node.labels["kubernetes.io/hostname"] = node.name.value;
  node.labels[kRack] = "rack-" + Padded(number / shape.pools % shape.racks);
  node.ready = true;
  node.allocatable = core::Resources{.cpu_milli = 128'000, .memory_bytes = 1024 * kGi, .pods = 110};
  core::NodeDevices& devices = node.devices[vendor];
  devices.pool = bimetal::PoolName{PoolName(pool)};
  devices.offered = shape.devices;
  for (int i = 0; i < shape.devices; ++i) {
    devices.devices.push_back(
        core::Device{.id = DeviceId{"GPU-" + node.name.value + "-" + std::to_string(i)},
                     .model = vendor == core::Vendor::kAmd ? "AMD Instinct MI300X" : "NVIDIA H200",
                     .memory_bytes = 141 * kGi,
                     .capacity = kWholeDevice,
                     .open = true});
  }
  return node;
}

}  // namespace

core::queue::Snapshot Fleet(const FleetShape& shape) {
  core::queue::Snapshot out;
  out.now = TimePoint{1'000'000};
  for (int i = 0; i < shape.nodes; ++i) out.nodes.push_back(MakeNode(i, shape));
  for (int i = 0; i < shape.pools; ++i) {
    core::Pool pool;
    pool.name = bimetal::PoolName{PoolName(i)};
    pool.vendor = VendorOf(i, shape.vendors);
    pool.resource_name = std::string(core::DefaultResourceName(pool.vendor));
    pool.topology_keys = {kRack};
    out.pools.push_back(std::move(pool));
  }
  core::Queue queue;
  queue.name = QueueName{"default"};
  out.queues.push_back(std::move(queue));
  return out;
}

core::Job MakeJob(const JobShape& shape, int number) {
  core::Job job;
  job.uid = Uid{"11111111-2222-3333-4444-" + Padded(number)};
  job.name_space = "team";
  job.name = "job-" + Padded(number);
  job.queue = QueueName{"default"};
  job.created = TimePoint{number};
  for (const core::Vendor vendor : {core::Vendor::kNvidia, core::Vendor::kAmd}) {
    if (vendor == core::Vendor::kAmd && !shape.either_vendor) break;
    core::Variant variant;
    variant.name = std::string(core::VendorName(vendor));
    variant.vendor = vendor;
    variant.devices_per_pod = shape.devices_per_pod;
    job.variants.push_back(std::move(variant));
  }
  core::Role role;
  role.name = "worker";
  role.replicas = shape.pods;
  role.requests = core::Resources{.cpu_milli = 4'000, .memory_bytes = 16 * kGi, .pods = 1};
  if (shape.mode) role.topology = core::RoleTopology{.level = kRack, .mode = *shape.mode};
  job.roles.push_back(std::move(role));
  return job;
}

void Apply(const core::queue::Plan& plan, core::queue::Snapshot* snapshot) {
  std::map<Uid, const core::Job*> jobs;
  for (const core::Job& job : snapshot->pending) jobs.emplace(job.uid, &job);
  std::set<Uid> started;
  for (const auto& assignment : plan.assignments) {
    const core::Job& job = *jobs.at(assignment.job);
    const core::Variant& variant = job.variants[assignment.variant];
    started.insert(job.uid);
    for (const auto& placed : assignment.pods) {
      const std::string name = job.name + "-1-worker-" + std::to_string(placed.index);
      core::Pod pod;
      pod.uid = Uid{job.uid.value + "/" + name};
      pod.name_space = job.name_space;
      pod.name = name;
      pod.of_job = core::PodOfJob{job.uid, 1, job.roles[placed.role].name, placed.index};
      pod.node = placed.node;
      pod.requests = job.roles[placed.role].requests;
      pod.devices[variant.vendor] = MilliDevice{variant.devices_per_pod * kWholeDevice.v};
      snapshot->pods.push_back(std::move(pod));
    }
  }
  std::erase_if(snapshot->pending, [&](const core::Job& job) { return started.contains(job.uid); });
}

void Start(const core::queue::Plan& plan, core::queue::Snapshot* snapshot) {
  std::map<Uid, const core::Job*> jobs;
  for (const core::Job& job : snapshot->pending) jobs.emplace(job.uid, &job);
  for (const auto& assignment : plan.assignments) {
    const core::Job& job = *jobs.at(assignment.job);
    const core::Variant& variant = job.variants[assignment.variant];
    core::queue::Running& running = snapshot->running.emplace_back();
    running.job = job.uid;
    running.name_space = job.name_space;
    running.name = job.name;
    running.queue = job.queue;
    running.priority = job.priority;
    running.created = job.created;
    running.vendor = variant.vendor;
    running.pool = assignment.pool;
    running.devices = assignment.devices;
    running.started = snapshot->now;
    for (const auto& pod : assignment.pods) {
      running.places.push_back({.node = pod.node,
                                .devices = variant.devices_per_pod,
                                .requests = job.roles[pod.role].requests});
    }
  }
  Apply(plan, snapshot);
}

void End(const std::vector<core::queue::Eviction>& evictions, core::queue::Snapshot* snapshot) {
  std::set<Uid> gone;
  for (const auto& eviction : evictions) gone.insert(eviction.job);
  std::erase_if(snapshot->running, [&](const auto& one) { return gone.contains(one.job); });
  std::erase_if(snapshot->pods,
                [&](const auto& pod) { return pod.of_job && gone.contains(pod.of_job->job); });
}

}  // namespace bimetal::bench
