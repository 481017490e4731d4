#include "cli/live.h"

#include <algorithm>
#include <utility>

#include "core/base/quantity.h"
#include "core/model/job_history.h"
#include "operator/state/store.h"

namespace bimetal::cli {
namespace {

template <class T>
Status List(kube::Client& client, std::vector<T>* out) {
  BIMETAL_TRY_ASSIGN(auto list, client.ListAll<T>());
  *out = std::move(list.items);
  return {};
}

op::Store StoreOf(const LiveObjects& live) {
  op::Store store;
  for (const auto& pool : live.pools) store.pools[pool.metadata().name()] = pool;
  for (const auto& pool : op::PoolsOf(store)) store.resources[pool.resource_name] = pool.vendor;
  for (const auto& queue : live.queues) store.queues[queue.metadata().name()] = queue;
  for (const auto& node : live.nodes) {
    store.nodes[node.metadata().name()] = op::MakeNodeRecord(node);
  }
  for (const auto& node : live.gpu_nodes) store.gpu_nodes[node.metadata().name()] = node;
  for (const auto& pod : live.pods) store.PutPod(op::MakePodRecord(pod, store.resources));
  for (const auto& ns : live.namespaces) {
    store.namespaces[ns.metadata().name()] = {ns.metadata().labels().begin(),
                                              ns.metadata().labels().end()};
  }
  for (const auto& priority : live.priorities) {
    store.priorities[priority.metadata().name()] = priority.value();
  }
  return store;
}

// What the GPUNode says of its devices; the operator alone writes it.
std::map<core::Vendor, core::NodeDevices> DevicesOf(const op::NodeRecord& node,
                                                    const api::GPUNode& gpu_node,
                                                    const std::vector<core::Pool>& pools) {
  std::map<core::Vendor, core::NodeDevices> out;
  for (const auto& from : gpu_node.status().devices()) {
    const auto vendor = core::ParseVendor(from.vendor());
    if (!vendor) continue;
    core::Device device;
    device.id = DeviceId{from.id()};
    device.model = from.model();
    if (const auto bytes = ParseQuantity(from.memory()); !from.memory().empty() && bytes) {
      device.memory_bytes = *bytes;
    }
    device.open = from.open();
    out[*vendor].devices.push_back(std::move(device));
  }
  for (auto& [vendor, devices] : out) {
    std::sort(devices.devices.begin(), devices.devices.end(),
              [](const auto& a, const auto& b) { return a.id < b.id; });
    const core::Pool* pool = op::PoolFor(pools, vendor, node.node.labels);
    if (pool == nullptr) continue;
    devices.pool = pool->name;
    const auto offered = node.offered.find(pool->resource_name);
    if (offered != node.offered.end()) devices.offered = offered->second;
  }
  return out;
}

bool HoldsAPlace(const api::GPUJobStatus& status) {
  return status.state() == "Starting" || status.state() == "Running" ||
         status.state() == "Restarting" || status.state() == "Stopping";
}

void AddJob(const api::GPUJob& object, const op::Store& store, core::queue::Snapshot* out) {
  std::int64_t priority = 0;
  if (const auto it = store.priorities.find(object.spec().priority_class_name());
      it != store.priorities.end()) {
    priority = it->second;
  }
  const auto job = core::JobFromApi(object, priority);
  if (!job) return;
  const auto& status = object.status();
  const auto vendor = core::ParseVendor(status.assignment().vendor());
  if (HoldsAPlace(status) && vendor) {
    core::queue::Running running;  // its pods are counted as pods; nobody is evicted here
    running.job = job->uid;
    running.name_space = job->name_space;
    running.name = job->name;
    running.queue = job->queue;
    running.priority = job->priority;
    running.created = job->created;
    running.vendor = *vendor;
    running.pool = PoolName{status.assignment().pool()};
    running.devices = status.assignment().devices();
    running.evictable = false;
    out->running.push_back(std::move(running));
  } else if ((status.state().empty() || status.state() == "Pending") && !job->suspended) {
    out->pending.push_back(core::AsWished(*job, status, out->now));
  }
}

}  // namespace

Result<LiveObjects> ReadLive(kube::Client& client) {
  LiveObjects live;
  BIMETAL_TRY(List(client, &live.nodes));
  BIMETAL_TRY(List(client, &live.gpu_nodes));
  BIMETAL_TRY(List(client, &live.pods));
  BIMETAL_TRY(List(client, &live.pools));
  BIMETAL_TRY(List(client, &live.queues));
  BIMETAL_TRY(List(client, &live.jobs));
  BIMETAL_TRY(List(client, &live.namespaces));
  BIMETAL_TRY(List(client, &live.priorities));
  return live;
}

core::queue::Snapshot SnapshotOf(const LiveObjects& live, TimePoint now) {
  const op::Store store = StoreOf(live);
  core::queue::Snapshot out;
  out.now = now;
  out.pools = op::PoolsOf(store);
  out.queues = op::QueuesOf(store);
  out.namespaces = store.namespaces;
  for (const auto& [name, record] : store.nodes) {
    core::Node node = record.node;
    if (const auto gpu = store.gpu_nodes.find(name); gpu != store.gpu_nodes.end()) {
      node.devices = DevicesOf(record, gpu->second, out.pools);
      node.cordoned = node.cordoned || gpu->second.spec().hold();
    }
    out.nodes.push_back(std::move(node));
  }
  for (const auto& [key, pod] : store.pods) {
    if (!pod.ended) out.pods.push_back(pod.holds);
  }
  for (const auto& job : live.jobs) AddJob(job, store, &out);
  return out;
}

}  // namespace bimetal::cli
