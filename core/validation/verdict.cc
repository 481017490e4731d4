#include "core/validation/verdict.h"

namespace bimetal::core::validation {

std::string_view VerdictName(Verdict verdict) {
  switch (verdict) {
    case Verdict::kPass:
      return "Pass";
    case Verdict::kDegraded:
      return "Degraded";
    case Verdict::kFail:
      return "Fail";
    case Verdict::kInconclusive:
      return "Inconclusive";
    case Verdict::kNoProfile:
      return "NoProfile";
  }
  return "Inconclusive";
}

std::optional<Verdict> ParseVerdict(std::string_view text) {
  for (const Verdict verdict : kVerdicts) {
    if (VerdictName(verdict) == text) return verdict;
  }
  return std::nullopt;
}

}  // namespace bimetal::core::validation
