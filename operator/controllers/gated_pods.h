#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "operator/controllers/cycle.h"
#include "operator/controllers/pod_groups.h"
#include "operator/controllers/pod_meter.h"
#include "operator/state/store.h"
#include "operator/writer/writer.h"

namespace bimetal::op {

struct GatedPodOptions {
  Millis unschedulable_after = Seconds(5);  // then a pinned pod is told to be stuck
  // Told of every placement: the queue and how long the group had waited. May be empty.
  std::function<void(const std::string& queue, Millis wait)> placed;
};

// Queues pods that somebody else made and that wait behind our gate: makes one queue entry of each
// group, pins its pods and takes the gate off when it has a place, and says on the pods why it has
// none. It never makes or deletes such a pod; it evicts a group that calls itself preemptible. All
// that it knows stands on the pods. Loop thread only.
class GatedPodController final : public Claimant {
 public:
  // `changed` is called when a scheduling cycle may find something new.
  GatedPodController(const Clock& clock, Store& store, const NodeController& nodes,
                     WriteSink& writes, GatedPodOptions options, std::function<void()> changed);

  void Start();
  // After the store has taken in the pod; `gone`: the object no longer exists.
  void OnPod(const PodRecord& pod, bool gone);
  // Queues, pools or namespaces have changed.
  void TouchAll();

  // Follows every touched group. Call before a scheduling cycle.
  void Reconcile();
  std::optional<TimePoint> NextWake() const;

  // Device time of the admitted pods, by owner.
  std::vector<JobRow> Usage() const { return meter_.Rows(clock_.Now()); }

  void AddTo(core::queue::Snapshot* snapshot) const override;
  std::vector<core::Pod> AssumedPods() const override;
  void Count(std::map<std::string, QueueCounts>* counts) const override;
  bool Assign(const core::queue::Assignment& assignment) override;
  bool Refuse(const core::queue::Refusal& refusal) override;
  bool Evict(const core::queue::Eviction& eviction) override;

 private:
  // A pod whose gate is being taken off, until the watch shows it without.
  struct Opening {
    core::Pod holds;
    QueueName queue;
    std::optional<TimePoint> written;  // the patch has succeeded
  };
  struct Record {
    std::set<ObjectKey> pods;
    PodGroup group;
    std::map<std::string, Opening> opening;  // by pod uid
    WaitReason refusal;                      // of the last cycle
    std::optional<TimePoint> not_before;     // no new try before: a patch was refused
    int setbacks = 0;                        // in a row
    std::optional<TimePoint> told_at, incomplete_since;
    std::map<std::string, TimePoint> stuck;  // uid of an admitted pod -> since when it has no node
    bool wanted = false;                     // when last followed: it wants a place
  };
  // What has been said of a pod or its owner, so that it is said once.
  struct Told {
    std::string reason;
    bool in_flight = false;
  };

  const PodRecord* Find(const ObjectKey& key) const;
  void Forget(Record& record, const std::string& pod_uid);
  void Follow(const std::string& id, Record& record);
  void ForgetUnseen(const std::string& id, Record& record);
  void Wake(const std::string& id, TimePoint when);
  bool WantsPlace(const Record& record) const;
  core::queue::Running RunningOf(const Uid& id, const Record& record, const QueueName& queue,
                                 core::Vendor vendor, std::int64_t devices) const;
  std::map<std::pair<QueueName, core::Vendor>, std::int64_t> HeldBy(const Record& record) const;
  // Where no device is asked for: the queue's own words, without a cycle.
  WaitReason RefusedByQueue(const Record& record) const;
  void OpenAnywhere(const std::string& id, Record& record);
  void Open(const std::string& id, Record& record, const PodRecord& pod, const NodeName& node);
  void Opened(const std::string& id, const std::string& pod_uid, const Status& status);
  void Tell(const std::string& id, Record& record);
  void TellPod(const std::string& id, const PodRecord& pod, const WaitReason& reason,
               bool with_event);
  void TellOwner(const PodRecord& pod, const WaitReason& reason);
  void TellStuck(const std::string& id, Record& record);
  void PruneOwners();

  const Clock& clock_;
  Store& store_;
  WriteSink& writes_;
  GatedPodOptions options_;
  std::function<void()> changed_;
  bool started_ = false;
  std::map<std::string, Record> records_;   // by id of the group
  std::map<std::string, std::string> ids_;  // uid of a pod -> id of its group
  std::map<std::string, TimePoint> wakes_;  // by id of the group
  std::set<std::string> touched_;
  std::map<std::string, Told> told_pods_;           // by uid
  std::map<std::string, std::string> told_owners_;  // by uid -> reason
  std::set<std::string> evicting_;                  // uids of pods
  PodMeter meter_;
};

}  // namespace bimetal::op
