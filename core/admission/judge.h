#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/admission/decide.h"

namespace bimetal::core::admission {

// What a run says of the devices that it was made for.
struct Judgement {
  enum class Outcome { kPass, kFail, kInconclusive };
  Outcome outcome = Outcome::kInconclusive;
  std::string text;           // the first failing check, what is missing, or what a pass noted
  std::set<DeviceId> failed;  // with kFail
  std::set<DeviceId> passed;  // devices with all verdicts, none of them Fail or Inconclusive
  std::map<DeviceId, CheckVerdict> failures;  // the first failing verdict of each failed device
  std::string lacking;  // why a device neither passed nor failed; empty where each did
  std::string note;     // Degraded and NoProfile of the devices that passed, for people
  std::set<std::string> capabilities;  // proven on every device that passed
};

// A proven Fail of a device that is there counts even where the rest of the run is incomplete, and
// so does a complete pass of one device beside another's lack. A verdict on a device that is not
// there, another fingerprint, an unknown boot: nothing of the run counts, it is Inconclusive.
// `covered`: the devices that the run was made for; empty: all of the report. `degraded_fails`:
// Degraded counts as Fail.
Judgement Judge(const Run& run, const Report& report,
                const std::vector<std::string>& required_checks,
                const std::set<DeviceId>& covered = {}, bool degraded_fails = false);

// The same for a run that went the way of a job: it sees the devices that it was given, one of
// those that are offered (`offered`; empty: all) is enough, and no verdict on them but Fail or
// Inconclusive stands in the way. A simulated machine shows the others, too; what is said of them
// is not asked.
Judgement JudgePath(const Run& run, const Report& report, const std::set<DeviceId>& offered = {});

}  // namespace bimetal::core::admission
