// The part of ServiceController that has replicas placed: entries of the queue, and their pods.
#include <algorithm>
#include <charconv>

#include "core/base/log.h"
#include "kube/codec/codec.h"
#include "operator/controllers/create_once.h"
#include "operator/controllers/services.h"
#include "operator/pods/service_pod.h"

namespace bimetal::op {
namespace {

// Then what stood beside an old replica may have gone.
constexpr Millis kDisprovedFor = Minutes(1);

}  // namespace

core::Job ServiceController::EntryOf(const Record& record, const core::service::Wish& wish) const {
  const core::Service& service = *record.service;
  core::Job job = service.replica;
  job.uid = ReplicaUid(service.replica.uid.value, wish.index);
  job.name += "-" + std::to_string(wish.index);
  job.suspended = false;
  job.variants.clear();
  for (const std::size_t v : wish.variants) job.variants.push_back(service.replica.variants[v]);
  if (wish.standing) {
    job.preemption = core::Preemption::kNever;
    return job;
  }
  // What is beyond the minimum is a new wish and stands behind those that have waited longer.
  if (service.min_runtime.v > 0) job.preemption = core::Preemption::kAfterMinRuntime;
  if (const auto since = ParseTime(record.status.waiting_since()); since) {
    job.created = std::max(job.created, *since);
  }
  return job;
}

// Indexes of the replicas that may be evicted now.
std::set<int> ServiceController::Evictable(const Record& record) const {
  std::set<int> out;
  const auto keys = store_.pods_by_service.find(record.object.metadata().uid());
  if (!record.service || keys == store_.pods_by_service.end()) return out;
  std::vector<core::service::Replica> replicas;
  for (const auto& key : keys->second) {
    const PodRecord& pod = store_.pods.at(key);
    if (pod.ended || pod.deleting) continue;
    core::service::Replica replica;
    replica.index = pod.holds.of_job->index;
    replica.variant = core::VariantIndex(*record.service, pod.variant);
    replica.ready = pod.ready;
    replicas.push_back(replica);
  }
  for (const std::size_t i : core::service::Preemptible(*record.service, replicas)) {
    out.insert(replicas[i].index);
  }
  return out;
}

core::queue::Running ServiceController::RunningOf(const Record& record, int index,
                                                  const core::Pod& pod) const {
  const auto& spec = record.object.spec();
  core::queue::Running out;
  out.job = ReplicaUid(record.object.metadata().uid(), index);
  out.name_space = record.object.metadata().namespace_();
  out.name = record.object.metadata().name();
  out.queue = QueueName{spec.queue_name().empty() ? "default" : spec.queue_name()};
  out.started = clock_.Now();
  out.evictable = false;
  if (record.service) {
    out.priority = record.service->replica.priority;
    out.created = record.service->replica.created;
  }
  core::queue::Place place{.node = pod.node, .devices = 0, .requests = pod.requests};
  for (const auto& [vendor, devices] : pod.devices) {
    out.vendor = vendor;
    place.devices = out.devices = core::WholeDevices(devices);
  }
  if (!pod.node.value.empty()) out.places.push_back(std::move(place));
  return out;
}

void ServiceController::AddTo(core::queue::Snapshot* snapshot) const {
  if (!started_) return;
  for (const auto& [uid, record] : records_) {
    const std::set<int> evictable = Evictable(record);
    const auto keys = store_.pods_by_service.find(uid);
    if (keys != store_.pods_by_service.end()) {
      for (const auto& key : keys->second) {
        const PodRecord& pod = store_.pods.at(key);
        if (pod.ended || pod.holds.devices.empty()) continue;
        const int index = pod.holds.of_job->index;
        core::queue::Running running = RunningOf(record, index, pod.holds);
        running.started = pod.scheduled_at.value_or(pod.created);
        running.ending = pod.deleting;
        running.evictable = evictable.contains(index) &&
                            running.started + record.service->min_runtime <= clock_.Now();
        snapshot->running.push_back(std::move(running));
      }
    }
    for (const auto& [index, assumed] : record.assumed) {
      snapshot->running.push_back(RunningOf(record, index, assumed.pod));
    }
    for (const auto& wish : record.wishes) snapshot->pending.push_back(EntryOf(record, wish));
  }
}

std::vector<core::Pod> ServiceController::AssumedPods() const {
  std::vector<core::Pod> out;
  for (const auto& [uid, record] : records_) {
    for (const auto& [index, assumed] : record.assumed) out.push_back(assumed.pod);
  }
  return out;
}

void ServiceController::Count(std::map<std::string, QueueCounts>* counts) const {
  core::queue::Snapshot mine;
  AddTo(&mine);
  for (const core::Job& job : mine.pending) {
    const auto it = counts->find(job.queue.value);
    if (it != counts->end()) ++it->second.pending;
  }
  for (const auto& holding : mine.running) {
    const auto it = counts->find(holding.queue.value);
    if (it == counts->end()) continue;
    ++it->second.admitted;
    it->second.used[holding.vendor] += holding.devices;
  }
}

std::pair<ServiceController::Record*, int> ServiceController::Find(const Uid& entry) {
  const std::size_t slash = entry.value.rfind('/');
  if (slash == std::string::npos) return {nullptr, 0};
  const auto it = records_.find(entry.value.substr(0, slash));
  if (it == records_.end()) return {nullptr, 0};
  int index = -1;
  const char* end = entry.value.data() + entry.value.size();
  const auto [stop, problem] = std::from_chars(entry.value.data() + slash + 1, end, index);
  if (problem != std::errc() || stop != end) return {nullptr, 0};
  return {&it->second, index};
}

bool ServiceController::Assign(const core::queue::Assignment& assignment) {
  const auto [record, index] = Find(assignment.job);
  if (record == nullptr) return false;
  Place(*record, assignment, index);
  return true;
}

bool ServiceController::Refuse(const core::queue::Refusal& refusal) {
  const auto [record, index] = Find(refusal.job);
  if (record == nullptr) return false;
  record->refusals[index] = refusal;
  if (record->disproved_since + kDisprovedFor <= clock_.Now()) {
    record->disproved.clear();
    record->disproved_since = clock_.Now();
  }
  Wake(*record, clock_.Now());
  return true;
}

bool ServiceController::Evict(const core::queue::Eviction& eviction) {
  const auto [record, index] = Find(eviction.job);
  if (record == nullptr) return false;
  const auto keys = store_.pods_by_service.find(record->object.metadata().uid());
  if (keys == store_.pods_by_service.end()) return true;
  for (const auto& key : keys->second) {
    const PodRecord& pod = store_.pods.at(key);
    if (pod.ended || pod.deleting || pod.holds.of_job->index != index) continue;
    Log(LogLevel::kInfo, "replica preempted",
        {{"pod", pod.holds.name}, {"namespace", pod.holds.name_space}, {"why", eviction.message}});
    DeletePod(pod, false);
  }
  Wake(*record, clock_.Now());
  return true;
}

std::optional<core::queue::Assignment> ServiceController::PlaceOn(
    const Record& record, const core::service::Wish& wish, const NodeName& node,
    const std::string& without_pod) const {
  core::queue::Snapshot trial = options_.snapshot();
  std::erase_if(trial.nodes, [&](const core::Node& one) { return one.name != node; });
  const core::Pod* gone = nullptr;
  for (const auto& pod : trial.pods) {
    if (!without_pod.empty() && pod.uid.value == without_pod) gone = &pod;
  }
  if (gone != nullptr && gone->of_job) {
    std::erase_if(trial.running, [&](const auto& one) { return one.job == gone->of_job->job; });
  }
  std::erase_if(trial.pods, [&](const core::Pod& pod) {
    return pod.node != node || (!without_pod.empty() && pod.uid.value == without_pod);
  });
  trial.pending = {EntryOf(record, wish)};
  trial.holds.clear();
  auto plan = core::queue::Decide(trial);
  if (plan.assignments.empty() || !plan.evictions.empty()) return std::nullopt;
  return std::move(plan.assignments.front());
}

void ServiceController::Place(Record& record, const core::queue::Assignment& assignment,
                              int index) {
  const auto wish = std::find_if(record.wishes.begin(), record.wishes.end(),
                                 [&](const auto& one) { return one.index == index; });
  if (wish == record.wishes.end() || !record.service) return;  // nobody wants it any more
  const std::size_t variant = wish->variants[assignment.variant];
  record.wishes.erase(wish);
  record.refusals.erase(index);
  Log(LogLevel::kInfo, "replica placed",
      {{"service", record.service->replica.name},
       {"namespace", record.service->replica.name_space},
       {"variant", record.service->replica.variants[variant].name},
       {"pool", assignment.pool.value},
       {"index", index}});
  CreatePod(record, variant, index, assignment.pool, assignment.pods.front().node);
  Wake(record, clock_.Now());
}

std::string ServiceController::ResourceName(const std::string& pool, core::Vendor vendor) const {
  const auto it = store_.pools.find(pool);
  if (it != store_.pools.end() && !it->second.spec().resource_name().empty())
    return it->second.spec().resource_name();
  return std::string(core::DefaultResourceName(vendor));
}

void ServiceController::CreatePod(Record& record, std::size_t variant, int index,
                                  const PoolName& pool, const NodeName& node) {
  const core::Service& service = *record.service;
  const auto& chosen = service.replica.variants[variant];
  const ReplicaContext replica{
      record.object,          service, variant, index, ResourceName(pool.value, chosen.vendor),
      options_.priority_class};
  auto body = BuildReplicaPod(replica, node.value);
  if (!body) {
    record.setback = body.error().message;
    record.not_before = clock_.Now() + Minutes(5);
    return;
  }
  Assumed assumed;
  assumed.variant = chosen.name;
  assumed.revision = service.variants[variant].revision;
  assumed.pod.name_space = service.replica.name_space;
  assumed.pod.name = ReplicaPodName(replica);
  assumed.pod.uid = Uid{"assumed/" + assumed.pod.name_space + "/" + assumed.pod.name};
  assumed.pod.node = node;
  assumed.pod.requests = service.replica.roles.front().requests;
  assumed.pod.devices[chosen.vendor] = MilliDevice{chosen.devices_per_pod * kWholeDevice.v};
  Write write{"create", "pods", assumed.pod.name_space, assumed.pod.name, std::move(*body), {}, {}};
  const std::string uid = service.replica.uid.value;
  write.run = [ns = write.name_space, name = write.name, body = write.body,
               uid](kube::Client& client) {
    return CreateOnce<api::Pod>(client, ns, name, body, kServiceUidLabel, uid);
  };
  write.done = [this, uid, index, name = write.name](const Status& status) {
    const auto it = records_.find(uid);
    if (it == records_.end()) {
      touched_.insert(uid);  // an orphan, should it appear
      return;
    }
    Record& target = it->second;
    touched_.insert(uid);
    const auto found = target.assumed.find(index);
    if (found == target.assumed.end() || found->second.pod.name != name) return;
    if (status) {
      // The watch shows it now, or it was deleted in a gap of the watch and never will be seen.
      found->second.created = clock_.Now();
      return;
    }
    target.assumed.erase(found);
    target.setback = "pod " + name + " could not be created: " + status.error().message;
    target.not_before = clock_.Now() + Seconds(std::min(300, 5 << std::min(6, target.setbacks++)));
  };
  record.assumed[index] = std::move(assumed);
  writes_.Submit(std::move(write));
}

}  // namespace bimetal::op
