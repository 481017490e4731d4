// What a server sends of a cluster, one object a part (a job, queue, pool, node or pod; whatever of
// these a part can be read as, it is), up to the decision about it.
#include <algorithm>

#include "api/gpujob.pb.h"
#include "core/queue/record.h"
#include "core/queue/report.h"
#include "operator/state/store.h"
#include "tests/fuzz/round_trip.h"

namespace {

using bimetal::core::queue::Snapshot;

template <class Message>
bool Named(std::string_view part, Message* object) {
  return bimetal::kube::FromJson(part, object) && !object->metadata().name().empty();
}

void Add(std::string_view part, bimetal::op::Store& store, Snapshot& snapshot) {
  bimetal::api::GPUQueue queue;
  if (Named(part, &queue)) store.queues[queue.metadata().name()] = queue;
  bimetal::api::GPUPool pool;
  if (Named(part, &pool)) store.pools[pool.metadata().name()] = pool;
  bimetal::api::Pod pod;
  if (Named(part, &pod)) store.PutPod(bimetal::op::MakePodRecord(pod, store.resources));
  bimetal::api::Node node;
  if (Named(part, &node)) {
    store.nodes[node.metadata().name()] = bimetal::op::MakeNodeRecord(node);
  }
  bimetal::api::GPUJob job;
  if (!Named(part, &job)) return;
  if (auto checked = bimetal::core::JobFromApi(job, 0)) snapshot.pending.push_back(*checked);
}

// As if every device that a node offers had passed its validation.
void OpenDevices(const std::vector<bimetal::core::Pool>& pools, bimetal::core::Node& node,
                 const std::map<std::string, std::int64_t>& offered) {
  for (const auto vendor : bimetal::core::kVendors) {
    const auto* pool = bimetal::op::PoolFor(pools, vendor, node.labels);
    if (pool == nullptr) continue;
    const auto count = offered.find(pool->resource_name);
    if (count == offered.end()) continue;
    auto& devices = node.devices[vendor];
    devices.pool = pool->name;
    devices.offered = count->second;
    for (std::int64_t i = 0; i < std::min<std::int64_t>(count->second, 16); ++i) {
      devices.devices.push_back({.id = {"GPU-" + std::to_string(i)}, .model = "X", .open = true});
    }
  }
}

}  // namespace

BIMETAL_FUZZ(text) {
  op::Store store;
  Snapshot snapshot;
  for (const auto& part : Parts(text, 8)) Add(part, store, snapshot);
  snapshot.now = TimePoint{1'800'000'000'000};
  snapshot.pools = op::PoolsOf(store);
  snapshot.queues = op::QueuesOf(store);
  for (const auto& [name, record] : store.nodes) {
    snapshot.nodes.push_back(record.node);
    OpenDevices(snapshot.pools, snapshot.nodes.back(), record.offered);
  }
  for (const auto& [key, record] : store.pods) {
    if (!record.ended) snapshot.pods.push_back(record.holds);
  }
  Require(core::queue::ReportQueues(snapshot).size() == snapshot.queues.size());
  const auto plan = core::queue::Decide(snapshot);
  Require(plan.assignments.size() + plan.refusals.size() == snapshot.pending.size());
  const auto again = core::queue::ReadSnapshot(core::queue::WriteSnapshot(snapshot));
  Require(again.has_value());
  Require(core::queue::WritePlan(core::queue::Decide(*again)) == core::queue::WritePlan(plan));
}
