#include "core/model/job_history.h"

#include <algorithm>

namespace bimetal::core {
namespace {

std::optional<TimePoint> TimeOf(const std::string& text) {
  if (text.empty()) return std::nullopt;
  const auto time = ParseTime(text);
  return time ? std::optional(*time) : std::nullopt;
}

}  // namespace

bool HasRun(const api::Attempt& row) {
  return !row.outcome().empty() && row.outcome() != "NotScheduled" &&
         row.class_() != FailureClassName(FailureClass::kImagePull);
}

const api::Condition* FindCondition(const api::GPUJobStatus& status, std::string_view type) {
  for (const auto& condition : status.conditions()) {
    if (condition.type() == type) return &condition;
  }
  return nullptr;
}

bool IsTrue(const api::GPUJobStatus& status, std::string_view type) {
  const auto* condition = FindCondition(status, type);
  return condition != nullptr && condition->status() == "True";
}

std::optional<FailureClass> ParseFailureClass(std::string_view text) {
  for (const auto one :
       {FailureClass::kUserError, FailureClass::kOutOfMemory, FailureClass::kImagePull,
        FailureClass::kDeviceFault, FailureClass::kNodeLost, FailureClass::kEvicted,
        FailureClass::kPreempted, FailureClass::kTimeout}) {
    if (FailureClassName(one) == text) return one;
  }
  return std::nullopt;
}

AvoidList NodesToAvoid(const Job& job, const api::GPUJobStatus& status, TimePoint now) {
  AvoidList out;
  for (const auto& row : status.attempts()) {
    const auto ended = TimeOf(row.end_time());
    if (!ended) continue;
    Millis for_time = kAvoidAfterRefusal;
    if (row.outcome() != "NotScheduled") {
      const auto failure = ParseFailureClass(row.class_());
      if (!failure || RuleFor(job, *failure).action != RetryAction::kRetryElsewhere) continue;
      for_time = kAvoidAfterFailure;
    }
    const TimePoint until = *ended + for_time;
    if (until <= now || row.failed_nodes().empty()) continue;
    for (const auto& node : row.failed_nodes()) out.nodes.push_back(NodeName{node});
    if (!out.until || until < *out.until) out.until = until;
  }
  std::sort(out.nodes.begin(), out.nodes.end());
  out.nodes.erase(std::unique(out.nodes.begin(), out.nodes.end()), out.nodes.end());
  return out;
}

std::vector<std::size_t> AllowedVariants(const Job& job, const api::GPUJobStatus& status) {
  const Variant* last = nullptr;
  for (const auto& row : status.attempts()) {
    if (!HasRun(row)) continue;
    for (const auto& variant : job.variants) {
      if (variant.name == row.variant()) last = &variant;
    }
  }
  const bool portable = !job.checkpoint || job.checkpoint->portable_across_vendors;
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < job.variants.size(); ++i) {
    const auto& variant = job.variants[i];
    const bool same = last == nullptr || variant.vendor == last->vendor;
    const bool allowed = same || job.switch_on_restart == SwitchOnRestart::kAlways ||
                         (job.switch_on_restart == SwitchOnRestart::kIfPortable && portable);
    if (allowed) out.push_back(i);
  }
  return out;
}

TimePoint WaitingSince(const Job& job, const api::GPUJobStatus& status) {
  TimePoint since = job.created;
  for (const auto& row : status.attempts()) {
    if (const auto end = TimeOf(row.end_time())) since = std::max(since, *end);
  }
  const auto* suspended = FindCondition(status, "Suspended");
  if (suspended == nullptr || suspended->status() != "False") return since;
  return std::max(since, TimeOf(suspended->last_transition_time()).value_or(since));
}

std::optional<TimePoint> RunningSince(const api::GPUJobStatus& status) {
  const auto* ready = FindCondition(status, "PodsReady");
  if (ready == nullptr || ready->status() != "True") return std::nullopt;
  return TimeOf(ready->last_transition_time());
}

Job AsWished(const Job& job, const api::GPUJobStatus& status, TimePoint now) {
  Job out = job;
  out.waiting_since = WaitingSince(job, status);
  const AvoidList avoid = NodesToAvoid(job, status, now);
  for (Role& role : out.roles) role.avoid = avoid.nodes;
  const auto allowed = AllowedVariants(job, status);
  if (allowed.size() == job.variants.size()) return out;
  out.variants.clear();
  for (const std::size_t i : allowed) out.variants.push_back(job.variants[i]);
  return out;
}

}  // namespace bimetal::core
