#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/base/ids.h"
#include "core/base/time.h"
#include "core/model/vendor.h"

// Whether one vendor's devices on one node may be used. A pure state machine: what must survive a
// restart is in `Memory`, which the operator keeps in the GPUNode's status.
namespace bimetal::core::admission {

enum class Phase { kDiscovered, kValidating, kAdmitted, kQuarantined, kInconclusive, kLost };
std::string_view PhaseName(Phase phase);
std::optional<Phase> ParsePhase(std::string_view text);

enum class DeviceHealth { kUnknown, kHealthy, kUnhealthy };

struct ReportedDevice {
  DeviceId id;
  DeviceHealth health = DeviceHealth::kUnknown;
};

// The newest report of the node's agent for this vendor.
struct Report {
  TimePoint received;
  std::string boot_id;
  std::string fingerprint;              // of all that a pass depends on, the device ids included
  std::vector<ReportedDevice> devices;  // sorted by id
};

enum class Verdict { kPass, kDegraded, kFail, kInconclusive, kNoProfile };
std::optional<Verdict> ParseVerdict(std::string_view text);

struct CheckVerdict {
  std::string check;
  DeviceId device;
  Verdict verdict = Verdict::kInconclusive;
  std::string evidence;
};

// A validation run that the agent handed in.
struct Run {
  std::string id;           // uid of the pod
  std::string fingerprint;  // empty: it changed during the run
  std::vector<CheckVerdict> verdicts;
};

// The validation pod that is there now.
struct RunPod {
  std::string id;
  TimePoint created;
  bool ended = false;   // Succeeded or Failed
  std::string trouble;  // e.g. "image cannot be pulled: ..."; empty where none
};

// What survives a restart.
struct Memory {
  std::string validated_fingerprint;
  std::string validated_boot_id;
  std::optional<TimePoint> validated_at;
  std::set<DeviceId> failed_devices;  // quarantined until they pass; kept by device id
  std::string failed_evidence;        // the first failing check, for the message
  int inconclusive_runs = 0;          // in a row
  std::string inconclusive_reason;
  std::optional<TimePoint> next_run;
  std::string revalidated;  // spec.revalidate that was acted on
  std::string last_run;     // id of the last run that was judged or given up
  // What a pass said beside Pass, for the message.
  std::string note;
  // The boot and fingerprint for which next_run and inconclusive_runs hold. Where both are empty
  // (lost), the present ones are taken over and nothing is tried anew; a run under way is given up.
  std::string seen_boot_id, seen_fingerprint;
  // When the validation pod was first seen ended without a result.
  std::optional<TimePoint> pod_ended_at;
  bool operator==(const Memory&) const = default;
};

struct Facts {
  Vendor vendor = Vendor::kNvidia;
  bool node_exists = true;
  bool hold = false;
  std::string revalidate;
  std::optional<Report> report;
  std::optional<Run> run;  // the newest complete run not judged yet
  std::optional<RunPod> pod;
};

struct Policy {
  bool enforce = true;                  // gate: Enforce
  Millis stale_after = Seconds(30);     // silence of the agent
  std::optional<Millis> expires_after;  // of a pass
  Millis run_timeout = Minutes(2);
  int retries = 5;                           // inconclusive runs in a row
  std::vector<std::string> required_checks;  // each must have a verdict for each device; empty: any
};

struct Decision {
  Phase phase = Phase::kDiscovered;
  std::string reason;  // documented CamelCase
  std::string message;
  bool shut = true;               // the taint is on and nothing is offered
  bool start_run = false;         // make a validation pod now
  std::string end_run;            // id of a validation pod to delete; empty: none
  std::vector<DeviceId> open;     // devices jobs may use, sorted; empty where shut
  Memory memory;                  // to be stored
  std::optional<TimePoint> wake;  // when to decide again without an event
};

// The same inputs give the same decision; deciding again with the memory that came out changes
// nothing. Unknown is never healthy; could-not-run is Inconclusive, never a pass or a fail. A
// failed device alone is withheld; the node is Quarantined while any device is failed (first
// version: the whole vendor on that node is shut). A pass counts only for its boot id and
// fingerprint. Silence of the agent: Lost, nothing new starts, running work is left alone. Under
// Observe nothing is shut and healthy devices are open whatever the verdicts say; phase and reason
// are told all the same.
//
// Reasons by phase: Discovered WaitingForReport, NoDevices. Validating NotValidated,
// FingerprintChanged, Rebooted, Expired, Revalidating. Admitted Passed, DeviceUnhealthy,
// HealthUnknown. Quarantined CheckFailed. Inconclusive RunInconclusive, RetriesExhausted. Lost
// AgentSilent, NodeGone. Any phase but Discovered and Lost: Held.
Decision Decide(const Facts& facts, const Memory& memory, const Policy& policy, TimePoint now);

}  // namespace bimetal::core::admission
