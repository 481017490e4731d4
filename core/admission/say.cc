#include <algorithm>
#include <utility>

#include "core/admission/decider.h"

// What a decision says, and what it opens.
namespace bimetal::core::admission {
namespace {

constexpr std::size_t kMaxEvidence = 512;  // in a message, so that the way back is never cut off
constexpr std::string_view kAskAgain = "run bimetal validate NODE (or change spec.revalidate)";

// "FaultSeen: xid-79: ..." -> FaultSeen and the rest.
std::pair<std::string, std::string> SplitDue(const std::string& due) {
  const auto colon = due.find(": ");
  if (colon == std::string::npos) return {due, ""};
  return {due.substr(0, colon), due.substr(colon + 2)};
}

}  // namespace

std::string Bounded(std::string text, std::size_t limit) {
  if (text.size() <= limit) return text;
  std::size_t end = limit - 3;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  text.resize(end);
  return text + "...";
}

std::string Names(const std::vector<DeviceId>& devices) {
  std::string text;
  for (const DeviceId& device : devices) text += (text.empty() ? "" : ", ") + device.value;
  return text;
}

void Decider::Say(Phase phase, std::string_view reason, std::string message) {
  decision_.phase = phase;
  decision_.reason = reason;
  decision_.message = Bounded(std::move(message));
}

std::vector<DeviceId> Decider::Sound() const {
  std::vector<DeviceId> out;
  bool failed = false, closed = false;
  for (const auto& device : report().devices) {
    failed = failed || HasFailed(device.id);
    closed = closed || IsClosed(device.id);
    if (!IsClosed(device.id)) out.push_back(device.id);
  }
  // Where single devices cannot be withheld, one that is closed closes all.
  if ((closed && !policy_.by_device) || (failed && policy_.quarantine_node)) out.clear();
  std::sort(out.begin(), out.end());
  return out;
}

std::vector<DeviceId> Decider::Healthy(const std::vector<DeviceId>& devices) const {
  std::vector<DeviceId> out;
  for (const auto& device : report().devices) {
    if (device.health == DeviceHealth::kHealthy &&
        std::binary_search(devices.begin(), devices.end(), device.id)) {
      out.push_back(device.id);
    }
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::string Decider::FailureText() const {
  const std::vector<DeviceId> failed = Failed();
  const DeviceRecord& record = Record(failed.front());
  std::string text = record.failed_check + " on " + failed.front().value;
  if (!record.failed_evidence.empty()) text += ": " + Bounded(record.failed_evidence, kMaxEvidence);
  if (failed.size() > 1) text += " and " + std::to_string(failed.size() - 1) + " more";
  return text;
}

std::string Decider::SilenceText() const {
  return "the agent has been silent since " + FormatTime(report().received) +
         "; look at its pod on the node";
}

// What happens next, so that no bad verdict is without a way back.
std::string Decider::Way(std::string_view otherwise) const {
  if (KernelsRun()) return "validating again";
  if (facts_.hold) return "nothing is run while spec.hold is set";
  if (!held_.empty()) return "not run again yet: " + held_;
  if (!busy_.empty()) return "run again when the job on " + Names(busy_) + " has ended";
  if (memory().inconclusive_runs > 0 && memory().next_run) {
    return "next try at " + FormatTime(*memory().next_run);
  }
  return std::string(otherwise);
}

void Decider::SayQuarantine() {
  const std::vector<DeviceId> sound = Sound();
  const bool rest = !sound.empty() && !PathIsNeeded() && !IsSilent();
  const bool mismatch = mismatch_.failed.contains(Failed().front());
  std::string message = FailureText() + "; ";
  message += mismatch ? "it is run again when the node is as the profile expects, or the profile "
                        "as the node is"
                      : Way("repair it, then " + std::string(kAskAgain));
  if (rest) message += "; the other devices take jobs";
  if (!sound.empty() && PathIsNeeded()) {
    message += PathRuns() ? "; the path of jobs to the other devices is being proven"
                          : "; the other devices stay shut: " + memory().path.reason;
  }
  if (IsSilent()) message += "; " + SilenceText();
  Say(Phase::kQuarantined, rest ? "DeviceQuarantined" : "CheckFailed", std::move(message));
}

void Decider::SayWhyValidating() {
  std::string then = "; it opens when the validation has passed";
  if (facts_.pod && PodIsActive() && !facts_.pod->trouble.empty()) {
    then += "; " + facts_.pod->trouble;
  }
  for (const auto& device : report().devices) {
    const DeviceRecord& record = Record(device.id);
    if (!IsClosed(device.id)) continue;
    if (!record.passed_at) {
      return Say(Phase::kValidating, "NotValidated",
                 "device " + device.id.value + " has not passed yet" + then);
    }
    if (record.boot_id != report().boot_id) {
      return Say(Phase::kValidating, "Rebooted", "the node has booted since it passed" + then);
    }
    if (record.fingerprint != report().fingerprint) {
      return Say(Phase::kValidating, "FingerprintChanged",
                 "the fingerprint is " + report().fingerprint + ", and " + record.fingerprint +
                     " had passed" + then);
    }
    if (!record.cordoned.empty()) {
      return Say(Phase::kValidating, "FaultSeen",
                 "device " + device.id.value + " takes no new work: " + record.cordoned + then);
    }
    if (IsExpired(device.id)) {
      return Say(Phase::kValidating, "Expired", "the last pass has expired" + then);
    }
    const auto [reason, text] = SplitDue(record.due);
    if (!reason.empty() && reason != kRetry) {
      return Say(Phase::kValidating, reason,
                 (text.empty() ? "validation was asked for" : text) + then);
    }
  }
  Say(Phase::kValidating, "Revalidating", "the devices are being validated" + then);
}

void Decider::SayAdmitted() {
  std::vector<DeviceId> unhealthy, unknown, cordoned, closed;
  for (const ReportedDevice& device : report().devices) {
    if (!Record(device.id).cordoned.empty()) {
      cordoned.push_back(device.id);
    } else if (IsClosed(device.id)) {
      closed.push_back(device.id);
    } else if (device.health == DeviceHealth::kUnhealthy) {
      unhealthy.push_back(device.id);
    } else if (device.health == DeviceHealth::kUnknown) {
      unknown.push_back(device.id);
    }
  }
  std::string message = "validated";
  if (!memory().note.empty()) message += "; " + memory().note;
  if (!memory().inconclusive_reason.empty()) {
    message += "; not rechecked: " + memory().inconclusive_reason;
  }
  if (!held_.empty()) message += "; not run again yet: " + held_;
  if (!cordoned.empty()) {
    Say(Phase::kAdmitted, "DeviceCordoned",
        "no new work until they pass: " + Names(cordoned) + " (" +
            Bounded(Record(cordoned.front()).cordoned, kMaxEvidence) + "); " +
            Way("they are run when the finding has gone") + "; " + message);
  } else if (!closed.empty()) {
    Say(Phase::kAdmitted, "PartlyOpen",
        "withheld until they have passed: " + Names(closed) + "; " +
            Way(std::string(kAskAgain) + " to try again") + "; " + message);
  } else if (!unhealthy.empty()) {
    Say(Phase::kAdmitted, "DeviceUnhealthy",
        "withheld as unhealthy: " + Names(unhealthy) + "; " + message);
  } else if (!unknown.empty()) {
    Say(Phase::kAdmitted, "HealthUnknown",
        "withheld until their health is known: " + Names(unknown) + "; " + message);
  } else {
    Say(Phase::kAdmitted, "Passed", message);
  }
}

void Decider::SayPath() {
  const PathRecord& path = memory().path;
  if (!PathRuns() && path.failures > 0) {
    return Say(Phase::kInconclusive, "PathFailed",
               "the checks have passed, but a pod that asks for a device as jobs do did not get "
               "through: " +
                   Bounded(path.reason, kMaxEvidence) +
                   (path.next ? "; next try at " + FormatTime(*path.next)
                              : "; mend it, then " + std::string(kAskAgain)));
  }
  if (!held_.empty()) return Say(Phase::kValidating, "RunQueued", "waits for its turn: " + held_);
  std::string message = "the checks have passed; a pod proves the way of a job to the devices";
  if (PodIsActive() && !facts_.pod->trouble.empty()) message += "; " + facts_.pod->trouble;
  Say(Phase::kValidating, "ProvingPath", std::move(message));
}

// Nothing is open and no kernel runs: what is waited for.
void Decider::SayShut() {
  const Memory& m = memory();
  if (!Sound().empty()) return SayPath();
  if (!held_.empty()) {
    return Say(Phase::kValidating, held_by_slot_ ? "RunQueued" : "BreakerOpen",
               (held_by_slot_ ? "waits for its turn: " : "not run: ") + held_);
  }
  if (!busy_.empty()) {
    return Say(Phase::kValidating, "DevicesBusy",
               "jobs hold " + Names(busy_) + "; each is run when its job has ended");
  }
  if (m.inconclusive_runs > 0 && m.next_run) {
    return Say(
        Phase::kInconclusive, "RunInconclusive",
        Bounded(m.inconclusive_reason, kMaxEvidence) + "; next try at " + FormatTime(*m.next_run));
  }
  if (m.inconclusive_runs > 0) {
    return Say(Phase::kInconclusive, "RetriesExhausted",
               Bounded(m.inconclusive_reason, kMaxEvidence) + "; remove the cause, then " +
                   std::string(kAskAgain));
  }
  if (!mismatch_.unknown.empty()) {
    return Say(Phase::kInconclusive, "InventoryUnknown",
               mismatch_.unknown.begin()->second +
                   "; it opens when that is known, or the profile does not ask for it");
  }
  if (!cordoned_now_.empty()) {
    const auto& [id, text] = *cordoned_now_.begin();
    return Say(Phase::kValidating, "FaultSeen",
               "device " + id.value + " takes no new work: " + text +
                   "; it is run when the finding has gone");
  }
  SayWhyValidating();  // waiting for an old pod to go, or for the end of a hold
}

void Decider::SayPhase() {
  if (!Failed().empty()) {
    SayQuarantine();
  } else if (IsSilent()) {
    Say(Phase::kLost, "AgentSilent", SilenceText());
  } else if (PathRuns()) {
    SayPath();
  } else if (!Sound().empty() && !PathIsNeeded()) {
    SayAdmitted();
  } else if (KernelsRun()) {
    SayWhyValidating();
  } else {
    SayShut();
  }
}

void Decider::Open() {
  if (facts_.hold || IsSilent()) return;
  std::vector<DeviceId> all;
  for (const auto& device : report().devices) all.push_back(device.id);
  std::sort(all.begin(), all.end());
  const std::vector<DeviceId> usable = Healthy(policy_.enforce ? Sound() : all);
  if (PathIsNeeded()) {
    if (PathRuns()) decision_.offer = usable;
    return;
  }
  decision_.open = decision_.offer = usable;
  const bool proven =
      std::all_of(usable.begin(), usable.end(), [&](const DeviceId& id) { return IsProven(id); });
  if (!usable.empty() && proven) decision_.capabilities = memory().capabilities;
}

void Decider::Finish() {
  Open();
  decision_.shut = policy_.enforce && decision_.open.empty();
  if (facts_.hold && decision_.phase != Phase::kLost) {
    decision_.message =
        Bounded("held by spec.hold; otherwise " + decision_.reason + ": " + decision_.message);
    decision_.reason = "Held";
  }
}

}  // namespace bimetal::core::admission
