// The part of JobController between attempts and after the last: pause, suspension, end, deletion.
#include <algorithm>
#include <utility>

#include "core/base/log.h"
#include "operator/controllers/conditions.h"
#include "operator/controllers/events.h"
#include "operator/controllers/job_events.h"
#include "operator/controllers/job_life.h"
#include "operator/controllers/jobs.h"

namespace bimetal::op {
namespace {

constexpr Millis kDeletionPeriod = Seconds(5);

}  // namespace

// Between attempts: wait until the old pods are gone and the pause is over.
void JobController::FollowPause(Record& record) {
  if (IsFinal(record.status)) return;
  auto& status = record.status;
  const TimePoint now = clock_.Now();
  Reclassify(record);
  if (HasLivePods(record)) {
    if (status.state().empty() || status.state() == "Pending") status.set_state("Restarting");
    DeleteLivePods(record, false);
    Wake(record, now + kDeletionPeriod);
    return;
  }
  if (status.state() == "Stopping") {
    Finish(record, "Failed", status.reason(), status.message());
    return;
  }
  const bool spent = SpentBudget(record);
  if (spent && record.job->budget->action == core::BudgetAction::kStop) {
    Finish(record, "Failed", "BudgetExceeded", FindCondition(status, "BudgetExceeded")->message());
    return;
  }
  if (record.object.spec().suspend()) {
    Suspend(record, "Suspended", "spec.suspend is true; set it to false to have the job placed");
    return;
  }
  if (spent && record.job->budget->action == core::BudgetAction::kSuspend) {
    Suspend(record, "BudgetExceeded", FindCondition(status, "BudgetExceeded")->message());
    return;
  }
  if (IsTrue(status, "Suspended")) {
    SetCondition(status.mutable_conditions(), "Suspended", "False", "Resumed",
                 "the job waits for a place", status.observed_generation(), now);
  }
  if (const auto deadline = StartDeadline(*record.job, status)) {
    if (*deadline <= now) {
      Finish(record, "Failed", "StartDeadlineExceeded",
             "it could not start within spec.limits.startDeadline, " +
                 FormatDuration(*record.job->start_deadline) + "; last: " + status.reason() + ": " +
                 status.message());
      return;
    }
    Wake(record, *deadline);
  }
  WaitForPlace(record);
}

void JobController::Suspend(Record& record, const std::string& reason, const std::string& message) {
  auto& status = record.status;
  status.set_state("Suspended");
  status.set_reason(reason);
  status.set_message(message);
  status.clear_assignment();
  status.clear_blockers();
  status.clear_queue_position();
  status.clear_estimated_start();
  status.clear_ready();
  SetCondition(status.mutable_conditions(), "Suspended", "True", reason, message,
               status.observed_generation(), clock_.Now());
  SayUnplaced(record, reason, message);
}

void JobController::SayUnplaced(Record& record, const std::string& reason,
                                const std::string& message) {
  for (const auto* type : {"QuotaReserved", "Placed"}) {
    SetCondition(record.status.mutable_conditions(), type, "False", reason, message,
                 record.status.observed_generation(), clock_.Now());
  }
}

void JobController::WaitForPlace(Record& record) {
  auto& status = record.status;
  const TimePoint now = clock_.Now();
  if (record.not_before && now < *record.not_before) {
    Wake(record, *record.not_before);
    return;
  }
  if (status.state() != "Pending") {
    status.set_state("Pending");
    status.set_reason("PendingEvaluation");
    status.set_message("waits for the next scheduling cycle");
    status.clear_assignment();
    status.clear_ready();
    status.clear_roles();
    SayUnplaced(record, status.reason(), status.message());
    changed_();
  }
  if (!record.job->fallback_after || record.job->fallback_after->v == 0) return;
  // The next variant counts from now on, though nothing else has changed.
  const TimePoint since = core::WaitingSince(*record.job, status);
  const std::int64_t step = record.job->fallback_after->v;
  const std::int64_t passed = std::max<std::int64_t>(0, (now - since).v / step);
  if (passed != std::exchange(record.fallbacks, passed)) changed_();
  if (passed < static_cast<std::int64_t>(record.job->variants.size())) {
    Wake(record, since + Millis{(passed + 1) * step});
  }
}

void JobController::Finish(Record& record, const std::string& state, const std::string& reason,
                           const std::string& message) {
  if (IsFinal(record.status)) return;
  auto& status = record.status;
  const TimePoint now = clock_.Now();
  Bill(record);
  status.set_state(state);
  status.set_reason(reason);
  status.set_message(Cut(message, 4096));
  status.clear_blockers();
  status.clear_queue_position();
  status.clear_estimated_start();
  SetCondition(status.mutable_conditions(), "QuotaReserved", "False", reason, "the job has ended",
               status.observed_generation(), now);
  SetCondition(status.mutable_conditions(), state == "Completed" ? "Complete" : "Failed", "True",
               reason, message, status.observed_generation(), now);
  Bill(record);
  changed_();
}

// Deletes the object of a job that ended long enough ago.
void JobController::Expire(Record& record) {
  const auto at = ExpiresAt(record.object, record.status);
  if (!at || record.expiring) return;
  if (clock_.Now() < *at) {
    Wake(record, *at);
    return;
  }
  record.expiring = true;
  const auto& meta = record.object.metadata();
  Write write{"delete", "gpujobs", meta.namespace_(), meta.name(), "", {}, {}};
  const kube::DeleteOptions options{
      .uid = meta.uid(), .grace_seconds = {}, .propagation = "Background"};
  write.run = [ns = meta.namespace_(), name = meta.name(), options](kube::Client& client) {
    auto status = client.Delete<api::GPUJob>(ns, name, options);
    if (!status && status.error().code == ErrorCode::kNotFound) return Status{};
    return status;
  };
  write.done = [this, uid = meta.uid()](const Status& status) {
    const auto it = records_.find(uid);
    if (status || it == records_.end()) return;
    Log(LogLevel::kWarning, "ended job could not be deleted",
        {{"job", it->second.object.metadata().name()}, {"error", status.error().message}});
    it->second.expiring = false;
    Wake(it->second, clock_.Now() + kDeletionPeriod);
  };
  writes_.Submit(std::move(write));
}

// One Event for each step of its life that somebody may want to know of.
void JobController::Tell(Record& record) {
  std::string step = StepOf(record.status);
  if (step == record.told) return;
  record.told = std::move(step);
  if (const auto event = JobEvent(record.object, record.status, clock_.Now())) {
    writes_.Submit(CreateEvent(*event));
  }
}

}  // namespace bimetal::op
