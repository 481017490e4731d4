#include "operator/controllers/job_life.h"

#include <algorithm>
#include <map>

#include "core/cost/cost.h"
#include "operator/controllers/pause.h"
#include "operator/state/time_of.h"

namespace bimetal::op {
namespace {

using core::FailureClass;
using core::RetryAction;

// Pauses before the next attempt, doubled each time, where the program is not to blame.
constexpr Millis kRefusalPause = Seconds(5);
constexpr Millis kDisruptionPause = Seconds(1);
constexpr Millis kImagePause = Seconds(30);

std::string ReasonOfFail(FailureClass failure) {
  std::string reason = "NotRetried";
  if (failure == FailureClass::kTimeout) reason = "MaxDurationExceeded";
  return reason;
}

Millis PauseAfter(const core::Job& job, FailureClass failure, bool counts, int failures,
                  int setbacks) {
  if (failure == FailureClass::kPreempted) return Millis{0};
  if (failure == FailureClass::kImagePull) {
    return Doubled(std::max(kImagePause, job.retry_backoff), std::max(setbacks, failures));
  }
  return counts ? Doubled(job.retry_backoff, failures) : Doubled(kDisruptionPause, setbacks);
}

}  // namespace

api::Attempt* CurrentRow(api::GPUJobStatus& status) {
  for (auto& row : *status.mutable_attempts()) {
    if (row.number() == status.attempt()) return &row;
  }
  return nullptr;
}

std::optional<core::Vendor> VendorOfVariant(const api::GPUJobSpec& spec, const std::string& name) {
  for (const auto& variant : spec.variants()) {
    if (variant.name() != name) continue;
    const auto vendor = core::ParseVendor(variant.vendor());
    return vendor ? std::optional(*vendor) : std::nullopt;
  }
  return std::nullopt;
}

AttemptView Ended(AttemptEnd end, std::optional<core::FailureClass> failure, std::string reason,
                  std::string message) {
  AttemptView view;
  view.end = end;
  view.failure = failure;
  view.reason = std::move(reason);
  view.message = std::move(message);
  return view;
}

NextStep AfterAttempt(const core::Job& job, const AttemptView& ended, int failures, int setbacks) {
  NextStep step{.counts = false,
                .final = false,
                .reason = ended.reason,
                .message = ended.message,
                .pause = kDisruptionPause};
  if (!ended.failure) {
    if (ended.end == AttemptEnd::kNotScheduled) step.pause = Doubled(kRefusalPause, setbacks);
    return step;
  }
  const core::RetryRule rule = core::RuleFor(job, *ended.failure);
  const std::string name(core::FailureClassName(*ended.failure));
  if (rule.action == RetryAction::kFail) {
    step.final = true;
    step.reason = ReasonOfFail(*ended.failure);
    step.message =
        "spec.retry.rules does not retry class " + name + "; the attempt ended: " + ended.message;
    if (*ended.failure == FailureClass::kTimeout) step.message = ended.message;
    return step;
  }
  step.counts = rule.counts;
  const int counted = failures + (rule.counts ? 1 : 0);
  if (rule.counts && counted > job.retry_limit) {
    step.final = true;
    step.reason = "RetryLimitReached";
    step.message = "failed " + std::to_string(counted) + " times, spec.retry.limit is " +
                   std::to_string(job.retry_limit) + "; last, of class " + name + ": " +
                   ended.message;
  }
  step.pause = PauseAfter(job, *ended.failure, rule.counts, counted, setbacks);
  return step;
}

std::optional<BudgetView> JudgeBudget(const core::Job& job, const api::Usage& usage) {
  if (!job.budget) return std::nullopt;
  const auto& budget = *job.budget;
  const auto text = [&](std::int64_t nano) {
    return core::cost::FormatMoney(NanoCurrency{nano}) + " " + budget.currency;
  };
  const std::string field = "spec.limits.budget";
  if (!usage.currency().empty() && usage.currency() != budget.currency) {
    return BudgetView{"Unknown", "CurrencyMismatch",
                      field + " is in " + budget.currency + ", the PriceBook in " +
                          usage.currency() + "; give the budget in " + usage.currency()};
  }
  // What could be priced is spent whatever the rest may cost.
  if (usage.nano_cost() >= budget.nano_amount && !usage.basis().empty() &&
      (usage.nano_cost() > 0 || budget.nano_amount == 0)) {
    return BudgetView{"True", "BudgetExceeded",
                      text(usage.nano_cost()) + " of " + text(budget.nano_amount) +
                          " are spent; raise " + field + ".amount to go on"};
  }
  if (usage.basis() == "PriceMissing") {
    return BudgetView{"Unknown", "PriceMissing",
                      field + " cannot be kept without a price: " + usage.message()};
  }
  // No amounts: a message that moved with the meter would be written again and again.
  return BudgetView{"False", "WithinBudget", "less than " + text(budget.nano_amount) + " is spent"};
}

std::optional<TimePoint> StartDeadline(const core::Job& job, const api::GPUJobStatus& status) {
  if (!job.start_deadline) return std::nullopt;
  // Rows that were folded away ran, or the job has been refused ten times since.
  const bool started = std::any_of(status.attempts().begin(), status.attempts().end(),
                                   [](const auto& row) { return core::HasRun(row); });
  if (started) return std::nullopt;
  TimePoint begin = job.created;
  const auto* suspended = FindCondition(status, "Suspended");
  if (suspended != nullptr && suspended->status() == "False") {
    begin = std::max(begin, TimeOf(suspended->last_transition_time()).value_or(begin));
  }
  return begin + *job.start_deadline;
}

std::optional<TimePoint> AttemptDeadline(const core::Job& job, const api::GPUJobStatus& status,
                                         Millis longest_start) {
  if (!job.max_duration) return std::nullopt;
  if (const auto running = core::RunningSince(status)) return *running + *job.max_duration;
  for (const auto& row : status.attempts()) {
    if (row.number() != status.attempt()) continue;
    const auto start = TimeOf(row.start_time());
    if (start) return *start + longest_start + *job.max_duration;
  }
  return std::nullopt;
}

std::optional<TimePoint> ExpiresAt(const api::GPUJob& job, const api::GPUJobStatus& status) {
  const std::string& text = job.spec().limits().ttl_after_finished();
  if (text.empty() || !IsFinal(status)) return std::nullopt;
  const auto ttl = ParseDuration(text);
  const auto* end = FindCondition(status, status.state() == "Completed" ? "Complete" : "Failed");
  if (!ttl || end == nullptr) return std::nullopt;
  const auto ended = TimeOf(end->last_transition_time());
  if (!ended) return std::nullopt;
  return *ended + *ttl;
}

}  // namespace bimetal::op
