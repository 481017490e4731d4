#include "kernels/checks/check.h"

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cmath>
#include <cstdio>

#include "kernels/checks/atomics.h"
#include "kernels/checks/compute_checksum.h"
#include "kernels/checks/gemm.h"
#include "kernels/checks/math.h"
#include "kernels/checks/memory_pattern.h"
#include "kernels/checks/rates.h"

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

namespace {

bool HasPeers(const DeviceInfo&, std::size_t devices) { return devices > 1; }

}  // namespace

std::span<const Check> AllChecks() {
  static const auto kChecks = std::to_array<Check>({
      {"inventory", 0, "the devices that the program sees, and whether they are those asked for",
       &RunInventory},
      {"compute-checksum", 1,
       "integer arithmetic on every compute unit, exact against the host, bit-identical on repeat",
       &RunComputeChecksum},
      {"memory-pattern", 1,
       "address, walking-bit, inverting and random patterns over device memory, compared exactly",
       &RunMemoryPattern},
      {"math", 1,
       "exp2, log2, sin, cos, roots and division on every compute unit, within their bounds",
       &RunMath},
      {"atomics", 1, "add, min, max, exchange and compare-and-swap of all threads, exact",
       &RunAtomics},
      {"gemm-fp64", 1,
       "matrix product of 64-bit floats on every compute unit, exact and within bound",
       &RunGemmOf<0>, nullptr, &GemmApplies<0>},
      {"gemm-fp32", 1,
       "matrix product of 32-bit floats on every compute unit, exact and within bound",
       &RunGemmOf<1>, nullptr, &GemmApplies<1>},
      {"gemm-tf32", 1, "matrix product of tf32 on every compute unit, exact and within bound",
       &RunGemmOf<2>, nullptr, &GemmApplies<2>},
      {"gemm-fp16", 1, "matrix product of fp16 on every compute unit, exact and within bound",
       &RunGemmOf<3>, nullptr, &GemmApplies<3>},
      {"gemm-bf16", 1, "matrix product of bf16 on every compute unit, exact and within bound",
       &RunGemmOf<4>, nullptr, &GemmApplies<4>},
      {"gemm-fp8-ocp", 1,
       "matrix product of OCP fp8 (e4m3fn, e5m2) on every compute unit, exact and within bound",
       &RunGemmOf<5>, nullptr, &GemmApplies<5>},
      {"gemm-fp8-fnuz", 1,
       "matrix product of fp8 of MI300 (e4m3fnuz, e5m2fnuz) on every compute unit, exact and "
       "within bound",
       &RunGemmOf<6>, nullptr, &GemmApplies<6>},
      {"gemm-int8", 1,
       "matrix product of 8-bit integers on every compute unit, exact and within bound",
       &RunGemmOf<7>, nullptr, &GemmApplies<7>},
      {"gemm-rate-fp64", 1, "rate of matrix products of 64-bit floats", &RunGemmRateOf<0>, nullptr,
       &GemmApplies<0>},
      {"gemm-rate-fp32", 1, "rate of matrix products of 32-bit floats", &RunGemmRateOf<1>, nullptr,
       &GemmApplies<1>},
      {"gemm-rate-tf32", 1, "rate of matrix products of tf32", &RunGemmRateOf<2>, nullptr,
       &GemmApplies<2>},
      {"gemm-rate-fp16", 1, "rate of matrix products of fp16", &RunGemmRateOf<3>, nullptr,
       &GemmApplies<3>},
      {"gemm-rate-bf16", 1, "rate of matrix products of bf16", &RunGemmRateOf<4>, nullptr,
       &GemmApplies<4>},
      {"gemm-rate-fp8-ocp", 1, "rate of matrix products of OCP fp8 (e4m3fn, e5m2)",
       &RunGemmRateOf<5>, nullptr, &GemmApplies<5>},
      {"gemm-rate-fp8-fnuz", 1, "rate of matrix products of fp8 of MI300 (e4m3fnuz, e5m2fnuz)",
       &RunGemmRateOf<6>, nullptr, &GemmApplies<6>},
      {"gemm-rate-int8", 1, "rate of matrix products of 8-bit integers", &RunGemmRateOf<7>, nullptr,
       &GemmApplies<7>},
      {"hbm-copy", 1, "rate of device memory, c = a", &RunHbmCopy},
      {"hbm-scale", 1, "rate of device memory, c = 3 a", &RunHbmScale},
      {"hbm-add", 1, "rate of device memory, c = a + b", &RunHbmAdd},
      {"hbm-triad", 1, "rate of device memory, c = a + 3 b", &RunHbmTriad},
      {"hbm-dot", 1, "rate of device memory, sum of a b", &RunHbmDot},
      {"host-to-device", 1, "rate of copies from pinned host memory", &RunHostToDevice},
      {"device-to-host", 1, "rate of copies to pinned host memory", &RunDeviceToHost},
      {"launch-latency", 1, "device time of one launch among dependent ones", &RunLaunchLatency},
      {"stress", 2, "sustained arithmetic with power, clock and temperature; errors counted after",
       &RunStress},
      {"peer-to-peer", 1, "rate of copies between each two devices of the node", nullptr,
       &RunPeerToPeer, &HasPeers},
      {"collective", 2, "all-reduce around a ring of all devices of the node", nullptr,
       &RunCollective, &HasPeers},
  });
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
