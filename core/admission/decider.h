#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/admission/decide.h"
#include "core/admission/expect.h"
#include "core/admission/judge.h"

// Inside of Decide; nobody else includes this.
namespace bimetal::core::admission {

// Why a device must be run: the value of DeviceRecord::due, with its text after ": ".
inline constexpr std::string_view kAsked = "Revalidating";
inline constexpr std::string_view kFaultSeen = "FaultSeen";
inline constexpr std::string_view kProfileChanged = "ProfileChanged";
inline constexpr std::string_view kRetry = "Retry";  // of a failed device, after a change

// Works on one decision: what ended, what changed, what is wanted, then what to say and to open.
class Decider {
 public:
  Decider(const Facts& facts, const Memory& memory, const Policy& policy, TimePoint now)
      : facts_(facts), policy_(policy), now_(now) {
    decision_.memory = memory;
  }

  Decision Run();

 private:
  Memory& memory() { return decision_.memory; }
  const Memory& memory() const { return decision_.memory; }
  const Report& report() const { return *facts_.report; }
  DeviceRecord& RecordOf(const DeviceId& id) { return decision_.memory.records[id]; }
  const DeviceRecord& Record(const DeviceId& id) const;

  // What is known of the vendor as a whole.
  bool IsSilent() const { return now_ - report().received > policy_.stale_after; }
  bool PodIsActive() const { return facts_.pod && facts_.pod->id != decision_.memory.last_run; }
  bool KernelsRun() const;  // on at least one device, now or as the next thing
  bool PathRuns() const;    // now or as the next thing
  bool PathIsProven() const;
  bool PathIsNeeded() const;  // apart from slots and pauses
  bool AnyInUse() const;
  bool IsInUse(const DeviceId& id) const;
  bool PassedBefore() const;  // any device, ever
  bool Exhausted() const { return memory().inconclusive_runs > policy_.retries; }
  std::vector<DeviceId> Failed() const;

  // What is known of one device.
  bool HasPass(const DeviceId& id) const;  // present boot and fingerprint, expired or not
  bool IsExpired(const DeviceId& id) const;
  bool IsProven(const DeviceId& id) const;  // a pass that counts now, and nothing against it
  bool HasFailed(const DeviceId& id) const { return !Record(id).failed_check.empty(); }
  bool NeedsRun(const DeviceId& id) const;
  bool IsUnderRun(const DeviceId& id) const;
  bool IsClosed(const DeviceId& id) const;  // for what verdicts, findings and runs say

  // Steps.
  void NoteSituation();
  void NoteRevalidate();
  void NoteProfile();
  void NoteExpect();
  void NoteFaults();
  void NoteFault(const Fault& fault);
  void ForgetEvents();
  void ForgetDevices();
  void JudgeRun();
  void JudgeKernels(const admission::Run& run);
  void JudgeWay(const admission::Run& run);
  void TakeCapabilities(const Judgement& judgement);
  void WatchPod();
  void NoteExpiry();
  void WantRun();
  void WantPath();
  bool IsPlanned(const DeviceId& id) const;
  std::string HeldBy(const std::vector<DeviceId>& devices, bool planned) const;
  void EndPod();
  void CountInconclusive(std::string reason);
  void CountPathFailure(std::string reason);
  void TriesAnew();
  void WakeAt(TimePoint time);

  // Words (say.cc).
  void Say(Phase phase, std::string_view reason, std::string message);
  void SayPhase();
  void SayQuarantine();
  void SayAdmitted();
  void SayWhyValidating();
  void SayShut();
  void SayPath();
  std::string Way(std::string_view otherwise) const;
  std::string SilenceText() const;
  std::string FailureText() const;
  // Devices that verdicts and findings leave open, sorted; apart from the path.
  std::vector<DeviceId> Sound() const;
  std::vector<DeviceId> Healthy(const std::vector<DeviceId>& devices) const;
  void Open();
  void Finish();

  const Facts& facts_;
  const Policy& policy_;
  const TimePoint now_;
  Mismatch mismatch_;
  std::map<DeviceId, std::string> cordoned_now_;  // by a present finding
  std::string held_;                              // why slots or a breaker hold a wanted run back
  bool held_by_slot_ = false;
  bool pass_counts_ = false;    // of devices whose planned run is held back
  std::vector<DeviceId> busy_;  // need a run and are held by pods
  Decision decision_;
};

// Evidence comes from programs; what is kept of it is bounded, and cut at a character's end.
std::string Bounded(std::string text, std::size_t limit = 1024);
std::string Names(const std::vector<DeviceId>& devices);

}  // namespace bimetal::core::admission
