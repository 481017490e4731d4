#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "api/gpujob.pb.h"
#include "core/queue/cycle.h"
#include "operator/controllers/attempt.h"
#include "operator/controllers/cycle.h"
#include "operator/controllers/node_failures.h"
#include "operator/controllers/nodes.h"
#include "operator/state/store.h"
#include "operator/writer/writer.h"

namespace bimetal::op {

struct JobOptions {
  std::string priority_class;  // of the pods
  AttemptOptions attempt;
  // Told of every placement: the queue and how long the job had waited since its creation. May be
  // empty.
  std::function<void(const std::string& queue, Millis wait)> placed;
};

// What a job has used so far, for the metrics. Pointers are borrowed until the next event.
struct JobSample {
  const api::GPUJob* object = nullptr;
  const api::GPUJobStatus* status = nullptr;
  std::optional<TimePoint> ended;
};

// Runs jobs: has them placed, makes their pods, follows these to their end, and bills them. Loop
// thread only.
class JobController final : public Claimant {
 public:
  // `changed` is called when a scheduling cycle may find something new.
  JobController(const Clock& clock, Store& store, NodeController& nodes, WriteSink& writes,
                JobOptions options, std::function<void()> changed);

  void Start();
  void OnJob(const api::GPUJob& job);
  void OnJobDeleted(const api::GPUJob& job);
  // After the store has taken in the pod; `gone`: the object no longer exists.
  void OnPod(const PodRecord& pod, bool gone);
  void TouchAll();

  // Follows every touched job. Call before a scheduling cycle.
  void Reconcile();
  std::optional<TimePoint> NextWake() const;

  std::vector<JobSample> Samples() const;

  void AddTo(core::queue::Snapshot* snapshot) const override;
  std::vector<core::Pod> AssumedPods() const override;
  void Count(std::map<std::string, QueueCounts>* counts) const override;
  bool Assign(const core::queue::Assignment& assignment) override;
  bool Refuse(const core::queue::Refusal& refusal) override;
  bool Evict(const core::queue::Eviction& eviction) override;

 private:
  struct Record {
    api::GPUJob object;
    Result<core::Job> job = Fail(ErrorCode::kInternal, "not read yet");
    api::GPUJobStatus status, written;
    bool write_in_flight = false;
    std::optional<TimePoint> last_write;
    bool unsaid = false;                  // its uid is in unsaid_
    std::optional<TimePoint> say_placed;  // a placement waits until then for what its pods do
    std::optional<TimePoint> not_before;  // no new attempt before
    std::optional<TimePoint> wake;        // kept by Wake and Unwake
    // As it stands in snapshots, where it has never run; what has run is put together each time.
    std::optional<Shared<core::Job>> wished;
    std::optional<TimePoint> refused_at;       // when the status last took in a refusal whole
    std::int64_t refused_generation = 0;       // of the spec, then
    int setbacks = 0;                          // in a row, for the pauses
    std::map<std::string, core::Pod> assumed;  // by pod name: asked for, not seen yet
    std::map<std::string, TimePoint> created;  // assumed pods whose create has succeeded
    std::string create_error;
    Timeline timeline;               // of the current attempt
    std::set<std::string> finished;  // pods of the current attempt that succeeded
    // Members that the status counts as succeeded and that were gone when we started.
    std::optional<int> finished_before_us;
    bool service_made = false;
    std::string told;            // the step of its life of which an Event was sent, or need not be
    std::int64_t fallbacks = 0;  // of selection.fallbackAfter, that have passed
    bool expiring = false;       // its deletion was asked for
  };

  void Follow(Record& record);
  void ForgetUnseen(Record& record);
  void Adopt(Record& record);
  static void FoldAttempts(api::GPUJobStatus* status);
  static int FinishedAndGone(Record& record, const std::vector<const PodRecord*>& pods);

  // jobs_attempt.cc
  static std::vector<std::int64_t> GangOf(const Record& record);
  static std::int64_t PodsOfAttempt(const Record& record);
  AttemptFacts FactsOf(Record& record) const;
  static void ShowRoles(Record& record, const AttemptView& view);
  void FollowAttempt(Record& record);
  void KeepLimits(Record& record);
  bool SpentBudget(Record& record);
  void CloseRow(Record& record, const AttemptView& view);
  void EndAttempt(Record& record, const AttemptView& view);

  // jobs_failures.cc
  void NoteEnd(const Record& record, const AttemptView& view);
  void NoteFailure(const NodeFailure& failure);
  void RecallFailures();
  void Reclassify(Record& record);

  // jobs_pause.cc
  void FollowPause(Record& record);
  void Suspend(Record& record, const std::string& reason, const std::string& message);
  void SayUnplaced(Record& record, const std::string& reason, const std::string& message);
  void WaitForPlace(Record& record);
  void Finish(Record& record, const std::string& state, const std::string& reason,
              const std::string& message);
  void Expire(Record& record);
  void Tell(Record& record);

  void Bill(Record& record);
  void DeleteLivePods(const Record& record, bool older_attempts_only);
  std::vector<const PodRecord*> PodsOf(const Record& record, bool current_attempt) const;
  bool HasLivePods(const Record& record) const;
  bool Active(const Record& record) const;
  bool WantsPlace(const Record& record) const;
  core::queue::Running RunningOf(const Record& record, core::Vendor vendor) const;
  void AddPast(const Record& record, core::queue::Snapshot* snapshot) const;
  Record* Find(const Uid& job);
  void Place(Record& record, const core::queue::Assignment& assignment);
  void CreatePods(Record& record, const core::queue::Assignment& assignment);
  void CreateService(Record& record);
  void KeepWaiting(Record& record, const core::queue::Refusal& refusal);
  void WriteStatus(Record& record);
  void SayUnsaid();
  void Wake(Record& record, TimePoint when);
  void Unwake(Record& record);
  bool SaysAlready(const Record& record, const core::queue::Refusal& refusal) const;
  std::string ResourceName(const std::string& pool, core::Vendor vendor) const;
  void DeleteOrphans();

  const Clock& clock_;
  Store& store_;
  NodeController& nodes_;
  WriteSink& writes_;
  JobOptions options_;
  std::function<void()> changed_;
  bool started_ = false;
  NodeFailures failures_;
  std::map<std::string, Record> records_;              // by uid
  std::set<std::pair<TimePoint, std::string>> wakes_;  // of the records
  std::set<std::string> touched_;
  std::deque<std::string> unsaid_;  // whose statuses wait until few writes do
  // Deletions that were asked for: uid of the pod, and whether by force.
  std::set<std::pair<std::string, bool>> deleting_;  // pods whose deletion we have asked for
};

}  // namespace bimetal::op
