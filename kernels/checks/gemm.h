#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "kernels/checks/check.h"
#include "kernels/checks/gemm_args.h"

namespace bimetal::kernels {

// A precision as workloads name it; fp8 is two formats of one kind of hardware.
struct GemmPrecision {
  const char* name;  // the capability that a pass proves: "fp8-ocp"
  std::array<GemmFormat, 2> formats;
  std::size_t count;  // of `formats`
};

inline constexpr std::array<GemmPrecision, 8> kGemmPrecisions = {{
    {"fp64", {kGemmFp64}, 1},
    {"fp32", {kGemmFp32}, 1},
    {"tf32", {kGemmTf32}, 1},
    {"fp16", {kGemmFp16}, 1},
    {"bf16", {kGemmBf16}, 1},
    {"fp8-ocp", {kGemmE4m3fn, kGemmE5m2}, 2},
    {"fp8-fnuz", {kGemmE4m3fnuz, kGemmE5m2fnuz}, 2},
    {"int8", {kGemmInt8}, 1},
}};

// Whether devices of this architecture have the precision, in matrix units or else in the vector
// units: "sm_90", "gfx942"; "host" has all. Of an architecture that is not known: fp32 and fp64.
bool GemmHasPrecision(std::string_view arch, const GemmPrecision& precision);
// How `arch` computes it: "mma", "wgmma", "mfma", "wmma", "fma", "software"; "mma widened to fp16"
// where the precision has units that these kernels do not reach; empty: not at all.
std::string_view GemmMeans(std::string_view arch, const GemmPrecision& precision);

// Multiplies matrices on every compute unit. Exact data: every result equals the host's bit for bit
// (a zero of either sign is zero). Random data: all copies of a tile, whichever unit computed them
// and however often, are bit-identical, and within GemmErrorBound of a reference in double. Value:
// compute units that ran. A pass carries the capability `precision.name`, unless the precision's
// own units did not compute it. Where two and more units agree on wrong results throughout, the
// program or the driver is suspected, not a unit: Inconclusive.
CheckResult RunGemm(const GemmPrecision& precision, Device& device, const CheckRequest& request);

// Times the same multiplication, 64 x 64 a wave in registers, operands in the caches. NoProfile
// with the p5 rate in TFLOPS (TOPS for int8) and its distribution; Fail where results are wrong.
// Not a tuned library: expect half to two thirds of the data sheet's peak on tensor cores.
CheckResult RunGemmRate(const GemmPrecision& precision, Device& device,
                        const CheckRequest& request);

// For the registry: the functions of precision number `index`.
template <std::size_t index>
CheckResult RunGemmOf(Device& device, const CheckRequest& request) {
  return RunGemm(kGemmPrecisions[index], device, request);
}
template <std::size_t index>
CheckResult RunGemmRateOf(Device& device, const CheckRequest& request) {
  return RunGemmRate(kGemmPrecisions[index], device, request);
}
template <std::size_t index>
bool GemmApplies(const DeviceInfo& info, std::size_t) {
  return GemmHasPrecision(info.arch, kGemmPrecisions[index]);
}

}  // namespace bimetal::kernels
