#include "operator/controllers/attempt.h"

#include <algorithm>

namespace bimetal::op {
namespace {

bool IsImageTrouble(const std::string& reason) {
  return reason == "ErrImagePull" || reason == "ImagePullBackOff" || reason == "InvalidImageName" ||
         reason == "ErrImageNeverPull" || reason == "RegistryUnavailable" ||
         reason == "ImageInspectError";
}

std::string Describe(const PodRecord& pod) {
  std::string out = "pod " + pod.holds.name;
  if (pod.exit_code != 0) out += " exited with code " + std::to_string(pod.exit_code);
  if (!pod.end_reason.empty()) out += " (" + pod.end_reason + ")";
  if (!pod.end_message.empty()) out += ": " + pod.end_message;
  return out;
}

// The node under a pod that will never report again: gone, or silent for longer than allowed.
bool NodeLost(const AttemptFacts& facts, const PodRecord& pod, const AttemptOptions& options,
              TimePoint now, bool* soon) {
  if (!pod.bound) return false;
  const auto node = facts.nodes->find(pod.holds.node.value);
  if (node == facts.nodes->end()) return true;
  if (!node->second.not_ready_since) return false;
  if (*node->second.not_ready_since + options.node_lost_after <= now) return true;
  *soon = true;
  return false;
}

AttemptView End(AttemptView view, AttemptEnd end, std::string reason, std::string message) {
  view.end = end;
  view.reason = std::move(reason);
  view.message = std::move(message);
  return view;
}

}  // namespace

AttemptView JudgeAttempt(const AttemptFacts& facts, const AttemptOptions& options, TimePoint now) {
  AttemptView view;
  view.roles.resize(facts.job->roles.size());
  const std::int64_t wanted = core::PodCount(*facts.job);
  std::int64_t live = 0, succeeded = 0, started = 0;
  const PodRecord *failed = nullptr, *disrupted = nullptr, *deleted = nullptr, *lost = nullptr,
                  *unplaced = nullptr, *unpulled = nullptr, *waiting = nullptr;
  for (const PodRecord* pod : facts.pods) {
    for (std::size_t r = 0; r < facts.job->roles.size(); ++r) {
      if (facts.job->roles[r].name != pod->holds.of_job->role) continue;
      view.roles[r].ready += pod->ready && !pod->ended ? 1 : 0;
      view.roles[r].succeeded += pod->succeeded ? 1 : 0;
      view.roles[r].failed += pod->ended && !pod->succeeded ? 1 : 0;
    }
    if (pod->succeeded) {
      ++succeeded;
      continue;
    }
    if (pod->ended) {
      (pod->disrupted ? disrupted : failed) = pod;
      continue;
    }
    ++live;
    if (pod->running) ++started;
    if (pod->deleting) deleted = pod;
    if (pod->disrupted) disrupted = pod;
    if (NodeLost(facts, *pod, options, now, &view.recheck)) lost = pod;
    if (pod->Unschedulable()) unplaced = pod;
    if (IsImageTrouble(pod->waiting_reason)) unpulled = pod;
    if (!pod->waiting_reason.empty()) waiting = pod;
  }

  if (succeeded == wanted) {
    return End(view, AttemptEnd::kCompleted, "Completed",
               "all " + std::to_string(wanted) + " pods succeeded");
  }
  if (lost != nullptr) {
    return End(view, AttemptEnd::kDisrupted, "NodeLost",
               "node " + lost->holds.node.value + " under pod " + lost->holds.name + " is lost");
  }
  if (disrupted != nullptr)
    return End(view, AttemptEnd::kDisrupted, "PodLost", Describe(*disrupted) + " (disrupted)");
  if (deleted != nullptr) {
    return End(view, AttemptEnd::kDisrupted, "PodLost",
               "pod " + deleted->holds.name + " is being deleted; the gang restarts as one");
  }
  // After the disruptions: what the loss of a peer made a program do is not the program's fault.
  if (failed != nullptr) {
    return End(view, AttemptEnd::kFailed, "PodFailed", Describe(*failed));
  }
  const std::int64_t seen = live + succeeded + static_cast<std::int64_t>(facts.requested.size());
  const std::int64_t finished_and_gone = facts.finished_and_gone;
  if (seen + finished_and_gone < wanted) {
    return End(view, AttemptEnd::kDisrupted, "PodLost",
               std::to_string(wanted - seen) + " of " + std::to_string(wanted) +
                   " pods are gone; the gang restarts as one");
  }
  if (finished_and_gone > 0 && live == 0 && facts.requested.empty()) {
    return End(view, AttemptEnd::kCompleted, "Completed",
               "all " + std::to_string(wanted) + " pods succeeded");
  }
  if (unplaced != nullptr) {
    if (unplaced->created + options.unschedulable_after <= now) {
      return End(view, AttemptEnd::kNotScheduled, "PodUnschedulable",
                 "pod " + unplaced->holds.name + " was not placed on " +
                     unplaced->holds.node.value + ": " + unplaced->waiting_message);
    }
    view.recheck = true;
  }
  if (unpulled != nullptr) {
    if (unpulled->scheduled_at.value_or(unpulled->created) + options.image_pull_grace <= now) {
      return End(view, AttemptEnd::kFailed, "ImagePullFailed",
                 "pod " + unpulled->holds.name + ": " + unpulled->waiting_reason + ": " +
                     unpulled->waiting_message);
    }
    view.recheck = true;
  }
  view.state = started + succeeded + finished_and_gone == wanted ? "Running" : "Starting";
  view.reason = view.state == "Running" ? "PodsRunning" : "PodsStarting";
  view.message = std::to_string(started) + " of " + std::to_string(wanted) + " pods run";
  if (unpulled != nullptr) view.reason = "ImagePullFailed";
  if (waiting != nullptr) {
    view.message += "; pod " + waiting->holds.name + " waits: " + waiting->waiting_reason + ": " +
                    waiting->waiting_message;
  }
  return view;
}

void Timeline::See(const PodRecord& pod, TimePoint now, bool witnessed) {
  Entry& entry = entries_[pod.holds.name];
  if (!pod.bound) return;
  entry.node = pod.holds.node.value;
  if (!entry.begin) entry.begin = witnessed ? now : pod.scheduled_at.value_or(pod.created);
  if (pod.ended && !entry.end) entry.end = witnessed ? now : pod.finished_at.value_or(now);
}

void Timeline::Gone(const std::string& pod_name, TimePoint now) {
  const auto it = entries_.find(pod_name);
  if (it != entries_.end() && it->second.begin && !it->second.end) it->second.end = now;
}

std::vector<core::cost::Interval> Timeline::Intervals(
    core::Vendor vendor, std::int64_t devices_per_pod, TimePoint now,
    const std::map<std::string, std::string>& model_of_node) const {
  std::vector<core::cost::Interval> out;
  for (const auto& [name, entry] : entries_) {
    if (!entry.begin) continue;
    const auto model = model_of_node.find(entry.node);
    out.push_back({vendor, model == model_of_node.end() ? "" : model->second, devices_per_pod,
                   *entry.begin, entry.end.value_or(now)});
  }
  return out;
}

std::set<std::string> Timeline::Nodes() const {
  std::set<std::string> out;
  for (const auto& [name, entry] : entries_) {
    if (!entry.node.empty()) out.insert(entry.node);
  }
  return out;
}

}  // namespace bimetal::op
