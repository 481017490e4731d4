#include "operator/controllers/services.h"

#include <algorithm>

#include "core/base/log.h"
#include "operator/controllers/conditions.h"
#include "operator/controllers/pause.h"
#include "operator/pods/service_pod.h"

namespace bimetal::op {
namespace {

// Pauses before new replicas after one could not be started, doubled with each that follows.
constexpr Millis kSetbackPause = Seconds(2);
constexpr Millis kUnseen = Seconds(60);

core::service::Replica ReplicaOf(const core::Service& service, int index,
                                 const std::string& variant, const std::string& revision) {
  core::service::Replica replica;
  replica.index = index;
  replica.variant = core::VariantIndex(service, variant);
  replica.current = replica.variant < service.variants.size() &&
                    service.variants[replica.variant].revision == revision;
  return replica;
}

bool SameWishes(const std::vector<core::service::Wish>& a,
                const std::vector<core::service::Wish>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.index == y.index && x.variants == y.variants && x.standing == y.standing;
  });
}

}  // namespace

ServiceController::ServiceController(const Clock& clock, Store& store, WriteSink& writes,
                                     ServiceOptions options, std::function<void()> changed)
    : clock_(clock),
      store_(store),
      writes_(writes),
      options_(std::move(options)),
      changed_(std::move(changed)) {}

void ServiceController::Start() {
  started_ = true;
  TouchAll();
  for (const auto& [uid, pods] : store_.pods_by_service) touched_.insert(uid);
}

void ServiceController::TouchAll() {
  for (auto& [uid, record] : records_) {
    touched_.insert(uid);
    record.disproved.clear();  // the fleet may have changed
  }
}

void ServiceController::OnService(const api::GPUService& service) {
  const std::string& uid = service.metadata().uid();
  auto [it, fresh] = records_.try_emplace(uid);
  Record& record = it->second;
  // The status is ours: read once, at first sight, then only written.
  if (fresh) record.status = record.written = service.status();
  if (record.object.metadata().generation() != service.metadata().generation()) {
    // What was refused may fit as it is now, and what failed may work.
    record.refusals.clear();
    record.not_before.reset();
    record.setbacks = 0;
    record.setback.clear();
    record.disproved.clear();
    changed_();
  }
  record.object = service;
  touched_.insert(uid);
}

void ServiceController::OnServiceDeleted(const api::GPUService& service) {
  records_.erase(service.metadata().uid());
  touched_.insert(service.metadata().uid());  // its pods are orphans now
  changed_();
}

void ServiceController::OnPod(const PodRecord& pod, bool gone) {
  if (gone) {
    deleting_.erase({pod.holds.uid.value, false});
    deleting_.erase({pod.holds.uid.value, true});
  }
  if (pod.service.empty()) return;
  touched_.insert(pod.service);
  const auto it = records_.find(pod.service);
  if (it != records_.end()) {
    const auto assumed = it->second.assumed.find(pod.holds.of_job->index);
    if (assumed != it->second.assumed.end() && assumed->second.pod.name == pod.holds.name) {
      it->second.assumed.erase(assumed);
    }
  }
  if (gone || pod.ended) changed_();
}

void ServiceController::OnAddress(const api::Service& address, bool gone) {
  const auto label = address.metadata().labels().find(kServiceUidLabel);
  if (label == address.metadata().labels().end()) return;
  const auto it = records_.find(label->second);
  if (it == records_.end() || it->second.object.metadata().name() != address.metadata().name()) {
    return;
  }
  Record& record = it->second;
  const int port = record.object.spec().port() == 0 ? 80 : record.object.spec().port();
  const auto& spec = address.spec();
  const auto selector = spec.selector().find(kServiceUidLabel);
  const bool sound = !gone && spec.ports_size() == 1 && spec.ports(0).port() == port &&
                     spec.selector().size() == 1 && selector != spec.selector().end() &&
                     selector->second == label->second;
  if (sound || record.address_in_flight) return;
  record.address_generation = -1;
  touched_.insert(label->second);
}

void ServiceController::Wake(Record& record, TimePoint when) {
  if (!record.wake || when < *record.wake) record.wake = when;
}

std::optional<TimePoint> ServiceController::NextWake() const {
  std::optional<TimePoint> next;
  for (const auto& [uid, record] : records_) {
    if (record.wake && (!next || *record.wake < *next)) next = record.wake;
  }
  return next;
}

const api::GPUServiceStatus* ServiceController::StatusOf(const std::string& uid) const {
  const auto it = records_.find(uid);
  return it == records_.end() ? nullptr : &it->second.status;
}

void ServiceController::Reconcile() {
  if (!started_) return;
  const TimePoint now = clock_.Now();
  for (const auto& [uid, record] : records_) {
    if (record.wake && *record.wake <= now) touched_.insert(uid);
  }
  for (const auto& uid : std::exchange(touched_, {})) {
    if (const auto it = records_.find(uid); it != records_.end()) {
      Follow(it->second);
      continue;
    }
    const auto orphans = store_.pods_by_service.find(uid);
    if (orphans == store_.pods_by_service.end()) continue;
    for (const auto& key : orphans->second) DeletePod(store_.pods.at(key), false);
  }
}

void ServiceController::Follow(Record& record) {
  record.wake.reset();
  ReadSpec(record);
  if (!record.spec_error.empty()) {
    // What runs goes on as it was.
    SetWishes(record, {});
    FillMisconfigured(record.spec_error, record.object.metadata().generation(), clock_.Now(),
                      &record.status);
    WriteStatus(record);
    return;
  }
  ForgetUnseen(record);
  Survey survey = Look(record);
  TakeSteps(record, survey);
  TakeFreedPlaces(record);
  EnsureAddress(record);
  FillStatus(*record.service, survey.facts, record.object.metadata().generation(), clock_.Now(),
             &record.status);
  record.status.set_selector(ReplicaSelector(record.service->replica.uid.value));
  WriteStatus(record);
}

void ServiceController::ReadSpec(Record& record) {
  const auto& spec = record.object.spec();
  std::int64_t priority = 0;
  record.spec_error.clear();
  if (!spec.priority_class_name().empty()) {
    const auto it = store_.priorities.find(spec.priority_class_name());
    if (it == store_.priorities.end()) {
      record.spec_error = "spec.priorityClassName: there is no PriorityClass \"" +
                          spec.priority_class_name() + "\"; create it or leave the field out";
      return;
    }
    priority = it->second;
  }
  auto service = core::ServiceFromApi(record.object, priority);
  if (!service) {
    record.spec_error = service.error().message;
    return;
  }
  record.service = std::move(*service);
  // It is being deleted and waits for its replicas: no new ones.
  if (!record.object.metadata().deletion_timestamp().empty()) record.service->replicas = 0;
}

// A pod that was made and is still not seen after this long was deleted before the watch showed it.
void ServiceController::ForgetUnseen(Record& record) {
  const TimePoint now = clock_.Now();
  for (auto it = record.assumed.begin(); it != record.assumed.end();) {
    if (!it->second.created) {
      ++it;
    } else if (*it->second.created + kUnseen <= now) {
      it = record.assumed.erase(it);
    } else {
      Wake(record, *it->second.created + kUnseen);
      ++it;
    }
  }
}

bool ServiceController::NodeLost(Record& record, const PodRecord& pod) {
  if (!pod.bound) return false;
  const auto node = store_.nodes.find(pod.holds.node.value);
  if (node == store_.nodes.end()) return true;
  if (!node->second.not_ready_since) return false;
  const TimePoint lost = *node->second.not_ready_since + options_.attempt.node_lost_after;
  if (lost <= clock_.Now()) return true;
  Wake(record, lost);
  return false;
}

void ServiceController::Setback(Record& record, const PodRecord& pod, const std::string& what) {
  if (deleting_.contains({pod.holds.uid.value, false})) return;  // counted already
  record.setback = "pod " + pod.holds.name + " " + what;
  record.not_before = clock_.Now() + Doubled(kSetbackPause, ++record.setbacks);
  Log(LogLevel::kWarning, "replica could not be kept",
      {{"service", record.object.metadata().name()},
       {"namespace", record.object.metadata().namespace_()},
       {"what", record.setback}});
}

ServiceController::Survey ServiceController::Look(Record& record) {
  Survey survey;
  survey.facts.variants.resize(record.service->variants.size());
  const auto keys = store_.pods_by_service.find(record.service->replica.uid.value);
  if (keys != store_.pods_by_service.end()) {
    for (const auto& key : keys->second) LookAt(record, store_.pods.at(key), survey);
  }
  for (const auto& [index, assumed] : record.assumed) {
    auto replica = ReplicaOf(*record.service, index, assumed.variant, assumed.revision);
    replica.seen = false;
    survey.situation.replicas.push_back(replica);
  }
  auto& facts = survey.facts;
  for (const auto& replica : survey.situation.replicas) {
    ++facts.live;
    if (replica.ready) ++facts.ready;
    if (replica.current) ++facts.updated;
    if (replica.variant >= facts.variants.size()) continue;
    ++facts.variants[replica.variant].live;
    if (replica.ready) ++facts.variants[replica.variant].ready;
  }
  facts.wishing = facts.ready < facts.live;
  if (facts.ready > 0 && facts.ready == facts.live) {
    record.setbacks = 0;
    record.setback.clear();
  }
  return survey;
}

void ServiceController::LookAt(Record& record, const PodRecord& pod, Survey& survey) {
  const int index = pod.holds.of_job->index;
  const bool lost = NodeLost(record, pod);
  const bool twin = survey.pods.contains(index);  // two operators, or a create that came late
  const TimePoint due = pod.created + options_.attempt.unschedulable_after;
  const bool unplaced = pod.Unschedulable() && !pod.bound && !pod.deleting && !pod.ended;
  const bool refused = unplaced && due <= clock_.Now();
  if (unplaced && !refused) Wake(record, due);
  if (pod.deleting || pod.ended || lost || twin || refused) {
    survey.situation.taken.insert(index);
    if (pod.deleting && !pod.ended) ++survey.facts.draining;
    if (pod.ended && !pod.deleting) {
      Setback(record, pod, "ended: " + pod.end_reason + " " + pod.end_message);
    }
    if (refused) {
      Setback(record, pod,
              "was not placed on " + pod.holds.node.value + ": " + pod.waiting_message);
    }
    if (!pod.deleting || lost) DeletePod(pod, lost);
    return;
  }
  auto replica = ReplicaOf(*record.service, index, pod.variant, pod.revision);
  replica.ready = pod.ready;
  survey.situation.replicas.push_back(replica);
  survey.pods[index] = &pod;
  auto& facts = survey.facts;
  if (pod.ready || pod.waiting_reason.empty() || pod.Unschedulable()) return;
  const bool image = pod.waiting_reason.find("Image") != std::string::npos ||
                     pod.waiting_reason == "RegistryUnavailable";
  facts.trouble = image ? "ImagePullFailed" : "ReplicaCrashes";
  facts.trouble_message =
      "pod " + pod.holds.name + " waits: " + pod.waiting_reason + ": " + pod.waiting_message;
}

void ServiceController::TakeSteps(Record& record, Survey& survey) {
  auto& situation = survey.situation;
  situation.refused = !record.refusals.empty();
  if (options_.snapshot) {
    situation.fits_in_place_of = [&](const core::service::Wish& wish,
                                     const core::service::Replica& old) {
      // A proof costs a decision: what was disproved is not tried again before something changes.
      const PodRecord* pod = survey.pods.at(old.index);
      if (record.disproved.contains(pod->holds.uid.value)) return false;
      const bool fits = PlaceOn(record, wish, pod->holds.node, pod->holds.uid.value).has_value();
      if (!fits) record.disproved.insert(pod->holds.uid.value);
      return fits;
    };
  }
  auto step = core::service::NextStep(*record.service, situation);
  for (const int index : step.drain) DeletePod(*survey.pods.at(index), false);
  if (step.replace) {
    const PodRecord& pod = *survey.pods.at(step.replace->old_index);
    record.freed.push_back(
        Freed{pod.holds.uid.value, {pod.holds.name_space, pod.holds.name}, pod.holds.node});
    DeletePod(pod, false);
  }
  auto& facts = survey.facts;
  facts.rolling = step.rolling;
  facts.too_small = step.too_small;
  facts.wishing = facts.wishing || !step.wishes.empty();
  if (!record.setback.empty() && facts.trouble.empty()) {
    facts.trouble = "ReplicaFailed";
    facts.trouble_message = record.setback;
  }
  if (!record.address_error.empty()) {
    facts.trouble = "ServiceRefused";
    facts.trouble_message = record.address_error;
  }
  SetWishes(record, std::move(step.wishes));
  for (std::size_t v = 0; v < facts.variants.size(); ++v) {
    facts.variants[v].desired = facts.variants[v].live;
  }
  for (const auto& wish : record.wishes) {
    ++facts.variants[wish.variants.front()].desired;
    const auto refusal = record.refusals.find(wish.index);
    if (refusal == record.refusals.end()) continue;
    if (facts.blocked++ == 0) {
      facts.blocked_reason = refusal->second.reason;
      facts.blocked_message = refusal->second.message;
    }
    for (const std::size_t v : wish.variants) {
      auto& variant = facts.variants[v];
      ++variant.blocked;
      if (!variant.reason.empty()) continue;
      variant.reason = refusal->second.reason;
      variant.message = refusal->second.message;
      for (const auto& blocker : refusal->second.blockers) {
        if (blocker.variant != record.service->replica.variants[v].name) continue;
        variant.reason = blocker.reason;
        variant.message = "needs " + std::to_string(blocker.need) + " devices, " +
                          std::to_string(blocker.free) + " are free; it can start when " +
                          blocker.unblocked_by;
      }
    }
  }
}

void ServiceController::SetWishes(Record& record, std::vector<core::service::Wish> wishes) {
  if (wishes.empty()) {
    record.status.clear_waiting_since();
  } else if (record.status.waiting_since().empty()) {
    record.status.set_waiting_since(FormatTime(clock_.Now()));
  }
  if (record.not_before && clock_.Now() < *record.not_before && !wishes.empty()) {
    Wake(record, *record.not_before);
    wishes.clear();
  }
  if (!SameWishes(record.wishes, wishes)) {
    record.disproved.clear();
    if (!wishes.empty()) changed_();
  }
  record.wishes = std::move(wishes);
  std::set<int> indexes;
  for (const auto& wish : record.wishes) indexes.insert(wish.index);
  std::erase_if(record.refusals, [&](const auto& one) { return !indexes.contains(one.first); });
}

// The old replica is gone: its successor takes its place before anybody else is asked.
void ServiceController::TakeFreedPlaces(Record& record) {
  for (auto it = record.freed.begin(); it != record.freed.end();) {
    const auto pod = store_.pods.find(it->pod);
    if (pod != store_.pods.end() && pod->second.holds.uid.value == it->pod_uid) {
      ++it;
      continue;
    }
    const NodeName node = it->node;
    it = record.freed.erase(it);
    if (record.wishes.empty()) continue;
    const core::service::Wish wish = record.wishes.front();
    if (const auto assignment = PlaceOn(record, wish, node, "")) {
      Place(record, *assignment, wish.index);
    }
  }
}

}  // namespace bimetal::op
