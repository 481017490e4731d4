#include "core/admission/decide.h"

#include <algorithm>
#include <utility>

#include "core/admission/decider.h"

namespace bimetal::core::admission {
namespace {

constexpr Millis kFirstPause = Seconds(10), kLongestPause = Minutes(10);
// A pod that has ended hands its result in over the agent's socket at once; this covers a slow
// agent.
constexpr Millis kResultGrace = Seconds(15);
constexpr std::size_t kMaxEvents = 64, kMaxRecords = 256;
constexpr std::string_view kState = "state/", kEvent = "event/";

// What is stored has whole seconds, so that a restart changes nothing.
TimePoint WholeSecond(TimePoint time) { return TimePoint{time.ms - time.ms % 1000}; }

// 10 s, 20 s, 40 s ... 10 min after the `runs`-th Inconclusive run in a row.
Millis PauseAfter(int runs) {
  Millis pause = kFirstPause;
  for (int i = 1; i < runs && pause < kLongestPause; ++i) pause = pause + pause;
  return std::min(pause, kLongestPause);
}

int LevelRank(std::string_view level) {
  if (level == "L0") return 0;
  if (level == "L1") return 1;
  return level == "L2" ? 2 : -1;
}

// The key under which a fault is remembered as acted on.
std::string EventKey(const Fault& fault) {
  return Bounded(fault.event.empty() ? std::string(kState) + fault.code + "/" + fault.device.value
                                     : std::string(kEvent) + fault.event);
}

void ForgetPass(DeviceRecord& record) {
  record.fingerprint.clear();
  record.boot_id.clear();
  record.passed_at.reset();
}

}  // namespace

const DeviceRecord& Decider::Record(const DeviceId& id) const {
  static const DeviceRecord kNone;
  const auto it = decision_.memory.records.find(id);
  return it == decision_.memory.records.end() ? kNone : it->second;
}

bool Decider::HasPass(const DeviceId& id) const {
  const DeviceRecord& record = Record(id);
  return record.passed_at && record.failed_check.empty() && !report().fingerprint.empty() &&
         !report().boot_id.empty() && record.fingerprint == report().fingerprint &&
         record.boot_id == report().boot_id;
}

bool Decider::IsExpired(const DeviceId& id) const {
  const auto& passed_at = Record(id).passed_at;
  return policy_.expires_after && passed_at && now_ >= *passed_at + *policy_.expires_after;
}

bool Decider::NeedsRun(const DeviceId& id) const {
  if (mismatch_.failed.contains(id) || cordoned_now_.contains(id)) return false;  // in vain
  const DeviceRecord& record = Record(id);
  if (HasFailed(id)) return !record.due.empty();
  return !HasPass(id) || IsExpired(id) || !record.cordoned.empty() || !record.due.empty();
}

bool Decider::IsUnderRun(const DeviceId& id) const {
  if (PodIsActive() && facts_.pod->kind == RunKind::kKernels) {
    return facts_.pod->devices.empty() || facts_.pod->devices.contains(id);
  }
  return decision_.start_run && decision_.run_kind == RunKind::kKernels &&
         std::binary_search(decision_.run_devices.begin(), decision_.run_devices.end(), id);
}

bool Decider::IsProven(const DeviceId& id) const {
  // While a planned run is held back, the old pass counts.
  return HasPass(id) && Record(id).cordoned.empty() && !cordoned_now_.contains(id) &&
         !mismatch_.failed.contains(id) && !mismatch_.unknown.contains(id) &&
         (!IsExpired(id) || pass_counts_);
}

bool Decider::IsClosed(const DeviceId& id) const {
  return !IsProven(id) || IsUnderRun(id) ||
         std::find(busy_.begin(), busy_.end(), id) != busy_.end();
}

bool Decider::KernelsRun() const {
  return (PodIsActive() && facts_.pod->kind == RunKind::kKernels) ||
         (decision_.start_run && decision_.run_kind == RunKind::kKernels);
}

bool Decider::PathRuns() const {
  return (PodIsActive() && facts_.pod->kind == RunKind::kPath) ||
         (decision_.start_run && decision_.run_kind == RunKind::kPath);
}

bool Decider::PathIsProven() const {
  return !report().fingerprint.empty() && !report().boot_id.empty() &&
         memory().path.fingerprint == report().fingerprint &&
         memory().path.boot_id == report().boot_id;
}

bool Decider::IsInUse(const DeviceId& id) const {
  return std::any_of(report().devices.begin(), report().devices.end(),
                     [&](const auto& d) { return d.id == id && d.in_use.value_or(false); });
}

bool Decider::AnyInUse() const {
  return std::any_of(report().devices.begin(), report().devices.end(),
                     [](const auto& d) { return d.in_use.value_or(false); });
}

// A device that a pod holds has come to it on that way; our own pod's, though, proves nothing
// before it has spoken, nor after it has failed.
bool Decider::PathIsNeeded() const {
  if (!policy_.path_check || !policy_.enforce || PathIsProven()) return false;
  return !AnyInUse() || memory().path.failures > 0 ||
         (facts_.pod && facts_.pod->kind == RunKind::kPath);
}

bool Decider::PassedBefore() const {
  return std::any_of(memory().records.begin(), memory().records.end(),
                     [](const auto& entry) { return entry.second.passed_at.has_value(); });
}

std::vector<DeviceId> Decider::Failed() const {
  std::vector<DeviceId> out;
  if (!facts_.report) {
    for (const auto& [id, record] : memory().records) {
      if (!record.failed_check.empty()) out.push_back(id);
    }
    return out;
  }
  for (const auto& device : report().devices) {
    if (HasFailed(device.id)) out.push_back(device.id);
  }
  std::sort(out.begin(), out.end());
  return out;
}

void Decider::WakeAt(TimePoint time) {
  if (time <= now_) return;
  if (!decision_.wake || time < *decision_.wake) decision_.wake = time;
}

void Decider::EndPod() {
  decision_.end_run = facts_.pod->id;
  memory().last_run = facts_.pod->id;
  memory().pod_ended_at.reset();
}

void Decider::TriesAnew() {
  memory().inconclusive_runs = 0;
  memory().inconclusive_reason.clear();
  memory().next_run.reset();
  memory().path.failures = 0;
  memory().path.reason.clear();
  memory().path.next.reset();
}

void Decider::CountInconclusive(std::string reason) {
  memory().inconclusive_runs = std::min(memory().inconclusive_runs, 1'000'000) + 1;
  memory().inconclusive_reason = Bounded(std::move(reason));
  memory().next_run.reset();
  if (!Exhausted()) memory().next_run = WholeSecond(now_ + PauseAfter(memory().inconclusive_runs));
}

void Decider::CountPathFailure(std::string reason) {
  PathRecord& path = memory().path;
  path.failures = std::min(path.failures, 1'000'000) + 1;
  path.reason = Bounded(std::move(reason));
  path.next.reset();
  if (path.failures <= policy_.retries) path.next = WholeSecond(now_ + PauseAfter(path.failures));
}

// A new boot or fingerprint: whatever runs now can prove nothing any more.
void Decider::NoteSituation() {
  if (memory().seen_boot_id == report().boot_id &&
      memory().seen_fingerprint == report().fingerprint) {
    return;
  }
  const bool known = !memory().seen_boot_id.empty() || !memory().seen_fingerprint.empty();
  if (known && memory().seen_boot_id != report().boot_id) memory().handled_events.clear();
  memory().seen_boot_id = report().boot_id;
  memory().seen_fingerprint = report().fingerprint;
  if (PodIsActive()) EndPod();
  if (!known) return;  // a restart alone neither clears a verdict nor starts the tries anew
  TriesAnew();
  memory().capabilities.clear();
  for (auto& [id, record] : memory().records) {
    if (!record.failed_check.empty() && record.due.empty()) record.due = kRetry;
  }
}

void Decider::NoteRevalidate() {
  if (facts_.revalidate == memory().revalidated) return;
  memory().revalidated = facts_.revalidate;
  if (facts_.revalidate.empty()) return;  // the word was taken back, which asks for nothing
  if (PodIsActive()) EndPod();            // it began before the question
  TriesAnew();
  for (const auto& device : report().devices) RecordOf(device.id).due = kAsked;
}

// A profile of a higher level than the last pass asks for a new one.
void Decider::NoteProfile() {
  const int passed = LevelRank(memory().level), wanted = LevelRank(policy_.level);
  if (passed < 0 || wanted <= passed) return;
  for (const auto& device : report().devices) {
    DeviceRecord& record = RecordOf(device.id);
    if (record.passed_at && record.due.empty() && record.failed_check.empty()) {
      record.due = std::string(kProfileChanged) + ": level " + policy_.level;
    }
  }
}

void Decider::NoteExpect() {
  mismatch_ = Compare(policy_.expect, report());
  for (const auto& device : report().devices) {
    const DeviceRecord& known = Record(device.id);
    const bool ours =
        known.failed_check == "inventory" && known.failed_evidence.starts_with(kProfileExpects);
    const auto found = mismatch_.failed.find(device.id);
    if (found != mismatch_.failed.end() && (ours || known.failed_check.empty())) {
      DeviceRecord& record = RecordOf(device.id);
      record.failed_check = "inventory";
      record.failed_evidence = Bounded(found->second);
      ForgetPass(record);
    } else if (found == mismatch_.failed.end() && ours && known.due.empty()) {
      RecordOf(device.id).due = kRetry;  // the node or the profile was mended
    }
  }
}

void Decider::NoteFault(const Fault& fault) {
  const std::string text = Bounded(fault.code + ": " + fault.evidence);
  const bool state = fault.event.empty();
  const bool fresh = memory().handled_events.insert(EventKey(fault)).second;
  for (const auto& device : report().devices) {
    if (!fault.device.value.empty() && fault.device != device.id) continue;
    const bool cordon = fault.effect == Effect::kCordon;
    if (cordon && state) cordoned_now_.try_emplace(device.id, text);
    if (!fresh && !(cordon && state)) continue;
    if (cordon) {
      DeviceRecord& record = RecordOf(device.id);
      if (record.cordoned.empty()) record.cordoned = text;
    } else if (!HasFailed(device.id) && Record(device.id).due != kAsked) {
      RecordOf(device.id).due = Bounded(std::string(kFaultSeen) + ": " + text);
    }
    // A run that began before it says nothing of it.
    if (fresh && PodIsActive() && IsUnderRun(device.id)) EndPod();
  }
  if (fresh) TriesAnew();
}

void Decider::NoteFaults() {
  for (const Fault& fault : report().faults) {
    if (fault.effect != Effect::kNone) NoteFault(fault);
  }
  ForgetEvents();
}

// A state is forgotten when it has gone, so that its return is news; of what happened once, the
// newest are kept, because an agent that starts again tells them again.
void Decider::ForgetEvents() {
  std::set<std::string> present;
  for (const Fault& fault : report().faults) {
    if (fault.effect != Effect::kNone) present.insert(EventKey(fault));
  }
  auto& handled = memory().handled_events;
  for (auto it = handled.begin(); it != handled.end();) {
    const bool forget =
        !present.contains(*it) && (it->starts_with(kState) || handled.size() > kMaxEvents);
    it = forget ? handled.erase(it) : std::next(it);
  }
}

// Devices that are away are remembered for their return, as many as the status can hold.
void Decider::ForgetDevices() {
  auto& records = memory().records;
  for (const bool also_bad : {false, true}) {
    for (auto it = records.begin(); it != records.end() && records.size() > kMaxRecords;) {
      const bool present = std::any_of(report().devices.begin(), report().devices.end(),
                                       [&](const auto& d) { return d.id == it->first; });
      const bool bad = !it->second.failed_check.empty() || !it->second.cordoned.empty();
      it = !present && (!bad || also_bad) ? records.erase(it) : std::next(it);
    }
  }
}

void Decider::JudgeRun() {
  // Only the pod that is there now may speak; anything else is from another time.
  if (!facts_.run || !PodIsActive() || facts_.run->id != facts_.pod->id) return;
  if (facts_.pod->kind == RunKind::kPath) {
    JudgeWay(*facts_.run);
  } else {
    JudgeKernels(*facts_.run);
  }
  EndPod();
}

void Decider::JudgeWay(const admission::Run& run) {
  const Judgement judgement = JudgePath(run, report(), facts_.pod->devices);
  if (judgement.outcome != Judgement::Outcome::kPass) {
    decision_.judged = "inconclusive";
    CountPathFailure(judgement.text);
    return;
  }
  decision_.judged = "pass";
  memory().path = PathRecord{.fingerprint = report().fingerprint,
                             .boot_id = report().boot_id,
                             .failures = 0,
                             .reason = "",
                             .next = {}};
}

void Decider::JudgeKernels(const admission::Run& run) {
  const Judgement judgement = Judge(run, report(), policy_.required_checks, facts_.pod->devices,
                                    policy_.quarantine_degraded);
  for (const DeviceId& device : judgement.passed) {
    if (mismatch_.failed.contains(device)) continue;
    const auto cordon = cordoned_now_.find(device);
    RecordOf(device) = DeviceRecord{.fingerprint = report().fingerprint,
                                    .boot_id = report().boot_id,
                                    .passed_at = WholeSecond(now_),
                                    .failed_check = "",
                                    .failed_evidence = "",
                                    .cordoned = cordon == cordoned_now_.end() ? "" : cordon->second,
                                    .due = ""};
  }
  for (const auto& [device, verdict] : judgement.failures) {
    DeviceRecord& record = RecordOf(device);
    record.failed_check = verdict.check;
    record.failed_evidence = Bounded(verdict.evidence);
    record.due.clear();
    ForgetPass(record);
  }
  if (!judgement.passed.empty()) {
    memory().note = Bounded(judgement.note);
    memory().level = run.level;
    TakeCapabilities(judgement);
  }
  decision_.judged = judgement.outcome == Judgement::Outcome::kPass   ? "pass"
                     : judgement.outcome == Judgement::Outcome::kFail ? "fail"
                                                                      : "inconclusive";
  if (!judgement.lacking.empty()) {
    CountInconclusive(judgement.lacking);  // also of devices beside one that failed
  } else {
    memory().inconclusive_runs = 0;
    memory().inconclusive_reason.clear();
    memory().next_run.reset();
  }
}

// What the devices of this run share, and the proven devices beside them had in common before.
void Decider::TakeCapabilities(const Judgement& judgement) {
  const bool others =
      std::any_of(report().devices.begin(), report().devices.end(),
                  [&](const auto& d) { return HasPass(d.id) && !judgement.passed.contains(d.id); });
  std::set<std::string> both;
  for (const auto& capability : judgement.capabilities) {
    if (!others || memory().capabilities.contains(capability)) both.insert(capability);
  }
  memory().capabilities = std::move(both);
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
  decision_.judged = "inconclusive";
  if (pod.kind == RunKind::kPath) {
    CountPathFailure(std::move(why));
  } else {
    CountInconclusive(std::move(why));
  }
}

void Decider::NoteExpiry() {
  if (!policy_.expires_after) return;
  for (const auto& device : report().devices) {
    if (HasPass(device.id)) WakeAt(*Record(device.id).passed_at + *policy_.expires_after);
  }
}

// Open now, and nobody has asked: the old pass may go on.
bool Decider::IsPlanned(const DeviceId& id) const {
  return HasPass(id) && Record(id).cordoned.empty() && Record(id).due != kAsked;
}

// Why slots or breakers hold these back; empty where they do not.
std::string Decider::HeldBy(const std::vector<DeviceId>& devices, bool planned) const {
  if (devices.empty()) return "";
  if (!facts_.no_slot.empty()) return facts_.no_slot;
  if (planned) return facts_.breaker_planned;
  // What a person asked for passes the breakers, and a failed device cannot be made worse.
  const bool freed = std::any_of(devices.begin(), devices.end(), [&](const DeviceId& id) {
    return Record(id).due == kAsked || HasFailed(id);
  });
  return freed || !PassedBefore() ? "" : facts_.breaker;
}

void Decider::WantRun() {
  std::vector<DeviceId> planned, others;
  for (const auto& device : report().devices) {
    if (NeedsRun(device.id)) (IsPlanned(device.id) ? planned : others).push_back(device.id);
  }
  if (planned.empty() && others.empty()) return;
  if (facts_.hold || IsSilent() || Exhausted()) return;
  if (memory().next_run && now_ < *memory().next_run) {
    WakeAt(*memory().next_run);
    return;
  }
  // Our own run has its slot already.
  const bool running = PodIsActive() && facts_.pod->kind == RunKind::kKernels;
  const std::string others_held = running ? "" : HeldBy(others, false);
  const std::string planned_held = running ? "" : HeldBy(planned, true);
  held_ = others_held.empty() ? planned_held : others_held;
  held_by_slot_ = !facts_.no_slot.empty();
  if (!held_.empty()) {
    decision_.waits = held_by_slot_ ? Decision::Waits::kQueued : Decision::Waits::kHeld;
  }
  pass_counts_ = !planned_held.empty();
  std::vector<DeviceId> wanted;
  if (others_held.empty()) wanted = others;
  if (planned_held.empty()) wanted.insert(wanted.end(), planned.begin(), planned.end());
  std::sort(wanted.begin(), wanted.end());
  std::vector<DeviceId> idle;
  for (const DeviceId& id : wanted) {
    // A device that a pod holds is closed, so that it is run when its job ends.
    (IsInUse(id) ? busy_ : idle).push_back(id);
  }
  if (facts_.pod || idle.empty()) return;
  decision_.start_run = true;
  decision_.run_kind = RunKind::kKernels;
  decision_.run_devices = std::move(idle);
}

void Decider::WantPath() {
  if (decision_.start_run || facts_.pod || facts_.hold || IsSilent() || !PathIsNeeded()) return;
  const std::vector<DeviceId> usable = Healthy(Sound());
  if (usable.empty()) return;
  const PathRecord& path = memory().path;
  if (path.failures > policy_.retries) return;
  if (path.next && now_ < *path.next) {
    WakeAt(*path.next);
    return;
  }
  if (!facts_.no_slot.empty()) {
    held_ = facts_.no_slot;
    held_by_slot_ = true;
    decision_.waits = Decision::Waits::kQueued;
    return;
  }
  decision_.start_run = true;
  decision_.run_kind = RunKind::kPath;
  decision_.run_devices = usable;
}

Decision Decider::Run() {
  if (!facts_.node_exists) {
    if (facts_.pod) EndPod();
    Say(Phase::kLost, "NodeGone", "the Node object does not exist; its verdicts are kept");
    decision_.shut = policy_.enforce;
    return std::move(decision_);
  }
  if (!facts_.report) {
    if (!Failed().empty()) {
      Say(Phase::kQuarantined, "CheckFailed", FailureText() + "; the agent has not reported yet");
    } else if (!memory().seen_fingerprint.empty()) {
      Say(Phase::kLost, "AgentSilent",
          "the agent reported before the operator's start and has been silent since; look at its "
          "pod on the node");
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
  NoteExpect();
  NoteFaults();
  ForgetDevices();
  JudgeRun();
  NoteProfile();
  NoteExpiry();
  WatchPod();
  WantRun();
  WantPath();
  SayPhase();
  if (!IsSilent()) WakeAt(report().received + policy_.stale_after + Millis{1});
  Finish();
  return std::move(decision_);
}

Decision Decide(const Facts& facts, const Memory& memory, const Policy& policy, TimePoint now) {
  return Decider(facts, memory, policy, now).Run();
}

}  // namespace bimetal::core::admission
