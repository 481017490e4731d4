#include "core/admission/judge.h"

#include <algorithm>
#include <optional>
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

std::set<DeviceId> Present(const Report& report) {
  std::set<DeviceId> out;
  for (const ReportedDevice& device : report.devices) out.insert(device.id);
  return out;
}

// Why nothing of the run can count; empty where it can.
std::string Objection(const Run& run, const Report& report) {
  if (run.fingerprint.empty()) return "the fingerprint changed during the run";
  if (run.fingerprint != report.fingerprint) return "the run was made under another fingerprint";
  if (report.boot_id.empty()) {
    return "the agent does not know the boot id, so a pass could not be told from an old one";
  }
  return "";
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

// The first verdict of a kind with a count of the others.
class Some {
 public:
  explicit Some(std::string word) : word_(std::move(word)) {}
  void Add(const CheckVerdict& verdict) {
    if (count_++ == 0) first_ = word_ + Describe(verdict);
  }
  std::string Text() const {
    return count_ < 2 ? first_ : first_ + " and " + std::to_string(count_ - 1) + " more";
  }

 private:
  std::string word_, first_;
  int count_ = 0;
};

// What the devices that passed have in common, and what was said of them beside Pass.
void NotePasses(const std::vector<CheckVerdict>& verdicts, Judgement& out) {
  Some degraded("degraded: "), no_profile("no profile: ");
  std::map<DeviceId, std::set<std::string>> proven;
  for (const CheckVerdict& verdict : verdicts) {
    if (!out.passed.contains(verdict.device)) continue;
    if (verdict.verdict == Verdict::kDegraded) degraded.Add(verdict);
    if (verdict.verdict == Verdict::kNoProfile) no_profile.Add(verdict);
    if (verdict.verdict == Verdict::kPass && !verdict.capability.empty()) {
      proven[verdict.device].insert(verdict.capability);
    }
  }
  for (const Some* some : {&degraded, &no_profile}) {
    const std::string text = some->Text();
    if (!text.empty()) out.note += (out.note.empty() ? "" : "; ") + text;
  }
  std::optional<std::set<std::string>> common;
  for (const DeviceId& device : out.passed) {
    std::set<std::string> both;
    for (const std::string& capability : proven[device]) {
      if (!common || common->contains(capability)) both.insert(capability);
    }
    common = std::move(both);
  }
  if (common) out.capabilities = std::move(*common);
}

}  // namespace

Judgement Judge(const Run& run, const Report& report,
                const std::vector<std::string>& required_checks, const std::set<DeviceId>& covered,
                bool degraded_fails) {
  Judgement result;
  result.text = Objection(run, report);
  if (!result.text.empty()) {
    result.lacking = result.text;
    return result;
  }
  const std::set<DeviceId> present = Present(report);
  std::vector<CheckVerdict> verdicts = Sorted(run.verdicts);
  std::string stranger;
  for (CheckVerdict& verdict : verdicts) {
    if (degraded_fails && verdict.verdict == Verdict::kDegraded) verdict.verdict = Verdict::kFail;
    if (!present.contains(verdict.device)) {
      if (stranger.empty()) {
        stranger =
            "a verdict on device " + verdict.device.value + ", which the agent does not report";
      }
    } else if (verdict.verdict == Verdict::kFail) {
      result.failed.insert(verdict.device);
      result.failures.try_emplace(verdict.device, verdict);
    }
  }
  for (const DeviceId& device : present) {
    if (result.failed.contains(device) || (!covered.empty() && !covered.contains(device))) continue;
    const std::string lack = Missing(device, verdicts, required_checks);
    if (lack.empty()) result.passed.insert(device);
    if (!lack.empty() && result.lacking.empty()) result.lacking = lack;
  }
  if (!stranger.empty()) {
    result.lacking = stranger;
    result.passed.clear();
  }
  if (present.empty()) result.lacking = "no devices";
  NotePasses(verdicts, result);
  if (!result.failed.empty()) {
    result.outcome = Judgement::Outcome::kFail;
    result.text = Describe(result.failures.begin()->second);
  } else if (!result.lacking.empty()) {
    result.text = result.lacking;
  } else if (result.passed.empty()) {
    result.text = result.lacking = "no device of the run is there any more";
  } else {
    result.outcome = Judgement::Outcome::kPass;
    result.text = result.note;
  }
  return result;
}

Judgement JudgePath(const Run& run, const Report& report, const std::set<DeviceId>& offered) {
  Judgement result;
  result.text = Objection(run, report);
  const std::set<DeviceId> present = Present(report);
  for (const CheckVerdict& verdict : Sorted(run.verdicts)) {
    if (!result.text.empty()) break;
    const bool bad = verdict.verdict == Verdict::kFail || verdict.verdict == Verdict::kInconclusive;
    const bool known = present.contains(verdict.device);
    if (known && !offered.empty() && !offered.contains(verdict.device)) continue;
    if (!known && bad) continue;
    if (!known) {
      result.text =
          "the pod was given device " + verdict.device.value + ", which the agent does not report";
    } else if (bad) {
      result.text = Describe(verdict);
    } else {
      result.passed.insert(verdict.device);
    }
  }
  if (result.text.empty() && result.passed.empty())
    result.text = "the pod saw no device that it could have been given";
  result.lacking = result.text;
  if (result.text.empty()) {
    result.outcome = Judgement::Outcome::kPass;
  } else {
    result.passed.clear();
  }
  return result;
}

}  // namespace bimetal::core::admission
