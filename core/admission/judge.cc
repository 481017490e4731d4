#include "core/admission/judge.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace bimetal::core::admission {
namespace {

std::string Describe(const CheckVerdict& verdict) {
  return verdict.check + " on " + verdict.device.value +
         (verdict.evidence.empty() ? "" : ": " + verdict.evidence);
}

// By device, then check: the text must not depend on the order in which checks ran.
std::vector<CheckVerdict> Sorted(std::vector<CheckVerdict> verdicts) {
  std::stable_sort(verdicts.begin(), verdicts.end(),
                   [](const CheckVerdict& a, const CheckVerdict& b) {
                     return std::tie(a.device, a.check, a.verdict, a.evidence) <
                            std::tie(b.device, b.check, b.verdict, b.evidence);
                   });
  return verdicts;
}

// Why the verdicts on `device` are not complete; empty where they are.
std::string Missing(const DeviceId& device, const std::vector<CheckVerdict>& verdicts,
                    const std::vector<std::string>& required_checks) {
  std::set<std::string> checks;
  for (const CheckVerdict& verdict : verdicts) {
    if (verdict.device != device) continue;
    if (verdict.verdict == Verdict::kInconclusive) return Describe(verdict);
    checks.insert(verdict.check);
  }
  if (checks.empty()) return "no verdict on device " + device.value;
  for (const std::string& check : required_checks) {
    if (!checks.contains(check)) return "no verdict of " + check + " on device " + device.value;
  }
  return "";
}

}  // namespace

Judgement Judge(const Run& run, const Report& report,
                const std::vector<std::string>& required_checks) {
  Judgement result;
  if (run.fingerprint.empty()) {
    result.text = "the fingerprint changed during the run";
    return result;
  }
  if (run.fingerprint != report.fingerprint) {
    result.text = "the run was made under another fingerprint";
    return result;
  }
  if (report.boot_id.empty()) {
    result.text =
        "the agent does not know the boot id, so a pass could not be told from an old one";
    return result;
  }
  std::set<DeviceId> present;
  for (const ReportedDevice& device : report.devices) present.insert(device.id);

  const std::vector<CheckVerdict> verdicts = Sorted(run.verdicts);
  std::string failure, unknown, missing;
  for (const CheckVerdict& verdict : verdicts) {
    if (!present.contains(verdict.device)) {
      if (unknown.empty()) {
        unknown =
            "a verdict on device " + verdict.device.value + ", which the agent does not report";
      }
    } else if (verdict.verdict == Verdict::kFail) {
      result.failed.insert(verdict.device);
      if (failure.empty()) failure = Describe(verdict);
    } else if (verdict.verdict == Verdict::kDegraded || verdict.verdict == Verdict::kNoProfile) {
      result.text +=
          (result.text.empty() ? "" : "; ") +
          std::string(verdict.verdict == Verdict::kDegraded ? "degraded: " : "no profile: ") +
          Describe(verdict);
    }
  }
  for (const DeviceId& device : present) {
    const std::string lack = Missing(device, verdicts, required_checks);
    if (!lack.empty() && !result.failed.contains(device) && missing.empty()) missing = lack;
    if (lack.empty() && !result.failed.contains(device)) result.passed.insert(device);
  }
  if (!result.failed.empty()) {
    result.outcome = Judgement::Outcome::kFail;
    result.text = failure;
  } else if (!unknown.empty() || !missing.empty() || present.empty()) {
    result.text = !unknown.empty() ? unknown : !missing.empty() ? missing : "no devices";
    result.passed.clear();
  } else {
    result.outcome = Judgement::Outcome::kPass;
  }
  return result;
}

}  // namespace bimetal::core::admission
