#pragma once

#include <array>
#include <optional>
#include <string_view>

// What native kernels measured on a device, and what that is worth: floors, the fleet's medians,
// and the verdict that follows.
namespace bimetal::core::validation {

enum class Verdict {
  kPass,
  kDegraded,      // works, but slower than its like in the fleet
  kFail,          // proven wrong, or slower than a binding floor
  kInconclusive,  // could not be run or not be judged; says nothing about the device
  kNoProfile,     // ran, but no binding floor is known for this model
};

inline constexpr std::array<Verdict, 5> kVerdicts = {Verdict::kPass, Verdict::kDegraded,
                                                     Verdict::kFail, Verdict::kInconclusive,
                                                     Verdict::kNoProfile};

// "Pass", "Degraded", "Fail", "Inconclusive", "NoProfile": the protocol's words.
std::string_view VerdictName(Verdict verdict);
std::optional<Verdict> ParseVerdict(std::string_view text);

}  // namespace bimetal::core::validation
