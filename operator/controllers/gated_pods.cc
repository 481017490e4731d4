#include "operator/controllers/gated_pods.h"

#include <algorithm>
#include <utility>

#include "core/base/log.h"
#include "core/queue/gate.h"
#include "operator/controllers/pause.h"

namespace bimetal::op {
namespace {

constexpr Millis kUnseen = Seconds(60);
constexpr Millis kSetbackPause = Seconds(5);
// Pods of a group arrive one by one: that some are missing is news only after so long.
constexpr Millis kIncompleteGrace = Seconds(5);

}  // namespace

GatedPodController::GatedPodController(const Clock& clock, Store& store,
                                       const NodeController& nodes, WriteSink& writes,
                                       GatedPodOptions options, std::function<void()> changed)
    : clock_(clock),
      store_(store),
      writes_(writes),
      options_(std::move(options)),
      changed_(std::move(changed)),
      meter_([&nodes](const std::string& node, core::Vendor vendor) {
        return nodes.ModelOf(node, vendor);
      }) {}

void GatedPodController::Start() {
  for (const auto& [key, pod] : store_.pods) OnPod(pod, false);
  started_ = true;
  TouchAll();
}

void GatedPodController::TouchAll() {
  for (const auto& [id, record] : records_) touched_.insert(id);
}

const PodRecord* GatedPodController::Find(const ObjectKey& key) const {
  const auto it = store_.pods.find(key);
  return it == store_.pods.end() || !it->second.queued ? nullptr : &it->second;
}

void GatedPodController::OnPod(const PodRecord& pod, bool gone) {
  const std::string& uid = pod.holds.uid.value;
  const ObjectKey key{pod.holds.name_space, pod.holds.name};
  const auto known = ids_.find(uid);
  if (!pod.queued && known == ids_.end()) return;
  if (gone)
    meter_.Gone(pod, clock_.Now());
  else
    meter_.See(pod, clock_.Now(), started_);
  const std::string id = gone || !pod.queued ? "" : PodGroupId(pod);
  if (known != ids_.end() && known->second != id) {
    const auto old = records_.find(known->second);
    if (old != records_.end()) {
      // A pod of the same name may have taken its place already.
      const PodRecord* now = Find(key);
      if (now == nullptr || now->holds.uid.value == uid || PodGroupId(*now) != known->second)
        old->second.pods.erase(key);
      old->second.opening.erase(uid);
    }
    touched_.insert(known->second);
    ids_.erase(known);
  }
  if (id.empty()) {
    told_pods_.erase(uid);
    evicting_.erase(uid);
    changed_();
    return;
  }
  ids_[uid] = id;
  Record& record = records_[id];
  record.pods.insert(key);
  if (!pod.queued->gated || pod.ended) record.opening.erase(uid);
  touched_.insert(id);
}

void GatedPodController::Reconcile() {
  if (!started_) return;
  const TimePoint now = clock_.Now();
  for (auto it = wakes_.begin(); it != wakes_.end();) {
    if (it->second <= now) {
      touched_.insert(it->first);
      it = wakes_.erase(it);
    } else {
      ++it;
    }
  }
  for (const auto& id : std::exchange(touched_, {})) {
    const auto it = records_.find(id);
    if (it == records_.end()) continue;
    if (it->second.pods.empty()) {
      records_.erase(it);
      wakes_.erase(id);
    } else {
      Follow(id, it->second);
    }
  }
  meter_.Prune(now);
  if (told_owners_.size() > 2 * records_.size() + 64) PruneOwners();
}

void GatedPodController::PruneOwners() {
  std::set<std::string> present;
  for (const auto& [id, record] : records_) {
    for (const auto& key : record.pods) {
      if (const PodRecord* pod = Find(key)) present.insert(pod->queued->owner_uid);
    }
  }
  std::erase_if(told_owners_, [&](const auto& entry) { return !present.contains(entry.first); });
}

std::optional<TimePoint> GatedPodController::NextWake() const {
  std::optional<TimePoint> next;
  for (const auto& [id, when] : wakes_) {
    if (!next || when < *next) next = when;
  }
  return next;
}

void GatedPodController::Wake(const std::string& id, TimePoint when) {
  const auto [it, fresh] = wakes_.emplace(id, when);
  if (!fresh && when < it->second) it->second = when;
}

void GatedPodController::Follow(const std::string& id, Record& record) {
  const TimePoint now = clock_.Now();
  ForgetUnseen(id, record);
  std::vector<const PodRecord*> members;
  for (const auto& key : record.pods) {
    if (const PodRecord* pod = Find(key)) members.push_back(pod);
  }
  if (members.empty()) return;
  record.group = MakePodGroup(members);
  if (!record.group.held.reason.empty()) record.refusal = {};
  TellStuck(id, record);
  if (record.not_before && now < *record.not_before) Wake(id, *record.not_before);
  if (record.group.held.reason != "PodGroupIncomplete") {
    record.incomplete_since.reset();
  } else if (!record.incomplete_since) {
    record.incomplete_since = now;
  }
  if (record.incomplete_since && now < *record.incomplete_since + kIncompleteGrace) {
    Wake(id, *record.incomplete_since + kIncompleteGrace);
  } else {
    Tell(id, record);
  }
  OpenAnywhere(id, record);
  if (std::exchange(record.wanted, WantsPlace(record)) != record.wanted) changed_();
}

// A gate that was taken off and is still seen on after this long was not taken off after all.
void GatedPodController::ForgetUnseen(const std::string& id, Record& record) {
  const TimePoint now = clock_.Now();
  std::erase_if(record.opening, [&](const auto& entry) {
    if (!entry.second.written) return false;
    if (*entry.second.written + kUnseen <= now) return true;
    Wake(id, *entry.second.written + kUnseen);
    return false;
  });
}

bool GatedPodController::WantsPlace(const Record& record) const {
  return record.group.wanted && record.group.held.reason.empty() && record.opening.empty() &&
         !(record.not_before && clock_.Now() < *record.not_before);
}

// Where nothing is asked of the queue but to be let in.
WaitReason GatedPodController::RefusedByQueue(const Record& record) const {
  core::Job job;
  job.queue = record.group.queue;
  job.name_space = record.group.waiting.front().first;
  const std::vector<core::Queue> queues = QueuesOf(store_);
  const core::queue::QueueTree tree(queues, {});
  const auto refused =
      core::queue::RefusedByQueue(job, tree.Find(job.queue), tree, store_.namespaces);
  if (!refused) return {};
  return {refused->reason, refused->message, refused->never};
}

void GatedPodController::OpenAnywhere(const std::string& id, Record& record) {
  const PodGroup& group = record.group;
  if (group.wanted || !group.held.reason.empty() || group.anywhere.empty()) return;
  if (!record.opening.empty() || (record.not_before && clock_.Now() < *record.not_before)) return;
  record.refusal = RefusedByQueue(record);
  if (!record.refusal.reason.empty()) {
    Tell(id, record);
    return;
  }
  for (const auto& key : group.anywhere) {
    if (const PodRecord* pod = Find(key)) Open(id, record, *pod, NodeName{});
  }
}

std::vector<core::Pod> GatedPodController::AssumedPods() const {
  std::vector<core::Pod> out;
  for (const auto& [id, record] : records_) {
    for (const auto& [uid, opening] : record.opening) {
      if (!opening.holds.node.value.empty()) out.push_back(opening.holds);
    }
  }
  return out;
}

std::map<std::pair<QueueName, core::Vendor>, std::int64_t> GatedPodController::HeldBy(
    const Record& record) const {
  std::map<std::pair<QueueName, core::Vendor>, std::int64_t> out;
  const auto add = [&out](const QueueName& queue, const core::Pod& pod) {
    for (const auto& [vendor, held] : pod.devices) out[{queue, vendor}] += core::WholeDevices(held);
  };
  for (const auto& key : record.pods) {
    const PodRecord* pod = Find(key);
    if (pod == nullptr || pod->ended || pod->queued->gated || pod->queued->admitted_to.empty())
      continue;
    add(QueueName{pod->queued->admitted_to}, pod->holds);
  }
  for (const auto& [uid, opening] : record.opening) add(opening.queue, opening.holds);
  return out;
}

core::queue::Running GatedPodController::RunningOf(const Uid& id, const Record& record,
                                                   const QueueName& queue, core::Vendor vendor,
                                                   std::int64_t devices) const {
  core::queue::Running out;
  out.job = id;
  out.queue = queue;
  out.vendor = vendor;
  out.devices = devices;
  out.started = clock_.Now();
  out.evictable = !record.pods.empty() && record.opening.empty();
  if (record.group.wanted) {
    out.name_space = record.group.wanted->name_space;
    out.name = record.group.wanted->name;
    out.priority = record.group.wanted->priority;
    out.created = record.group.wanted->created;
  }
  const auto add = [&](const core::Pod& pod) {
    const auto held = pod.devices.find(vendor);
    if (held == pod.devices.end() || pod.node.value.empty()) return;
    out.places.push_back(
        {.node = pod.node, .devices = core::WholeDevices(held->second), .requests = pod.requests});
  };
  for (const auto& key : record.pods) {
    const PodRecord* pod = Find(key);
    if (pod == nullptr || pod->ended || pod->queued->gated ||
        pod->queued->admitted_to != queue.value)
      continue;
    out.started = std::min(out.started, pod->scheduled_at.value_or(pod->created));
    out.evictable = out.evictable && pod->queued->preemptible;
    out.ending = out.ending || pod->deleting;
    add(pod->holds);
  }
  for (const auto& [uid, opening] : record.opening) {
    if (opening.queue == queue) add(opening.holds);
  }
  return out;
}

void GatedPodController::AddTo(core::queue::Snapshot* snapshot) const {
  if (!started_) return;
  for (const auto& [id, record] : records_) {
    for (const auto& [key, devices] : HeldBy(record)) {
      snapshot->running.push_back(RunningOf(Uid{id}, record, key.first, key.second, devices));
    }
    if (WantsPlace(record)) snapshot->pending.push_back(*record.group.wanted);
  }
}

void GatedPodController::Count(std::map<std::string, QueueCounts>* counts) const {
  for (const auto& [id, record] : records_) {
    std::set<std::string> admitted;
    for (const auto& [key, devices] : HeldBy(record)) {
      const auto it = counts->find(key.first.value);
      if (it == counts->end()) continue;
      it->second.used[key.second] += devices;
      if (admitted.insert(key.first.value).second) ++it->second.admitted;
    }
    const auto it = counts->find(record.group.queue.value);
    if (it != counts->end() && !record.group.waiting.empty() && record.opening.empty())
      ++it->second.pending;
  }
}

bool GatedPodController::Refuse(const core::queue::Refusal& refusal) {
  const auto it = records_.find(refusal.job.value);
  if (it == records_.end()) return false;
  it->second.refusal = {refusal.reason, refusal.message, refusal.never};
  Tell(it->first, it->second);
  return true;
}

bool GatedPodController::Assign(const core::queue::Assignment& assignment) {
  const auto it = records_.find(assignment.job.value);
  if (it == records_.end()) return false;
  auto& [id, record] = *it;
  const PodGroup& group = record.group;
  std::vector<std::pair<const PodRecord*, NodeName>> pods;
  for (const auto& placement : assignment.pods) {
    const auto index = static_cast<std::size_t>(placement.index);
    const bool known = placement.role < group.places.size() && placement.index >= 0 &&
                       index < group.places[placement.role].size();
    const PodRecord* pod = known ? Find(group.places[placement.role][index]) : nullptr;
    if (pod == nullptr || !pod->queued->gated || pod->deleting) {
      touched_.insert(id);  // it has changed meanwhile: nothing is opened, the next cycle decides
      return true;
    }
    pods.emplace_back(pod, placement.node);
  }
  Log(LogLevel::kInfo, "queued pods placed",
      {{"group", group.title},
       {"namespace", group.wanted->name_space},
       {"queue", group.queue.value},
       {"pool", assignment.pool.value},
       {"devices", assignment.devices}});
  if (options_.placed && group.admitted.empty())
    options_.placed(group.queue.value, clock_.Now() - group.wanted->created);
  record.refusal = {};
  for (const auto& [pod, node] : pods) Open(id, record, *pod, node);
  for (const auto& key : group.anywhere) {
    if (const PodRecord* pod = Find(key)) Open(id, record, *pod, NodeName{});
  }
  return true;
}

void GatedPodController::Opened(const std::string& id, const std::string& pod_uid,
                                const Status& status) {
  const auto it = records_.find(id);
  if (it == records_.end()) return;
  Record& record = it->second;
  const auto opening = record.opening.find(pod_uid);
  touched_.insert(id);
  if (status) {
    record.setbacks = 0;
    // Until the watch shows it; it may have done so already.
    if (opening != record.opening.end()) opening->second.written = clock_.Now();
    return;
  }
  if (opening != record.opening.end()) record.opening.erase(opening);
  changed_();
  if (status.error().code == ErrorCode::kNotFound) return;  // deleted, or not as it was
  record.refusal = {"PodRefused",
                    "the API server did not let the pod go: " + status.error().message, false};
  record.not_before = clock_.Now() + Doubled(kSetbackPause, ++record.setbacks);
  Log(LogLevel::kWarning, "gate could not be taken off",
      {{"group", record.group.title}, {"error", status.error().message}});
}

}  // namespace bimetal::op
