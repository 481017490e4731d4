#include "core/queue/gate.h"

#include <algorithm>

namespace bimetal::core::queue {
namespace {

std::optional<WholeRefusal> NotAllowed(
    const Job& job, const Queue& queue,
    const std::map<std::string, std::map<std::string, std::string>>& namespaces) {
  const auto labels = namespaces.find(job.name_space);
  for (const auto& [key, value] : queue.namespace_selector) {
    if (labels != namespaces.end()) {
      const auto label = labels->second.find(key);
      if (label != labels->second.end() && label->second == value) continue;
    }
    return WholeRefusal{
        .reason = "QueueNotAllowed",
        .message = "queue " + queue.name.value + " is not open to namespace " + job.name_space +
                   "; it can start when the namespace has the label " + key + "=" + value};
  }
  return std::nullopt;
}

std::optional<WholeRefusal> TooLong(const Job& job, int queue, const QueueTree& tree) {
  for (int at = queue; at != kNoQueue; at = tree.Parent(at)) {
    const auto& most = tree.At(at).max_duration_per_job;
    if (!most || (job.max_duration && *job.max_duration <= *most)) continue;
    const std::string asked = job.max_duration ? FormatDuration(*job.max_duration) : "not set";
    return WholeRefusal{.reason = "ExceedsLimit",
                        .message = "spec.limits.maxDuration is " + asked + " and queue " +
                                   tree.At(at).name.value + " allows at most " +
                                   FormatDuration(*most) +
                                   " (perJob.maxDuration); create the job again with a shorter one",
                        .never = true};
  }
  return std::nullopt;
}

}  // namespace

std::optional<WholeRefusal> RefusedByQueue(
    const Job& job, int queue, const QueueTree& tree,
    const std::map<std::string, std::map<std::string, std::string>>& namespaces) {
  const std::string name = "queue " + job.queue.value;
  if (queue == kNoQueue) {
    return WholeRefusal{.reason = "QueueNotFound",
                        .message = name +
                                   " does not exist; it can start when that GPUQueue is created, "
                                   "or create the job again with another queueName"};
  }
  if (const std::string& problem = tree.ProblemOf(queue); !problem.empty()) {
    return WholeRefusal{.reason = "QueueInvalid", .message = name + " takes no part: " + problem};
  }
  if (auto refused = NotAllowed(job, tree.At(queue), namespaces)) return refused;
  if (const int stopped = tree.StoppedBy(queue); stopped != kNoQueue) {
    const std::string who = "queue " + tree.At(stopped).name.value;
    return WholeRefusal{
        .reason = "QueueStopped",
        .message = (stopped == queue ? who : who + ", which is above " + name + ",") +
                   " is on hold; it can start when its stopPolicy is None"};
  }
  return TooLong(job, queue, tree);
}

TimePoint WaitsSince(const Job& job) { return std::max(job.created, job.waiting_since); }

bool MayUse(const Job& job, std::size_t variant, TimePoint now) {
  return variant == 0 || !job.fallback_after || job.selection != SelectionPolicy::kInOrder ||
         now >= WaitsSince(job) + *job.fallback_after;
}

std::string EvictionMessage(const Job& successor, const Queue& queue, const Tenant& victim) {
  const std::string who = "job " + successor.name_space + "/" + successor.name;
  if (victim.running.queue == queue.name) {
    return "evicted for " + who + ", which has a higher priority in queue " + queue.name.value +
           "; it waits in line again";
  }
  return "evicted for " + who + ", to which queue " + queue.name.value +
         " guarantees devices that queue " + victim.running.queue.value +
         " had borrowed; it waits in line again";
}

}  // namespace bimetal::core::queue
