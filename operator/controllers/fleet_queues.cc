// The part of FleetController that writes the statuses of queues.
#include <algorithm>

#include "operator/controllers/conditions.h"
#include "operator/controllers/fleet.h"

namespace bimetal::op {
namespace {

constexpr Millis kPause = Seconds(5);
constexpr int kMostClasses = 64;

void SetUsage(const core::queue::QueueReport& report, api::GPUQueueStatus* status) {
  status->clear_usage();
  for (const auto& one : report.classes) {
    if (status->usage_size() == kMostClasses) break;
    auto* row = status->add_usage();
    row->set_device_class(one.device_class);
    row->set_reserved(one.reserved);
    row->set_running(one.running);
    row->set_borrowed(one.borrowed);
    row->set_lent(one.lent);
    row->set_usable(one.usable);
  }
  status->set_used_devices(report.used);
  status->set_guaranteed_devices(report.guaranteed);
  status->set_borrowed_devices(report.borrowed);
  status->clear_share();
  if (report.share_milli) status->set_share(*report.share_milli);
}

// Whole minutes, so that age alone is written once a minute.
std::string AgeText(TimePoint since, TimePoint now) {
  const Millis age = now < since ? Millis{} : now - since;
  return FormatDuration(Minutes(age.v / Minutes(1).v));
}

}  // namespace

void FleetController::SayQueue(const core::queue::QueueReport& report, const QueueCounts& counts,
                               const std::map<std::string, std::string>& reasons,
                               api::GPUQueue* queue) {
  auto& status = *queue->mutable_status();
  const std::int64_t generation = queue->metadata().generation();
  const TimePoint now = clock_.Now();
  status.set_observed_generation(generation);
  status.set_pending_jobs(counts.pending);
  status.set_admitted_jobs(counts.admitted);
  SetUsage(report, &status);
  status.clear_head();
  status.clear_oldest_pending_age();
  if (report.oldest_pending) {
    status.set_oldest_pending_age(AgeText(*report.oldest_pending, now));
    status.mutable_head()->set_job(Cut(report.head, 512));
    const auto reason = reasons.find(report.head);
    if (reason != reasons.end()) status.mutable_head()->set_reason(reason->second);
  }
  const auto say = [&](const char* type, bool is, const char* if_so, const char* if_not,
                       const std::string& message) {
    SetCondition(status.mutable_conditions(), type, is ? "True" : "False", is ? if_so : if_not,
                 Cut(message, 1024), generation, now);
  };
  if (!report.problem.empty()) {
    say("Active", false, "Active", "QueueInvalid", report.problem);
  } else if (const auto& policy = queue->spec().stop_policy();
             !policy.empty() && policy != "None") {
    say("Active", false, "Active", "QueueStopped",
        "spec.stopPolicy is " + policy + ": nothing new starts");
  } else {
    say("Active", true, "Active", "QueueStopped", "");
  }
  say("CapacityMismatch", !report.mismatch.empty(), "GuaranteedBeyondCapacity", "WithinCapacity",
      report.mismatch);
  say("Starving", report.starving, "StarvationBoundPassed", "WithinStarvationBound",
      report.starving ? "job " + report.head + " has waited longer than spec.starvationBound"
                      : std::string());
}

void FleetController::ReconcileQueues() {
  std::map<std::string, std::int64_t> seen;
  for (const auto& [name, queue] : store_.queues) seen[name] = queue.metadata().generation();
  const TimePoint now = clock_.Now();
  if (seen != queues_seen_) {  // what somebody has changed is answered at once
    for (auto& [name, sent] : queues_sent_) sent.at = {};
  } else if (now >= queues_at_ && now < queues_at_ + kPause) {
    return;
  }
  queues_at_ = now;
  queues_seen_ = std::move(seen);
  std::map<std::string, std::string> reasons;  // of waiting jobs
  for (const auto& sample : jobs_.Samples()) {
    if (sample.status->state() != "Pending") continue;
    reasons[sample.object->metadata().namespace_() + "/" + sample.object->metadata().name()] =
        sample.status->reason();
  }
  const auto counts = cycle_.Queues();
  for (const auto& report : core::queue::ReportQueues(cycle_.MakeSnapshot())) {
    const auto object = store_.queues.find(report.queue.value);
    const auto count = counts.find(report.queue.value);
    if (object == store_.queues.end() || count == counts.end()) continue;
    api::GPUQueue queue = object->second;
    SayQueue(report, count->second, reasons, &queue);
    Write(queue, queues_sent_);
  }
}

}  // namespace bimetal::op
