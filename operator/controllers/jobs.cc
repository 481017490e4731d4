#include "operator/controllers/jobs.h"

#include <algorithm>

#include "core/base/log.h"
#include "operator/controllers/conditions.h"
#include "operator/controllers/job_events.h"
#include "operator/controllers/job_life.h"

namespace bimetal::op {
namespace {

constexpr Millis kUnseen = Seconds(60);
constexpr Millis kUnsaidPause{200};

}  // namespace

JobController::JobController(const Clock& clock, Store& store, NodeController& nodes,
                             WriteSink& writes, JobOptions options, std::function<void()> changed)
    : clock_(clock),
      store_(store),
      nodes_(nodes),
      writes_(writes),
      options_(std::move(options)),
      changed_(std::move(changed)),
      failures_(NodeFailures::Options{}) {}

void JobController::Start() {
  for (const auto& [key, pod] : store_.pods) OnPod(pod, false);
  started_ = true;
  RecallFailures();
  TouchAll();
}

void JobController::TouchAll() {
  for (const auto& [uid, record] : records_) touched_.insert(uid);
}

void JobController::OnJob(const api::GPUJob& job) {
  const std::string& uid = job.metadata().uid();
  auto [it, fresh] = records_.try_emplace(uid);
  Record& record = it->second;
  record.object = job;
  // The status is ours: read once, at first sight, then only written.
  if (fresh) {
    record.status = record.written = job.status();
    record.told = StepOf(record.status);
  }
  touched_.insert(uid);
  if (fresh) changed_();
}

void JobController::OnJobDeleted(const api::GPUJob& job) {
  if (const auto it = records_.find(job.metadata().uid()); it != records_.end()) {
    Unwake(it->second);
    records_.erase(it);
  }
  touched_.insert(job.metadata().uid());  // its pods are orphans now
  changed_();
}

void JobController::OnPod(const PodRecord& pod, bool gone) {
  const ObjectKey key{pod.holds.name_space, pod.holds.name};
  if (gone) {
    deleting_.erase({pod.holds.uid.value, false});
    deleting_.erase({pod.holds.uid.value, true});
  }
  if (!pod.holds.of_job) {
    changed_();  // a foreign pod holds or frees something
    return;
  }
  const std::string& uid = pod.holds.of_job->job.value;
  touched_.insert(uid);
  const auto it = records_.find(uid);
  if (it == records_.end()) return;
  Record& record = it->second;
  record.assumed.erase(pod.holds.name);
  record.created.erase(pod.holds.name);
  if (pod.holds.of_job->attempt == record.status.attempt()) {
    record.timeline.See(pod, clock_.Now(), started_);
    if (gone) record.timeline.Gone(pod.holds.name, clock_.Now());
  }
  if (gone || pod.ended) changed_();
}

std::vector<const PodRecord*> JobController::PodsOf(const Record& record,
                                                    bool current_attempt) const {
  std::vector<const PodRecord*> out;
  const auto keys = store_.pods_by_job.find(record.object.metadata().uid());
  if (keys == store_.pods_by_job.end()) return out;
  for (const auto& key : keys->second) {
    const PodRecord& pod = store_.pods.at(key);
    if (!current_attempt || pod.holds.of_job->attempt == record.status.attempt())
      out.push_back(&pod);
  }
  return out;
}

bool JobController::HasLivePods(const Record& record) const {
  if (!record.assumed.empty()) return true;
  const auto keys = store_.pods_by_job.find(record.object.metadata().uid());
  return keys != store_.pods_by_job.end() &&
         std::any_of(keys->second.begin(), keys->second.end(),
                     [&](const auto& key) { return !store_.pods.at(key).ended; });
}

bool JobController::Active(const Record& record) const {
  return record.status.state() == "Starting" || record.status.state() == "Running";
}

void JobController::Wake(Record& record, TimePoint when) {
  if (record.wake && *record.wake <= when) return;
  Unwake(record);
  record.wake = when;
  wakes_.emplace(when, record.object.metadata().uid());
}

void JobController::Unwake(Record& record) {
  if (!record.wake) return;
  wakes_.erase({*record.wake, record.object.metadata().uid()});
  record.wake.reset();
}

void JobController::DeleteLivePods(const Record& record, bool older_attempts_only) {
  for (const PodRecord* pod : PodsOf(record, false)) {
    if (pod->ended) continue;
    if (older_attempts_only && pod->holds.of_job->attempt == record.status.attempt()) continue;
    const auto node = store_.nodes.find(pod->holds.node.value);
    // Nobody is left on a lost node to end the pod in peace: its object goes at once, else the gang
    // could never start again.
    const bool lost =
        pod->bound &&
        (node == store_.nodes.end() ||
         (node->second.not_ready_since &&
          *node->second.not_ready_since + options_.attempt.node_lost_after <= clock_.Now()));
    const ObjectKey key{pod->holds.name_space, pod->holds.name};
    if (pod->deleting && !lost) continue;
    // Once in peace, and once by force where its node turns out to be lost.
    if (!deleting_.insert({pod->holds.uid.value, lost}).second) continue;
    Write write{"delete", "pods", key.first, key.second, "", {}, {}};
    kube::DeleteOptions options{
        .uid = pod->holds.uid.value, .grace_seconds = {}, .propagation = ""};
    if (lost) options.grace_seconds = 0;
    write.run = [key, options](kube::Client& client) -> Status {
      auto status = client.Delete<api::Pod>(key.first, key.second, options);
      if (!status && status.error().code == ErrorCode::kNotFound) return {};
      return status;
    };
    write.done = [this, key, pod_uid = pod->holds.uid.value, lost,
                  uid = record.object.metadata().uid()](const Status& status) {
      if (status) return;
      deleting_.erase({pod_uid, lost});  // so that it is asked for again
      Log(LogLevel::kWarning, "pod could not be deleted",
          {{"pod", key.first + "/" + key.second}, {"error", status.error().message}});
      touched_.insert(uid);
    };
    writes_.Submit(std::move(write));
  }
}

void JobController::DeleteOrphans() {
  for (const auto& uid : touched_) {
    if (records_.contains(uid)) continue;
    const auto keys = store_.pods_by_job.find(uid);
    if (keys == store_.pods_by_job.end()) continue;
    Record orphan;
    orphan.object.mutable_metadata()->set_uid(uid);
    DeleteLivePods(orphan, false);
  }
}

void JobController::Reconcile() {
  if (!started_) return;
  const TimePoint now = clock_.Now();
  for (const auto& [when, uid] : wakes_) {
    if (now < when) break;
    touched_.insert(uid);
  }
  DeleteOrphans();
  const std::set<std::string> uids = std::exchange(touched_, {});
  for (const auto& uid : uids) {
    if (const auto it = records_.find(uid); it != records_.end()) Follow(it->second);
  }
  SayUnsaid();
}

void JobController::Follow(Record& record) {
  Unwake(record);
  if (IsFinal(record.status)) {
    // A pod whose create was still under way when the end came.
    if (record.status.state() == "Failed") DeleteLivePods(record, false);
    WriteStatus(record);
    Expire(record);
    return;
  }
  const auto& spec = record.object.spec();
  std::int64_t priority = 0;
  Status known;
  if (!spec.priority_class_name().empty()) {
    const auto it = store_.priorities.find(spec.priority_class_name());
    if (it == store_.priorities.end()) {
      known = Fail(ErrorCode::kInvalid, "spec.priorityClassName: there is no PriorityClass \"" +
                                            spec.priority_class_name() +
                                            "\"; create it or leave the field out");
    } else {
      priority = it->second;
    }
  }
  auto job = core::JobFromApi(record.object, priority);
  if (job && !known) job = tl::unexpected<Error>(known.error());
  // What was admitted goes on as it was: a PriorityClass that vanished is no reason to end a gang.
  const bool under_way = record.job && (Active(record) || HasLivePods(record));
  if (job || !under_way) record.job = std::move(job);
  record.status.set_observed_generation(record.object.metadata().generation());
  if (!record.job) {
    record.status.set_state("Pending");
    record.status.set_reason("Misconfigured");
    record.status.set_message(Cut(record.job.error().message, 4096));
    record.status.clear_blockers();
    SayUnplaced(record, "Misconfigured", record.status.message());
    WriteStatus(record);
    return;
  }
  ForgetUnseen(record);
  Adopt(record);
  DeleteLivePods(record, true);
  if (Active(record)) FollowAttempt(record);
  // Before a pause forgets where the attempt ran.
  Bill(record);
  if (!Active(record)) FollowPause(record);
  record.wished.reset();
  if (record.status.attempts().empty()) {
    record.wished = core::AsWished(*record.job, record.status, clock_.Now());
  }
  WriteStatus(record);
}

// A pod that was made and is still not seen after this long was deleted before the watch showed it.
void JobController::ForgetUnseen(Record& record) {
  const TimePoint now = clock_.Now();
  for (auto it = record.created.begin(); it != record.created.end();) {
    if (it->second + kUnseen <= now) {
      record.assumed.erase(it->first);
      it = record.created.erase(it);
    } else {
      Wake(record, it->second + kUnseen);
      ++it;
    }
  }
}

std::optional<TimePoint> JobController::NextWake() const {
  std::optional<TimePoint> next;
  if (!wakes_.empty()) next = wakes_.begin()->first;
  // The end of a write makes a step, but for those that nobody waits for.
  const TimePoint soon = clock_.Now() + kUnsaidPause;
  if (!unsaid_.empty() && (!next || soon < *next)) next = soon;
  return next;
}

}  // namespace bimetal::op
