#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/admission/decide.h"

namespace bimetal::core::admission {

// What a run says of the devices of a report.
struct Judgement {
  enum class Outcome { kPass, kFail, kInconclusive };
  Outcome outcome = Outcome::kInconclusive;
  std::string text;           // the first failing check, what is missing, or what a pass noted
  std::set<DeviceId> failed;  // with kFail
  std::set<DeviceId> passed;  // devices with all verdicts, none of them Fail or Inconclusive
};

// A proven Fail of a device that is there counts even where the rest of the run is incomplete.
// Whatever else is missing, unknown or contradictory makes the run Inconclusive.
Judgement Judge(const Run& run, const Report& report,
                const std::vector<std::string>& required_checks);

}  // namespace bimetal::core::admission
