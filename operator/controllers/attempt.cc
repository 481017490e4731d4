#include "operator/controllers/attempt.h"

#include <algorithm>
#include <numeric>
#include <tuple>

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

// SIGKILL without a deletion is the kernel's answer to a program that outgrew its memory.
bool IsOutOfMemory(const PodRecord& pod) {
  return pod.end_reason == "OOMKilled" || (pod.exit_code == 137 && !pod.deleting);
}

// The kubelet would not take the pod: devices are not back yet, or held by somebody else.
bool IsRefusal(const PodRecord& pod) {
  return pod.end_reason == "UnexpectedAdmissionError" || pod.end_reason.starts_with("OutOf");
}

// Of two pods that failed, the one that tells more of the cause: the first to end; of those of one
// second the one that ran out of memory, then by name.
bool TellsMore(const PodRecord& a, const PodRecord& b) {
  const auto key = [](const PodRecord& pod) {
    return std::tuple(pod.finished_at.value_or(TimePoint{}), !IsOutOfMemory(pod), pod.holds.name);
  };
  return key(a) < key(b);
}

class Judge {
 public:
  Judge(const AttemptFacts& facts, const AttemptOptions& options, TimePoint now)
      : facts_(facts), options_(options), now_(now) {}

  AttemptView Run();

 private:
  void Look(const PodRecord& pod);
  void Count(const PodRecord& pod);
  bool OnLostNode(const PodRecord& pod);
  bool IsDue(TimePoint when);
  bool EndsByLoss();
  bool EndsByStart();
  void End(AttemptEnd end, std::optional<core::FailureClass> failure, std::string reason,
           std::string message, const std::vector<const PodRecord*>& where);
  void GoOn();

  const AttemptFacts& facts_;
  const AttemptOptions& options_;
  TimePoint now_;
  AttemptView view_;
  std::int64_t wanted_ = 0, live_ = 0, succeeded_ = 0, started_ = 0;
  std::vector<const PodRecord*> failed_, disrupted_, deleted_, lost_, unplaced_, unpulled_, slow_;
  const PodRecord* waiting_ = nullptr;
};

// True where `when` has come; else the attempt is looked at again then.
bool Judge::IsDue(TimePoint when) {
  if (when <= now_) return true;
  if (!view_.recheck || when < *view_.recheck) view_.recheck = when;
  return false;
}

// The node under a pod that will never report again: gone, or silent for longer than allowed.
bool Judge::OnLostNode(const PodRecord& pod) {
  if (!pod.bound) return false;
  const auto node = facts_.nodes->find(pod.holds.node.value);
  if (node == facts_.nodes->end()) return true;
  const auto& since = node->second.not_ready_since;
  return since && IsDue(*since + options_.node_lost_after);
}

void Judge::Count(const PodRecord& pod) {
  for (std::size_t r = 0; r < facts_.job->roles.size(); ++r) {
    if (facts_.job->roles[r].name != pod.holds.of_job->role) continue;
    view_.roles[r].ready += pod.ready && !pod.ended ? 1 : 0;
    view_.roles[r].succeeded += pod.succeeded ? 1 : 0;
    view_.roles[r].failed += pod.ended && !pod.succeeded ? 1 : 0;
  }
}

void Judge::Look(const PodRecord& pod) {
  Count(pod);
  if (pod.succeeded) {
    ++succeeded_;
    return;
  }
  if (pod.ended) {
    (pod.disrupted ? disrupted_ : failed_).push_back(&pod);
    return;
  }
  ++live_;
  if (pod.running) ++started_;
  if (pod.deleting) deleted_.push_back(&pod);
  if (pod.disrupted) disrupted_.push_back(&pod);
  if (OnLostNode(pod)) lost_.push_back(&pod);
  if (pod.Unschedulable()) unplaced_.push_back(&pod);
  if (IsImageTrouble(pod.waiting_reason)) unpulled_.push_back(&pod);
  if (pod.bound && pod.creating) slow_.push_back(&pod);
  if (!pod.waiting_reason.empty()) waiting_ = &pod;
}

void Judge::End(AttemptEnd end, std::optional<core::FailureClass> failure, std::string reason,
                std::string message, const std::vector<const PodRecord*>& where) {
  view_.end = end;
  view_.failure = failure;
  view_.reason = std::move(reason);
  view_.message = std::move(message);
  for (const PodRecord* pod : where) {
    if (!pod->holds.node.value.empty()) view_.nodes.insert(pod->holds.node.value);
  }
  if (!failure || *failure == core::FailureClass::kImagePull) return;
  // A device that failed under one member explains what any other did.
  std::vector<const PodRecord*> struck;
  for (const PodRecord* pod : facts_.pods) {
    if (facts_.faults.contains(pod->holds.name)) struck.push_back(pod);
  }
  if (struck.empty()) return;
  view_.end = AttemptEnd::kDisrupted;
  view_.failure = core::FailureClass::kDeviceFault;
  view_.reason = "DeviceFault";
  view_.message = facts_.faults.at(struck.front()->holds.name) + " under pod " +
                  struck.front()->holds.name + "; " + view_.message;
  view_.nodes.clear();
  for (const PodRecord* pod : struck) view_.nodes.insert(pod->holds.node.value);
}

// What ends an attempt whatever else its pods do.
bool Judge::EndsByLoss() {
  using core::FailureClass;
  if (!lost_.empty()) {
    const PodRecord& pod = *lost_.front();
    End(AttemptEnd::kDisrupted, FailureClass::kNodeLost, "NodeLost",
        "node " + pod.holds.node.value + " under pod " + pod.holds.name + " is lost", lost_);
    return true;
  }
  if (!disrupted_.empty()) {
    const PodRecord& pod = *disrupted_.front();
    const std::string refused = "the kubelet of " + pod.holds.node.value + " refused ";
    if (IsRefusal(pod)) {
      End(AttemptEnd::kDisrupted, FailureClass::kEvicted, "NodeRefusedPod", refused + Describe(pod),
          disrupted_);
    } else {
      End(AttemptEnd::kDisrupted, FailureClass::kEvicted, "PodLost", Describe(pod) + " (disrupted)",
          disrupted_);
    }
    return true;
  }
  if (!deleted_.empty()) {
    End(AttemptEnd::kDisrupted, FailureClass::kEvicted, "PodLost",
        "pod " + deleted_.front()->holds.name + " is being deleted; the gang restarts as one",
        deleted_);
    return true;
  }
  // After the disruptions: what the loss of a peer made a program do is not the program's fault.
  if (!failed_.empty()) {
    const PodRecord& first = **std::min_element(
        failed_.begin(), failed_.end(),
        [](const PodRecord* a, const PodRecord* b) { return TellsMore(*a, *b); });
    const bool memory = IsOutOfMemory(first);
    End(AttemptEnd::kFailed, memory ? FailureClass::kOutOfMemory : FailureClass::kUserError,
        memory ? "OutOfMemory" : "PodFailed", Describe(first), {&first});
    return true;
  }
  const std::int64_t seen = live_ + succeeded_ + static_cast<std::int64_t>(facts_.requested.size());
  if (seen + facts_.finished_and_gone >= wanted_) return false;
  End(AttemptEnd::kDisrupted, FailureClass::kEvicted, "PodLost",
      std::to_string(wanted_ - seen) + " of " + std::to_string(wanted_) +
          " pods are gone; the gang restarts as one",
      {});
  return true;
}

// What ends an attempt that does not get its pods to run.
bool Judge::EndsByStart() {
  for (const PodRecord* pod : unplaced_) {
    if (!IsDue(pod->created + options_.unschedulable_after)) continue;
    End(AttemptEnd::kNotScheduled, std::nullopt, "PodUnschedulable",
        "pod " + pod->holds.name + " was not placed on " + pod->holds.node.value + ": " +
            pod->waiting_message,
        unplaced_);
    return true;
  }
  for (const PodRecord* pod : unpulled_) {
    if (!IsDue(pod->scheduled_at.value_or(pod->created) + options_.image_pull_grace)) continue;
    End(AttemptEnd::kFailed, core::FailureClass::kImagePull, "ImagePullFailed",
        "pod " + pod->holds.name + ": " + pod->waiting_reason + ": " + pod->waiting_message,
        unpulled_);
    return true;
  }
  for (const PodRecord* pod : slow_) {
    if (!IsDue(pod->scheduled_at.value_or(pod->created) + options_.image_pull_timeout)) continue;
    End(AttemptEnd::kFailed, core::FailureClass::kImagePull, "ImagePullTimeout",
        "pod " + pod->holds.name + " has no container after " +
            FormatDuration(options_.image_pull_timeout) +
            ": its image or its volumes are not there yet",
        slow_);
    return true;
  }
  return false;
}

void Judge::GoOn() {
  const bool running = started_ + succeeded_ + facts_.finished_and_gone == wanted_;
  view_.state = running ? "Running" : "Starting";
  view_.reason = view_.state == "Running" ? "PodsRunning" : "PodsStarting";
  view_.message = std::to_string(started_) + " of " + std::to_string(wanted_) + " pods run";
  if (!unpulled_.empty()) view_.reason = "ImagePullFailed";
  if (waiting_ == nullptr) return;
  view_.message += "; pod " + waiting_->holds.name + " waits: " + waiting_->waiting_reason + ": " +
                   waiting_->waiting_message;
}

AttemptView Judge::Run() {
  view_.roles.resize(facts_.job->roles.size());
  wanted_ = core::PodCount(*facts_.job);
  if (!facts_.gang.empty()) wanted_ = std::accumulate(facts_.gang.begin(), facts_.gang.end(), 0LL);
  for (const PodRecord* pod : facts_.pods) Look(*pod);
  const std::string all = "all " + std::to_string(wanted_) + " pods succeeded";
  if (succeeded_ == wanted_) {
    End(AttemptEnd::kCompleted, std::nullopt, "Completed", all, {});
  } else if (EndsByLoss()) {
    return view_;
  } else if (facts_.finished_and_gone > 0 && live_ == 0 && facts_.requested.empty()) {
    End(AttemptEnd::kCompleted, std::nullopt, "Completed", all, {});
  } else if (!EndsByStart()) {
    GoOn();
  }
  return view_;
}

}  // namespace

AttemptView JudgeAttempt(const AttemptFacts& facts, const AttemptOptions& options, TimePoint now) {
  return Judge(facts, options, now).Run();
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
