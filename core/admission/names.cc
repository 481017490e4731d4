#include <array>
#include <utility>

#include "core/admission/decide.h"

namespace bimetal::core::admission {
namespace {

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

Effect ParseEffect(std::string_view text) {
  if (text == "Cordon") return Effect::kCordon;
  return text == "Revalidate" ? Effect::kRevalidate : Effect::kNone;
}

}  // namespace bimetal::core::admission
