// The part of JobController that follows an attempt to its end and waits for the next.
#include <algorithm>

#include "core/base/log.h"
#include "operator/controllers/conditions.h"
#include "operator/controllers/events.h"
#include "operator/controllers/job_events.h"
#include "operator/controllers/job_life.h"
#include "operator/controllers/jobs.h"

namespace bimetal::op {
namespace {

constexpr int kMostNodes = 64;
constexpr Millis kBudgetPeriod = Seconds(10);  // how often a running job's cost is looked at

std::string_view OutcomeName(const AttemptView& view) {
  if (view.reason == "Suspended" || view.reason == "BudgetExceeded") return "Suspended";
  switch (view.end) {
    case AttemptEnd::kNone:
      return "";
    case AttemptEnd::kCompleted:
      return "Completed";
    case AttemptEnd::kFailed:
      return "Failed";
    case AttemptEnd::kDisrupted:
      return "Disrupted";
    case AttemptEnd::kNotScheduled:
      return "NotScheduled";
  }
  return "";
}

}  // namespace

// Pods of a later attempt than the status knows of: the operator ended between making them and
// writing so.
void JobController::Adopt(Record& record) {
  int latest = record.status.attempt();
  const PodRecord* newest = nullptr;
  for (const PodRecord* pod : PodsOf(record, false)) {
    if (pod->holds.of_job->attempt > latest) {
      latest = pod->holds.of_job->attempt;
      newest = pod;
    }
  }
  if (newest == nullptr) return;
  record.status.set_attempt(latest);
  record.status.set_state("Starting");
  record.timeline = {};
  record.finished.clear();
  record.status.clear_roles();  // those of the attempt before
  for (std::size_t r = 0; r < record.job->roles.size(); ++r) {
    auto* role = record.status.add_roles();
    role->set_name(record.job->roles[r].name);
    role->set_desired(static_cast<int>(r < newest->gang.size() ? newest->gang[r]
                                                               : record.job->roles[r].replicas));
  }
  SetCondition(record.status.mutable_conditions(), "PodsReady", "False", "PodsStarting",
               "pods of a later attempt were found", record.status.observed_generation(),
               clock_.Now());
  std::set<std::string> nodes;
  for (const PodRecord* pod : PodsOf(record, true)) {
    record.timeline.See(*pod, clock_.Now(), false);
    nodes.insert(pod->holds.node.value);
  }
  auto* assignment = record.status.mutable_assignment();
  assignment->Clear();
  for (const auto& variant : record.job->variants) {
    if (variant.name != newest->variant) continue;
    assignment->set_variant(variant.name);
    assignment->set_vendor(std::string(core::VendorName(variant.vendor)));
    assignment->set_devices(static_cast<int>(PodsOfAttempt(record) * variant.devices_per_pod));
    const auto pools = PoolsOf(store_);
    const auto node = store_.nodes.find(newest->holds.node.value);
    if (node != store_.nodes.end()) {
      if (const auto* pool = PoolFor(pools, variant.vendor, node->second.node.labels)) {
        assignment->set_pool(pool->name.value);
      }
    }
  }
  for (const auto& node : nodes) {
    if (assignment->nodes_size() < 64) assignment->add_nodes(node);
  }
  FoldAttempts(&record.status);
  auto* row = record.status.add_attempts();
  row->set_number(latest);
  row->set_variant(newest->variant);
  row->set_start_time(FormatTime(newest->created));
  Log(LogLevel::kInfo, "attempt adopted",
      {{"job", record.object.metadata().name()}, {"attempt", latest}});
}

int JobController::FinishedAndGone(Record& record, const std::vector<const PodRecord*>& pods) {
  std::set<std::string> present;
  for (const PodRecord* pod : pods) {
    if (!pod->succeeded) continue;
    present.insert(pod->holds.name);
    record.finished.insert(pod->holds.name);
  }
  if (!record.finished_before_us) {
    int counted = 0;
    for (const auto& role : record.status.roles()) counted += role.succeeded();
    record.finished_before_us = std::max(0, counted - static_cast<int>(present.size()));
  }
  return *record.finished_before_us + static_cast<int>(record.finished.size() - present.size());
}

// Pods of each role in the current attempt, which may be fewer than the spec asks for.
std::vector<std::int64_t> JobController::GangOf(const Record& record) {
  std::vector<std::int64_t> out;
  for (const auto& role : record.job->roles) {
    std::int64_t pods = role.replicas;
    for (const auto& status : record.status.roles()) {
      if (status.name() == role.name && status.desired() > 0) pods = status.desired();
    }
    out.push_back(pods);
  }
  return out;
}

std::int64_t JobController::PodsOfAttempt(const Record& record) {
  std::int64_t pods = 0;
  for (const std::int64_t role : GangOf(record)) pods += role;
  return pods;
}

AttemptFacts JobController::FactsOf(Record& record) const {
  AttemptFacts facts;
  facts.job = &*record.job;
  facts.gang = GangOf(record);
  facts.pods = PodsOf(record, true);
  facts.nodes = &store_.nodes;
  for (const auto& [name, pod] : record.assumed) facts.requested.insert(name);
  facts.finished_and_gone = FinishedAndGone(record, facts.pods);
  for (const PodRecord* pod : facts.pods) {
    const std::string fault = nodes_.FaultUnder(pod->holds.uid);
    if (!fault.empty()) facts.faults[pod->holds.name] = fault;
  }
  return facts;
}

void JobController::ShowRoles(Record& record, const AttemptView& view) {
  // A member that succeeded stays counted although its pod may be deleted later.
  std::map<std::string, int> succeeded;
  for (const auto& role : record.status.roles()) succeeded[role.name()] = role.succeeded();
  const std::vector<std::int64_t> gang = GangOf(record);
  record.status.clear_roles();
  int ready = 0;
  for (std::size_t r = 0; r < view.roles.size(); ++r) {
    auto* role = record.status.add_roles();
    role->set_name(record.job->roles[r].name);
    role->set_desired(static_cast<int>(gang[r]));
    role->set_ready(view.roles[r].ready);
    role->set_succeeded(std::max(view.roles[r].succeeded, succeeded[role->name()]));
    role->set_failed(view.roles[r].failed);
    ready += view.roles[r].ready;
  }
  record.status.set_ready(std::to_string(ready) + "/" + std::to_string(PodsOfAttempt(record)));
}

void JobController::FollowAttempt(Record& record) {
  const AttemptFacts facts = FactsOf(record);
  if (record.timeline.empty()) {
    for (const PodRecord* pod : facts.pods) record.timeline.See(*pod, clock_.Now(), false);
  }
  if (!record.create_error.empty()) {
    const std::string message = std::exchange(record.create_error, "");
    EndAttempt(record, Ended(AttemptEnd::kNotScheduled, std::nullopt, "PodRefused", message));
    return;
  }
  const AttemptView view = JudgeAttempt(facts, options_.attempt, clock_.Now());
  if (record.object.spec().suspend() && view.end != AttemptEnd::kCompleted) {
    EndAttempt(record,
               Ended(AttemptEnd::kDisrupted, std::nullopt, "Suspended", "spec.suspend is true"));
    return;
  }
  ShowRoles(record, view);
  if (view.end != AttemptEnd::kNone) {
    EndAttempt(record, view);
    return;
  }
  record.status.set_state(view.state);
  record.status.set_reason(view.reason);
  record.status.set_message(Cut(view.message, 4096));
  SetCondition(record.status.mutable_conditions(), "PodsReady",
               view.state == "Running" ? "True" : "False", view.reason, view.message,
               record.status.observed_generation(), clock_.Now());
  if (view.state == "Running") record.setbacks = 0;
  if (view.recheck) Wake(record, *view.recheck);
  KeepLimits(record);
}

// Ends an attempt that has used up its time or its job's money.
void JobController::KeepLimits(Record& record) {
  const TimePoint now = clock_.Now();
  const auto deadline =
      AttemptDeadline(*record.job, record.status, options_.attempt.image_pull_timeout);
  if (deadline && *deadline <= now) {
    EndAttempt(record,
               Ended(AttemptEnd::kFailed, core::FailureClass::kTimeout, "MaxDurationExceeded",
                     "the attempt has run for spec.limits.maxDuration, " +
                         FormatDuration(*record.job->max_duration)));
    return;
  }
  if (deadline) Wake(record, *deadline);
  if (!record.job->budget) return;
  Wake(record, now + kBudgetPeriod);
  if (!SpentBudget(record) || record.job->budget->action == core::BudgetAction::kWarn) return;
  const std::string message = FindCondition(record.status, "BudgetExceeded")->message();
  EndAttempt(record, Ended(AttemptEnd::kDisrupted, std::nullopt, "BudgetExceeded", message));
  if (record.job->budget->action == core::BudgetAction::kStop) record.status.set_state("Stopping");
}

// Keeps condition BudgetExceeded; true where the budget is spent.
bool JobController::SpentBudget(Record& record) {
  Bill(record);
  const auto view = JudgeBudget(*record.job, record.status.usage());
  auto* conditions = record.status.mutable_conditions();
  const auto* old = FindCondition(record.status, "BudgetExceeded");
  if (!view) {
    if (old != nullptr) {
      SetCondition(conditions, "BudgetExceeded", "False", "NoBudget",
                   "spec.limits.budget is not set", record.status.observed_generation(),
                   clock_.Now());
    }
    return false;
  }
  const bool news = old == nullptr || old->reason() != view->reason;
  SetCondition(conditions, "BudgetExceeded", view->status, view->reason, view->message,
               record.status.observed_generation(), clock_.Now());
  if (news && view->status != "False") {
    writes_.Submit(
        CreateEvent(BudgetEvent(record.object, view->reason, view->message, clock_.Now())));
  }
  return view->status == "True";
}

void JobController::CloseRow(Record& record, const AttemptView& view) {
  auto* row = CurrentRow(record.status);
  if (row == nullptr) return;
  row->set_end_time(FormatTime(clock_.Now()));
  row->set_outcome(std::string(OutcomeName(view)));
  row->set_reason(view.reason);
  row->set_message(Cut(view.message, 1024));
  row->set_class_(view.failure ? std::string(core::FailureClassName(*view.failure)) : "");
  row->clear_failed_nodes();
  for (const auto& node : view.nodes) {
    if (row->failed_nodes_size() < kMostNodes) row->add_failed_nodes(node);
  }
}

void JobController::EndAttempt(Record& record, const AttemptView& view) {
  const TimePoint now = clock_.Now();
  auto& status = record.status;
  Log(LogLevel::kInfo, "attempt ended",
      {{"job", record.object.metadata().name()},
       {"namespace", record.object.metadata().namespace_()},
       {"attempt", status.attempt()},
       {"outcome", OutcomeName(view)},
       {"reason", view.reason}});
  Bill(record);
  CloseRow(record, view);
  SetCondition(status.mutable_conditions(), "PodsReady", "False", view.reason, view.message,
               status.observed_generation(), now);
  NoteEnd(record, view);
  changed_();
  if (view.end == AttemptEnd::kCompleted) {
    Finish(record, "Completed", "Completed", view.message);
    return;
  }
  const NextStep step = AfterAttempt(*record.job, view, status.failures(), record.setbacks + 1);
  if (step.counts) {
    status.set_failures(status.failures() + 1);
  } else {
    ++record.setbacks;
  }
  // Final only when its last pod is gone, so that the bill is whole.
  status.set_state(step.final ? "Stopping" : "Restarting");
  status.set_reason(step.reason);
  status.set_message(Cut(step.message, 4096));
  if (view.failure == core::FailureClass::kPreempted) {
    SetCondition(status.mutable_conditions(), "Preempted", "True", "Preempted", view.message,
                 status.observed_generation(), now);
  }
  record.not_before = now + step.pause;
  Tell(record);
  DeleteLivePods(record, false);
}

}  // namespace bimetal::op
