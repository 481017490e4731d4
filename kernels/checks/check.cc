#include "kernels/checks/check.h"

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cmath>
#include <cstdio>

#include "kernels/checks/compute_checksum.h"
#include "kernels/checks/memory_pattern.h"

namespace bimetal::kernels {

std::string_view VerdictName(VerdictKind verdict) {
  switch (verdict) {
    case VerdictKind::kPass:
      return "Pass";
    case VerdictKind::kDegraded:
      return "Degraded";
    case VerdictKind::kFail:
      return "Fail";
    case VerdictKind::kInconclusive:
      return "Inconclusive";
    case VerdictKind::kNoProfile:
      return "NoProfile";
  }
  return "Inconclusive";
}

std::span<const Check> AllChecks() {
  static constexpr std::array<Check, 2> kChecks = {{
      {"compute-checksum", 1,
       "integer arithmetic on every compute unit, exact against the host, bit-identical on repeat",
       &RunComputeChecksum},
      {"memory-pattern", 1,
       "address, walking-bit, inverting and random patterns over device memory, compared exactly",
       &RunMemoryPattern},
  }};
  return kChecks;
}

const Check* FindCheck(std::string_view key) {
  for (const Check& check : AllChecks()) {
    if (check.key == key) return &check;
  }
  return nullptr;
}

Distribution Summarize(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  const auto rank = [&](double share) {
    const auto nearest =
        static_cast<std::size_t>(std::ceil(share * static_cast<double>(samples.size())));
    return samples[std::clamp<std::size_t>(nearest, 1, samples.size()) - 1];
  };
  Distribution out;
  out.samples = static_cast<std::uint32_t>(samples.size());
  out.min = samples.front();
  out.p5 = rank(0.05);
  out.median = rank(0.5);
  out.p95 = rank(0.95);
  out.max = samples.back();
  return out;
}

CheckResult FromError(const DeviceError& error) {
  CheckResult result;
  result.verdict = error.code == DeviceErrorCode::kHardwareFault ? VerdictKind::kFail
                                                                 : VerdictKind::kInconclusive;
  result.evidence = error.message;
  return result;
}

std::string Hex(std::uint64_t value) {
  std::array<char, 20> text{};
  std::snprintf(text.data(), text.size(), "0x%" PRIx64, value);
  return text.data();
}

}  // namespace bimetal::kernels
