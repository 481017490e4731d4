#include "core/admission/decide.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/admission/judge.h"

namespace bimetal::core::admission {
namespace {

constexpr Millis kFirstPause = Seconds(10), kLongestPause = Minutes(10);
// A pod that has ended hands its result in over the agent's socket at once; this covers a slow
// agent.
constexpr Millis kResultGrace = Seconds(15);
constexpr std::size_t kMaxText = 1024;

constexpr std::array<std::pair<Phase, std::string_view>, 6> kPhases = {{
    {Phase::kDiscovered, "Discovered"},
    {Phase::kValidating, "Validating"},
    {Phase::kAdmitted, "Admitted"},
    {Phase::kQuarantined, "Quarantined"},
    {Phase::kInconclusive, "Inconclusive"},
    {Phase::kLost, "Lost"},
}};

constexpr std::array<std::pair<Verdict, std::string_view>, 5> kVerdicts = {{
    {Verdict::kPass, "Pass"},
    {Verdict::kDegraded, "Degraded"},
    {Verdict::kFail, "Fail"},
    {Verdict::kInconclusive, "Inconclusive"},
    {Verdict::kNoProfile, "NoProfile"},
}};

// Evidence comes from programs; what is kept of it is bounded, and cut at a character's end.
std::string Bounded(std::string text) {
  if (text.size() <= kMaxText) return text;
  std::size_t end = kMaxText - 3;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  text.resize(end);
  return text + "...";
}

// 10 s, 20 s, 40 s ... 10 min after the `runs`-th Inconclusive run in a row.
Millis PauseAfter(int runs) {
  Millis pause = kFirstPause;
  for (int i = 1; i < runs && pause < kLongestPause; ++i) pause = pause + pause;
  return std::min(pause, kLongestPause);
}

std::string Names(const std::vector<DeviceId>& devices) {
  std::string text;
  for (const DeviceId& device : devices) text += (text.empty() ? "" : ", ") + device.value;
  return text;
}

// Works on one decision. The steps run in the order of Run(): what ended, what changed, what is
// wanted, then what to say and to open.
class Decider {
 public:
  Decider(const Facts& facts, const Memory& memory, const Policy& policy, TimePoint now)
      : facts_(facts), policy_(policy), now_(now) {
    decision_.memory = memory;
  }

  Decision Run();

 private:
  Memory& memory() { return decision_.memory; }
  const Report& report() const { return *facts_.report; }

  bool HasPass() const;  // for the present boot and fingerprint, and not expired
  bool IsSilent() const { return now_ - report().received > policy_.stale_after; }
  bool IsQuarantined() const;
  bool PodIsActive() const;

  void NoteSituation();
  void NoteRevalidate();
  void NoteExpiry();
  void JudgeRun();
  void WatchPod();
  void WantRun();
  void EndPod();
  void CountInconclusive(std::string reason);
  void WakeAt(TimePoint time);

  std::string FailureText() const {
    const std::string& evidence = decision_.memory.failed_evidence;
    return evidence.empty() ? "a check failed" : evidence;
  }
  void Say(Phase phase, std::string_view reason, std::string message);
  void SayPhase();
  void SayWhyValidating();
  void SayHealth();
  void Open();
  void Finish();

  const Facts& facts_;
  const Policy& policy_;
  const TimePoint now_;
  Decision decision_;
};

bool Decider::IsQuarantined() const {
  if (!facts_.report) return !decision_.memory.failed_devices.empty();
  return std::any_of(
      report().devices.begin(), report().devices.end(),
      [&](const ReportedDevice& d) { return decision_.memory.failed_devices.contains(d.id); });
}

bool Decider::HasPass() const {
  const Memory& memory = decision_.memory;
  return memory.validated_at && memory.validated_fingerprint == report().fingerprint &&
         memory.validated_boot_id == report().boot_id && !report().fingerprint.empty() &&
         !report().boot_id.empty() && !IsQuarantined();
}

bool Decider::PodIsActive() const {
  return facts_.pod && facts_.pod->id != decision_.memory.last_run;
}

void Decider::WakeAt(TimePoint time) {
  if (!decision_.wake || time < *decision_.wake) decision_.wake = time;
}

void Decider::EndPod() {
  decision_.end_run = facts_.pod->id;
  memory().last_run = facts_.pod->id;
  memory().pod_ended_at.reset();
}

void Decider::CountInconclusive(std::string reason) {
  memory().inconclusive_runs = std::min(memory().inconclusive_runs, 1'000'000) + 1;
  memory().inconclusive_reason = Bounded(std::move(reason));
  memory().next_run.reset();
  if (memory().inconclusive_runs <= policy_.retries) {
    memory().next_run = now_ + PauseAfter(memory().inconclusive_runs);
  }
}

// A new boot or fingerprint: whatever runs now can prove nothing any more.
void Decider::NoteSituation() {
  if (memory().seen_boot_id == report().boot_id &&
      memory().seen_fingerprint == report().fingerprint) {
    return;
  }
  const bool known = !memory().seen_boot_id.empty() || !memory().seen_fingerprint.empty();
  memory().seen_boot_id = report().boot_id;
  memory().seen_fingerprint = report().fingerprint;
  if (PodIsActive()) EndPod();
  if (!known) return;  // a restart alone neither clears a verdict nor starts the tries anew
  memory().inconclusive_runs = 0;
  memory().inconclusive_reason.clear();
  memory().next_run.reset();
  if (!HasPass()) memory().next_run = now_;
}

void Decider::NoteRevalidate() {
  if (facts_.revalidate == memory().revalidated) return;
  memory().revalidated = facts_.revalidate;
  if (facts_.revalidate.empty()) return;  // the word was taken back, which asks for nothing
  memory().inconclusive_runs = 0;
  memory().inconclusive_reason.clear();
  memory().next_run = now_;
}

void Decider::NoteExpiry() {
  if (!policy_.expires_after || !HasPass()) return;
  const TimePoint end = *memory().validated_at + *policy_.expires_after;
  if (now_ < end) {
    WakeAt(end);
    return;
  }
  memory().validated_at.reset();
  memory().inconclusive_runs = 0;
  memory().inconclusive_reason.clear();
  memory().next_run = now_;
}

void Decider::JudgeRun() {
  // Only the pod that is there now may speak; anything else is from another time.
  if (!facts_.run || !PodIsActive() || facts_.run->id != facts_.pod->id) return;
  const Judgement judgement = Judge(*facts_.run, report(), policy_.required_checks);
  EndPod();
  if (judgement.outcome == Judgement::Outcome::kInconclusive) {
    CountInconclusive(judgement.text);
    return;
  }
  for (const DeviceId& device : judgement.passed) memory().failed_devices.erase(device);
  memory().failed_devices.insert(judgement.failed.begin(), judgement.failed.end());
  memory().inconclusive_runs = 0;
  memory().inconclusive_reason.clear();
  memory().next_run.reset();
  memory().note.clear();
  if (judgement.outcome == Judgement::Outcome::kFail) {
    memory().failed_evidence = Bounded(judgement.text);
    memory().validated_fingerprint.clear();
    memory().validated_boot_id.clear();
    memory().validated_at.reset();
    return;
  }
  if (memory().failed_devices.empty()) memory().failed_evidence.clear();
  memory().note = Bounded(judgement.text);
  memory().validated_fingerprint = report().fingerprint;
  memory().validated_boot_id = report().boot_id;
  memory().validated_at = now_;
}

// The pod that has not spoken: until when it may.
void Decider::WatchPod() {
  if (facts_.pod && !PodIsActive()) decision_.end_run = facts_.pod->id;
  if (!PodIsActive()) {
    memory().pod_ended_at.reset();
    return;
  }
  const RunPod& pod = *facts_.pod;
  TimePoint end = pod.created + policy_.run_timeout;
  std::string why = "no result within " + FormatDuration(policy_.run_timeout);
  if (pod.ended) {
    if (!memory().pod_ended_at) memory().pod_ended_at = now_;
    const TimePoint grace = *memory().pod_ended_at + kResultGrace;
    if (grace < end) {
      end = grace;
      why = "the validation pod ended without a result";
    }
  }
  if (now_ < end) {
    WakeAt(end);
    return;
  }
  if (!pod.trouble.empty()) why += ": " + pod.trouble;
  EndPod();
  CountInconclusive(std::move(why));
}

void Decider::WantRun() {
  if (!HasPass() && !IsQuarantined() && !memory().next_run && memory().inconclusive_runs == 0) {
    memory().next_run = now_;
  }
  if (!memory().next_run || facts_.hold || facts_.pod || IsSilent()) return;
  if (*memory().next_run <= now_) {
    decision_.start_run = true;
  } else {
    WakeAt(*memory().next_run);
  }
}

void Decider::Say(Phase phase, std::string_view reason, std::string message) {
  decision_.phase = phase;
  decision_.reason = reason;
  decision_.message = Bounded(std::move(message));
}

void Decider::SayWhyValidating() {
  std::string trouble;
  if (PodIsActive() && !facts_.pod->trouble.empty()) trouble = "; " + facts_.pod->trouble;
  const Memory& m = decision_.memory;
  const std::string then = "; it opens when the validation has passed" + trouble;
  if (HasPass()) {
    Say(Phase::kValidating, "Revalidating", "validation was asked for" + then);
  } else if (m.validated_fingerprint.empty() && m.validated_boot_id.empty()) {
    Say(Phase::kValidating, "NotValidated", "the devices have not passed yet" + then);
  } else if (m.validated_boot_id != report().boot_id) {
    Say(Phase::kValidating, "Rebooted", "the node has booted since it passed" + then);
  } else if (m.validated_fingerprint != report().fingerprint) {
    Say(Phase::kValidating, "FingerprintChanged",
        "the fingerprint is " + report().fingerprint + ", and " + m.validated_fingerprint +
            " had passed" + then);
  } else {
    Say(Phase::kValidating, "Expired", "the last pass has expired" + then);
  }
}

void Decider::SayHealth() {
  std::vector<DeviceId> unhealthy, unknown;
  for (const ReportedDevice& device : report().devices) {
    if (device.health == DeviceHealth::kUnhealthy) unhealthy.push_back(device.id);
    if (device.health == DeviceHealth::kUnknown) unknown.push_back(device.id);
  }
  std::string message = "validated";
  if (!decision_.memory.note.empty()) message += "; " + decision_.memory.note;
  if (!decision_.memory.inconclusive_reason.empty()) {
    message += "; not rechecked: " + decision_.memory.inconclusive_reason;
  }
  if (!unhealthy.empty()) {
    Say(Phase::kAdmitted, "DeviceUnhealthy",
        "withheld as unhealthy: " + Names(unhealthy) + "; " + message);
  } else if (!unknown.empty()) {
    Say(Phase::kAdmitted, "HealthUnknown",
        "withheld until their health is known: " + Names(unknown) + "; " + message);
  } else {
    Say(Phase::kAdmitted, "Passed", message);
  }
}

void Decider::SayPhase() {
  const Memory& m = decision_.memory;
  const bool silent = IsSilent();
  const std::string silence = "the agent has been silent since " + FormatTime(report().received) +
                              "; look at its pod on the node";
  if (IsQuarantined()) {
    std::string message = FailureText();
    message += decision_.start_run || PodIsActive()
                   ? "; validating again"
                   : "; change spec.revalidate to validate again once it is repaired";
    if (silent) message += "; " + silence;
    Say(Phase::kQuarantined, "CheckFailed", std::move(message));
  } else if (silent) {
    Say(Phase::kLost, "AgentSilent", silence);
  } else if (decision_.start_run || PodIsActive()) {
    SayWhyValidating();
  } else if (HasPass()) {
    SayHealth();
  } else if (m.inconclusive_runs > 0 && m.next_run) {
    Say(Phase::kInconclusive, "RunInconclusive",
        m.inconclusive_reason + "; next try at " + FormatTime(*m.next_run));
  } else if (m.inconclusive_runs > 0) {
    Say(Phase::kInconclusive, "RetriesExhausted",
        m.inconclusive_reason + "; change spec.revalidate to try again");
  } else {
    SayWhyValidating();  // waiting for an old pod to go, or for the end of a hold
  }
}

void Decider::Open() {
  if (facts_.hold || decision_.phase == Phase::kLost || IsSilent()) return;
  // While a validation runs it needs the devices to itself, so a pass alone does not open.
  if (policy_.enforce && decision_.phase != Phase::kAdmitted) return;
  for (const ReportedDevice& device : report().devices) {
    if (device.health == DeviceHealth::kHealthy) decision_.open.push_back(device.id);
  }
  std::sort(decision_.open.begin(), decision_.open.end());
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

Decision Decider::Run() {
  if (!facts_.node_exists) {
    if (facts_.pod) EndPod();
    Say(Phase::kLost, "NodeGone", "the Node object does not exist; its verdicts are kept");
    decision_.shut = policy_.enforce;
    return std::move(decision_);
  }
  if (!facts_.report) {
    if (IsQuarantined()) {
      Say(Phase::kQuarantined, "CheckFailed", FailureText() + "; the agent has not reported yet");
    } else {
      Say(Phase::kDiscovered, "WaitingForReport",
          "the agent has not reported yet; look at its pod on the node");
    }
    decision_.shut = policy_.enforce;
    return std::move(decision_);
  }
  if (report().devices.empty()) {
    if (PodIsActive()) EndPod();
    Say(Phase::kDiscovered, "NoDevices",
        "the agent finds no devices of this vendor; look at its findings");
    decision_.shut = policy_.enforce;
    return std::move(decision_);
  }
  NoteSituation();
  NoteRevalidate();
  JudgeRun();
  NoteExpiry();
  WatchPod();
  WantRun();
  SayPhase();
  if (!IsSilent()) WakeAt(report().received + policy_.stale_after + Millis{1});
  Finish();
  return std::move(decision_);
}

}  // namespace

std::string_view PhaseName(Phase phase) {
  for (const auto& [value, name] : kPhases) {
    if (value == phase) return name;
  }
  return "";
}

std::optional<Phase> ParsePhase(std::string_view text) {
  for (const auto& [value, name] : kPhases) {
    if (name == text) return value;
  }
  return std::nullopt;
}

std::optional<Verdict> ParseVerdict(std::string_view text) {
  for (const auto& [value, name] : kVerdicts) {
    if (name == text) return value;
  }
  return std::nullopt;
}

Decision Decide(const Facts& facts, const Memory& memory, const Policy& policy, TimePoint now) {
  return Decider(facts, memory, policy, now).Run();
}

}  // namespace bimetal::core::admission
