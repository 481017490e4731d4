#include "operator/controllers/job_events.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "operator/controllers/events.h"

namespace bimetal::op {
namespace {

// Reasons to wait that somebody must do something about.
bool WantsHelp(std::string_view reason) {
  static constexpr std::array<std::string_view, 7> kReasons = {
      "Misconfigured",  "QueueNotFound",   "QueueNotAllowed", "NoMatchingDevice",
      "VariantMissing", "ExceedsCapacity", "PriceAboveLimit"};
  return std::find(kReasons.begin(), kReasons.end(), reason) != kReasons.end();
}

api::Event EventOf(const api::GPUJob& job, const std::string& key, const std::string& reason,
                   const std::string& message, bool warning, TimePoint now) {
  const auto& meta = job.metadata();
  api::Event event =
      MakeEvent("GPUJob", meta.name(), meta.uid() + "|" + key, reason, message, warning, now);
  PutIn(meta.namespace_(), meta.uid(), &event);
  return event;
}

}  // namespace

std::string StepOf(const api::GPUJobStatus& status) {
  return status.state() + "|" + status.reason() + "|" + std::to_string(status.attempt());
}

std::optional<api::Event> JobEvent(const api::GPUJob& job, const api::GPUJobStatus& status,
                                   TimePoint now) {
  const std::string& state = status.state();
  const std::string& reason = status.reason();
  bool tell = false, warning = true;
  if (state == "Pending") {
    tell = WantsHelp(reason);
  } else if (state == "Starting") {
    const bool trouble = reason == "ImagePullFailed";
    tell = trouble || (status.attempt() > 1 && reason == "PodsStarting");
    warning = trouble;
  } else if (state == "Restarting") {
    tell = true;
    warning = reason != "Preempted" && reason != "Suspended" && reason != "BudgetExceeded";
  } else if (state == "Suspended") {
    tell = true;
    warning = reason != "Suspended";
  } else if (state == "Failed") {
    tell = true;
  }
  if (!tell) return std::nullopt;
  std::string message = status.message();
  if (state == "Starting" && !warning) {
    message = "attempt " + std::to_string(status.attempt()) + ": " + message;
  }
  const std::string word = state == "Starting" && !warning ? "Placed" : reason;
  return EventOf(job, StepOf(status), word, message, warning, now);
}

api::Event BudgetEvent(const api::GPUJob& job, const std::string& reason,
                       const std::string& message, TimePoint now) {
  return EventOf(job, "budget|" + reason + "|" + job.spec().limits().budget().amount(), reason,
                 message, true, now);
}

}  // namespace bimetal::op
