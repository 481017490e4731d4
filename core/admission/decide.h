#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/base/ids.h"
#include "core/base/time.h"
#include "core/model/vendor.h"

// Whether one vendor's devices on one node may be used, device by device. A pure state machine:
// what must survive a restart is in `Memory`, which the operator keeps in the GPUNode's status.
namespace bimetal::core::admission {

enum class Phase { kDiscovered, kValidating, kAdmitted, kQuarantined, kInconclusive, kLost };
std::string_view PhaseName(Phase phase);
std::optional<Phase> ParsePhase(std::string_view text);

enum class DeviceHealth { kUnknown, kHealthy, kUnhealthy };

struct ReportedDevice {
  DeviceId id;
  DeviceHealth health = DeviceHealth::kUnknown;
  std::optional<bool> in_use = {};  // a pod holds it; nullopt: not known
  // What a profile may expect of it.
  std::string partition = {};
  std::map<std::string, std::string> firmware = {};
  std::int64_t links_up = 0;
  std::map<std::string, std::string> unread = {};  // field -> why it could not be read
};

enum class Effect { kNone, kRevalidate, kCordon };
// "Revalidate", "Cordon"; anything else is kNone.
Effect ParseEffect(std::string_view text);

// A finding of the agent that asks for something.
struct Fault {
  std::string code;
  DeviceId device;  // empty: all of the vendor's devices
  Effect effect = Effect::kNone;
  std::string event;     // empty: a present state; else a key that is unique within the boot
  std::string evidence;  // with the remedy, for people
};

// The newest report of the node's agent for this vendor.
struct Report {
  TimePoint received;
  std::string boot_id;
  std::string fingerprint;  // of all that a pass depends on apart from the devices' identities
  std::vector<ReportedDevice> devices;  // sorted by id
  std::vector<Fault> faults = {};
  std::string driver_version = {};
};

enum class Verdict { kPass, kDegraded, kFail, kInconclusive, kNoProfile };
std::optional<Verdict> ParseVerdict(std::string_view text);

struct CheckVerdict {
  std::string check;
  DeviceId device;
  Verdict verdict = Verdict::kInconclusive;
  std::string evidence;
  std::string capability = {};  // what a Pass proves; empty: nothing to publish
};

// A validation run that the agent handed in.
struct Run {
  std::string id;           // uid of the pod
  std::string fingerprint;  // empty: it changed during the run
  std::vector<CheckVerdict> verdicts;
  std::string level = {};
};

// kKernels: opens devices directly, by id. kPath: goes the way of a job (plug-in, runtime, cgroup).
enum class RunKind { kKernels, kPath };

// The validation pod that is there now.
struct RunPod {
  std::string id;
  TimePoint created;
  bool ended = false;   // Succeeded or Failed
  std::string trouble;  // e.g. "image cannot be pulled: ..."; empty where none
  RunKind kind = RunKind::kKernels;
  std::set<DeviceId> devices = {};  // that it was made for; empty: all
};

// What is remembered of one device, also of one that is away.
struct DeviceRecord {
  std::string fingerprint, boot_id;    // under which it last passed
  std::optional<TimePoint> passed_at;  // whole seconds
  std::string failed_check;            // it stays failed until it passes
  std::string failed_evidence;
  std::string cordoned;  // the finding for which it takes no new work until it passes
  // Why it must be run again though its pass still counts: a Reason such as "Revalidating", with
  // its text after ": " where there is one. For a failed device: it may be run again.
  std::string due;
  bool operator==(const DeviceRecord&) const = default;
};

// Whether a pod gets devices on the way of a job.
struct PathRecord {
  std::string fingerprint, boot_id;  // under which it was last proven
  int failures = 0;                  // in a row
  std::string reason;
  std::optional<TimePoint> next;
  bool operator==(const PathRecord&) const = default;
};

// What survives a restart.
struct Memory {
  std::map<DeviceId, DeviceRecord> records;
  PathRecord path;
  int inconclusive_runs = 0;  // in a row
  std::string inconclusive_reason;
  std::optional<TimePoint> next_run;     // the pause after an Inconclusive run
  std::string revalidated;               // the word (spec.revalidate) that was acted on
  std::string last_run;                  // id of the last run that was judged or given up
  std::string level;                     // of the last pass
  std::set<std::string> capabilities;    // that every open device has passed
  std::set<std::string> handled_events;  // of this boot
  std::string note;                      // what a pass said beside Pass, for the message
  // The boot and fingerprint for which next_run and inconclusive_runs hold. Where both are empty
  // (lost), the present ones are taken over and nothing is tried anew; a run under way is given up.
  std::string seen_boot_id, seen_fingerprint;
  // When the validation pod was first seen ended without a result. Not kept over a restart.
  std::optional<TimePoint> pod_ended_at;
  bool operator==(const Memory&) const = default;
};

struct Facts {
  Vendor vendor = Vendor::kNvidia;
  bool node_exists = true;
  bool hold = false;
  std::string revalidate;  // the word of spec.revalidate and of the annotation
  std::optional<Report> report;
  std::optional<Run> run;  // the newest complete run not judged yet
  std::optional<RunPod> pod;
  // Whether the pool's breakers let a run start (breakers.h). Empty: yes; else why not.
  std::string no_slot = {};          // no run at all: as many as may are under way
  std::string breaker = {};          // no run of a node that passed before and is shut now
  std::string breaker_planned = {};  // no run of devices that are open now
};

// What a profile demands of the node; a mismatch is a failure of check "inventory".
struct Expect {
  std::optional<std::int64_t> devices;
  std::string driver_version;                   // empty: any
  std::map<std::string, std::string> firmware;  // by part, in full
  std::string partition;                        // empty: any
  std::optional<std::int64_t> links;            // direct links up, of each device
};

struct Policy {
  bool enforce = true;                  // gate: Enforce
  Millis stale_after = Seconds(30);     // silence of the agent
  std::optional<Millis> expires_after;  // of a pass
  Millis run_timeout = Minutes(2);
  int retries = 5;                           // inconclusive runs in a row
  std::vector<std::string> required_checks;  // each must have a verdict for each device; empty: any
  std::string level = {};                    // of the profile; a higher one asks for a new pass
  // Our plug-in serves, so single devices can be withheld; else the vendor's devices of the node
  // are open together or not at all.
  bool by_device = false;
  bool quarantine_node = false;      // one failed device shuts all of the vendor's
  bool quarantine_degraded = false;  // Degraded counts as Fail
  bool path_check = false;
  Expect expect = {};
};

struct Decision {
  Phase phase = Phase::kDiscovered;
  std::string reason;  // documented CamelCase
  std::string message;
  bool shut = true;        // the taint is on and jobs get nothing
  bool start_run = false;  // make a validation pod now
  RunKind run_kind = RunKind::kKernels;
  std::vector<DeviceId> run_devices;  // of the run to be started, sorted
  std::string end_run;                // id of a validation pod to delete; empty: none
  std::vector<DeviceId> open;         // devices jobs may use, sorted; empty where shut
  // Devices that our plug-in offers: `open`, and while the path is proven all that the run may get.
  std::vector<DeviceId> offer;
  std::set<std::string> capabilities;  // to publish: of every open device; empty where shut
  std::string judged;                  // of the run that was judged now: pass, fail, inconclusive
  // A run is wanted, and slots (kQueued) or a breaker (kHeld) forbid it.
  enum class Waits { kNo, kQueued, kHeld } waits = Waits::kNo;
  Memory memory;                  // to be stored
  std::optional<TimePoint> wake;  // when to decide again without an event
};

// The same inputs give the same decision; deciding again with the memory that came out changes
// nothing. Unknown is never healthy; could-not-run is Inconclusive, never a pass or a fail.
//
// A device is open only if it has passed under the present fingerprint in this boot, has not failed
// since, is not cordoned by a finding, is healthy, is not under a run, and the path is proven. A
// failed device stays failed, by its id, until it passes; it is run again after a reboot, a change
// of the fingerprint, or when somebody asks. Devices that pods hold are never run: they wait for
// their jobs, closed to new ones. A planned new run (expiry, a higher level) leaves the old pass in
// force while slots or a breaker hold it back. Silence of the agent: Lost, nothing new starts,
// running work is left alone. Under Observe nothing is shut and healthy devices are open whatever
// the verdicts say; phase and reason are told all the same.
//
// Reasons by phase: Discovered WaitingForReport, NoDevices. Validating NotValidated,
// FingerprintChanged, Rebooted, Expired, Revalidating, FaultSeen, ProfileChanged, DevicesBusy,
// RunQueued, BreakerOpen, ProvingPath. Admitted Passed, PartlyOpen, DeviceCordoned,
// DeviceUnhealthy, HealthUnknown. Quarantined CheckFailed, DeviceQuarantined. Inconclusive
// RunInconclusive, RetriesExhausted, PathFailed, InventoryUnknown. Lost AgentSilent, NodeGone. Any
// phase but Discovered and Lost: Held.
Decision Decide(const Facts& facts, const Memory& memory, const Policy& policy, TimePoint now);

}  // namespace bimetal::core::admission
