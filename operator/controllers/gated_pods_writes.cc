// The part of GatedPodController that writes: gates off, words on pods, events, evictions.
#include <algorithm>
#include <thread>

#include "core/base/log.h"
#include "kube/codec/codec.h"
#include "kube/codec/json.h"
#include "operator/controllers/conditions.h"
#include "operator/controllers/gated_pods.h"
#include "operator/controllers/node_events.h"
#include "operator/pods/queue_gate.h"

namespace bimetal::op {
namespace {

constexpr int kTries = 5;
constexpr std::size_t kMostWords = 1000;
// A group's reasons may alternate with every cycle: they are told no more often than so.
constexpr Millis kTellPause = Seconds(10);
constexpr std::size_t kPodsWithEvents = 8;  // of one group; the words stand on every pod

struct Admission {
  std::string name_space, name;
  Uid uid;
  QueueName queue;
  NodeName node;
  std::shared_ptr<const QueuedPod> pod;
};

// What has become of a pod that changed under our patch. The pod as it is now; nullptr: its gate is
// off by our hand already. Error kNotFound: it is gone, or wants something else now.
Result<std::shared_ptr<const QueuedPod>> LookAgain(kube::Client& client, const Admission& order) {
  BIMETAL_TRY_ASSIGN(const api::Pod pod, client.Get<api::Pod>(order.name_space, order.name));
  auto queued = ReadQueuedPod(pod);
  const bool same = pod.metadata().uid() == order.uid.value &&
                    pod.metadata().deletion_timestamp().empty() && queued &&
                    queued->queue == order.queue.value && !queued->other_gates &&
                    queued->affinity == order.pod->affinity;
  if (!same) return Fail(ErrorCode::kNotFound, "the pod has changed");
  if (queued->gated) return queued;
  const auto node = pod.metadata().annotations().find(kPinnedNodeAnnotation);
  const std::string pinned = node == pod.metadata().annotations().end() ? "" : node->second;
  if (queued->admitted_to == order.queue.value && pinned == order.node.value)
    return std::shared_ptr<const QueuedPod>();
  return Fail(ErrorCode::kNotFound, "somebody else took the gate off");
}

// On a thread of the writer. Repeats where the pod changed meanwhile or the server asks for
// patience.
Status TakeGateOff(kube::Client& client, Admission order) {
  for (int attempt = 1;; ++attempt) {
    const auto patched = client.Patch<api::Pod>(
        order.name_space, order.name,
        AdmissionPatch(*order.pod, order.uid, order.queue, order.node), kube::PatchType::kMerge);
    if (patched) return {};
    const Error& error = patched.error();
    const bool conflict = error.code == ErrorCode::kConflict;
    if (attempt == kTries || !(conflict || IsRetriable(error))) return tl::unexpected<Error>(error);
    if (!conflict) {
      std::this_thread::sleep_for(std::chrono::milliseconds(
          std::clamp<std::int64_t>(error.retry_after_ms, 100 * attempt, 5000)));
    }
    BIMETAL_TRY_ASSIGN(auto now, LookAgain(client, order));
    if (!now) return {};
    order.pod = std::move(now);
  }
}

std::string WordsOf(const WaitReason& reason) {
  return Cut(reason.reason + ": " + reason.message, kMostWords);
}

// The reason in an annotation that we wrote.
std::string ReasonIn(const std::string& words) { return words.substr(0, words.find(':')); }

}  // namespace

void GatedPodController::Open(const std::string& id, Record& record, const PodRecord& pod,
                              const NodeName& node) {
  Opening opening;
  opening.holds = pod.holds;
  opening.holds.node = node;
  // Beside the pod itself, which holds nothing yet.
  opening.holds.uid = Uid{"assumed/" + pod.holds.uid.value};
  opening.queue = record.group.queue;
  const std::string uid = pod.holds.uid.value;
  record.opening[uid] = std::move(opening);
  told_pods_.erase(uid);
  told_owners_.erase(pod.queued->owner_uid);
  const Admission order{pod.holds.name_space, pod.holds.name, pod.holds.uid,
                        record.group.queue,   node,           pod.queued};
  Write write{"patch",
              "pods",
              order.name_space,
              order.name,
              AdmissionPatch(*order.pod, order.uid, order.queue, order.node),
              {},
              {}};
  write.run = [order](kube::Client& client) { return TakeGateOff(client, order); };
  write.done = [this, id, uid](const Status& status) { Opened(id, uid, status); };
  writes_.Submit(std::move(write));
}

void GatedPodController::Tell(const std::string& id, Record& record) {
  const PodGroup& group = record.group;
  for (const auto& [key, reason] : group.strays) {
    if (const PodRecord* pod = Find(key)) {
      TellPod(id, *pod, reason, true);
      TellOwner(*pod, reason);
    }
  }
  const WaitReason& reason = group.held.reason.empty() ? record.refusal : group.held;
  if (reason.reason.empty() || !record.opening.empty()) return;
  const bool news = std::any_of(group.waiting.begin(), group.waiting.end(), [&](const auto& key) {
    const PodRecord* pod = Find(key);
    if (pod == nullptr) return false;
    const auto told = told_pods_.find(pod->holds.uid.value);
    return (told == told_pods_.end() ? ReasonIn(pod->queued->waiting) : told->second.reason) !=
           reason.reason;
  });
  if (!news) return;
  const TimePoint now = clock_.Now();
  if (record.told_at && now < *record.told_at + kTellPause) {
    Wake(id, *record.told_at + kTellPause);
    return;
  }
  record.told_at = now;
  std::size_t events = 0;
  for (const auto& key : group.waiting) {
    const PodRecord* pod = Find(key);
    if (pod == nullptr) continue;
    TellPod(id, *pod, reason, events++ < kPodsWithEvents);
    TellOwner(*pod, reason);
  }
}

void GatedPodController::TellPod(const std::string& id, const PodRecord& pod,
                                 const WaitReason& reason, bool with_event) {
  const std::string uid = pod.holds.uid.value;
  const auto known = told_pods_.find(uid);
  const std::string before =
      known == told_pods_.end() ? ReasonIn(pod.queued->waiting) : known->second.reason;
  if (before == reason.reason || (known != told_pods_.end() && known->second.in_flight)) return;
  told_pods_[uid] = {reason.reason, true};
  Write write{"patch",
              "pods",
              pod.holds.name_space,
              pod.holds.name,
              WaitingPatch(pod.holds.uid, reason.reason.empty() ? "" : WordsOf(reason)),
              {},
              {}};
  write.run = [ns = pod.holds.name_space, name = pod.holds.name,
               body = write.body](kube::Client& client) -> Status {
    const auto patched = client.Patch<api::Pod>(ns, name, body, kube::PatchType::kMerge);
    if (!patched && patched.error().code != ErrorCode::kNotFound)
      return tl::unexpected<Error>(patched.error());
    return {};
  };
  write.done = [this, id, uid](const Status& status) {
    const auto told = told_pods_.find(uid);
    if (told == told_pods_.end()) return;
    told->second.in_flight = false;
    if (!status) {
      told_pods_.erase(told);
      Wake(id, clock_.Now() + kTellPause);
    }
    touched_.insert(id);  // the reason may have changed meanwhile
  };
  writes_.Submit(std::move(write));
  if (!with_event) return;
  api::ObjectReference object;
  object.set_api_version("v1");
  object.set_kind("Pod");
  object.set_name(pod.holds.name);
  object.set_namespace_(pod.holds.name_space);
  object.set_uid(uid);
  writes_.Submit(
      CreateEvent(ObjectEvent(object, reason.reason, reason.message, reason.never, clock_.Now())));
}

void GatedPodController::TellOwner(const PodRecord& pod, const WaitReason& reason) {
  const QueuedPod& queued = *pod.queued;
  if (queued.owner_uid.empty()) return;
  auto& told = told_owners_[queued.owner_uid];
  if (told == reason.reason) return;
  // After a restart: the pod says that it has been told.
  const bool known = told.empty() && ReasonIn(queued.waiting) == reason.reason;
  told = reason.reason;
  if (known) return;
  api::ObjectReference object;
  object.set_api_version(queued.owner_api_version);
  object.set_kind(queued.owner_kind);
  object.set_name(queued.owner_name);
  object.set_namespace_(pod.holds.name_space);
  object.set_uid(queued.owner_uid);
  writes_.Submit(CreateEvent(ObjectEvent(object, reason.reason,
                                         "pod " + pod.holds.name + ": " + reason.message,
                                         reason.never, clock_.Now())));
}

// A pod cannot be gated again, nor its affinity widened: where the stock scheduler does not place
// it on its node, only its owner can help.
void GatedPodController::TellStuck(const std::string& id, Record& record) {
  auto before = std::exchange(record.stuck, {});
  for (const auto& key : record.group.admitted) {
    const PodRecord* pod = Find(key);
    if (pod == nullptr || pod->queued->admitted_to.empty()) continue;
    if (pod->bound && !pod->queued->waiting.empty()) TellPod(id, *pod, {}, false);
    if (pod->bound || !pod->Unschedulable()) continue;
    const auto known = before.find(pod->holds.uid.value);
    const TimePoint since = known == before.end() ? clock_.Now() : known->second;
    record.stuck.emplace(pod->holds.uid.value, since);
    const TimePoint due = since + options_.unschedulable_after;
    if (clock_.Now() < due) {
      Wake(id, due);
      continue;
    }
    const std::string& node = pod->holds.node.value;
    TellPod(id, *pod,
            {"PodUnschedulable",
             (node.empty() ? std::string("the queue has let the pod in")
                           : "the pod has its place on node " + node) +
                 ", and the cluster's scheduler does not put it there: " + pod->waiting_message +
                 ". Mend that, or delete the pod and have its owner make a new one",
             true},
            true);
  }
}

bool GatedPodController::Evict(const core::queue::Eviction& eviction) {
  const auto it = records_.find(eviction.job.value);
  if (it == records_.end()) return false;
  const auto& admitted = it->second.group.admitted;
  const bool all_agree = std::all_of(admitted.begin(), admitted.end(), [&](const auto& key) {
    const PodRecord* pod = Find(key);
    return pod != nullptr && pod->queued->preemptible;
  });
  if (!all_agree) {
    Log(LogLevel::kWarning, "queued pods that are not preemptible are left alone",
        {{"group", it->second.group.title}, {"for", eviction.for_job.value}});
    return true;
  }
  for (const auto& key : admitted) {
    const PodRecord& pod = *Find(key);
    const std::string uid = pod.holds.uid.value;
    if (!evicting_.insert(uid).second) continue;
    Write write{"create",
                "pods/eviction",
                key.first,
                key.second,
                R"({"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":)" +
                    kube::JsonString(key.second) + R"(,"namespace":)" +
                    kube::JsonString(key.first) + R"(},"deleteOptions":{"preconditions":{"uid":)" +
                    kube::JsonString(uid) + "}}}",
                {},
                {}};
    write.run = [key, body = write.body](kube::Client& client) -> Status {
      const auto evicted =
          client.CreateRaw(kube::InfoOf<api::Pod>(), key.first, body, key.second, "eviction");
      if (!evicted && evicted.error().code != ErrorCode::kNotFound)
        return tl::unexpected<Error>(evicted.error());
      return {};
    };
    write.done = [this, uid, key](const Status& status) {
      if (status) return;
      evicting_.erase(uid);  // a disruption budget may have said no: asked again with the next plan
      Log(LogLevel::kWarning, "pod could not be evicted",
          {{"pod", key.first + "/" + key.second}, {"error", status.error().message}});
      changed_();
    };
    writes_.Submit(std::move(write));
    writes_.Submit(CreateEvent(ObjectEvent(
        [&] {
          api::ObjectReference object;
          object.set_api_version("v1");
          object.set_kind("Pod");
          object.set_name(key.second);
          object.set_namespace_(key.first);
          object.set_uid(uid);
          return object;
        }(),
        "Preempted", eviction.message, true, clock_.Now())));
  }
  return true;
}

}  // namespace bimetal::op
