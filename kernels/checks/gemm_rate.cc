#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/checks/copies.h"
#include "kernels/checks/gemm.h"
#include "kernels/checks/gemm_data.h"
#include "kernels/checks/gemm_launch.h"

namespace bimetal::kernels {
namespace {

constexpr std::size_t kSamples = 20;
constexpr double kSampleNs = 4e6;      // of one launch on a device
constexpr double kHostSampleNs = 1e6;  // and on the host's processor
constexpr std::uint32_t kMaxPasses = 1u << 16;
constexpr std::uint32_t kTile = 4 * kGemmFragment;

GemmPlan PlanFor(const DeviceInfo& info, bool modelled) {
  GemmPlan plan;
  plan.tile = kTile;
  const std::uint32_t units = std::max(1u, info.compute_units);
  if (info.simulated) {
    plan.launch = {modelled ? 2 : units * 2, 1};
    plan.shape = {kTile, kTile, 2};
    return plan;
  }
  // 4 x 2 tiles: a block's eight waves share its operands in the first cache, and each four of them
  // one tile's columns (a warp group of Hopper multiplies by the same columns).
  plan.launch = {units * 2, info.threads_per_block};
  plan.tiles_per_block = std::max(1u, info.threads_per_block / 32);
  plan.shape = {4 * kTile, 2 * kTile, 4};
  return plan;
}

// Empty, or what is wrong with the results of the launch that was fetched: copies must be identical
// and in bound.
std::string Verify(const GemmRun& run, std::uint32_t passes) {
  const GemmProblem& problem = run.problem();
  const GemmFormatInfo& info = FormatInfo(problem.format);
  if (const auto silent = run.SilentSlot()) {
    return "the device reported success, but tile " + std::to_string(*silent) + " left no result";
  }
  CopyTally copies(info.result_bytes);
  for (std::uint64_t slot = 0; slot < run.plan().slots(); ++slot) {
    copies.Add(run.TileOf(slot), run.Unit(slot), run.Results(slot));
  }
  const auto wrong = copies.WrongUnits();
  if (!wrong.empty()) return DescribeWrongUnits(wrong, copies.units(), "tile", info.result_bytes);
  for (std::uint32_t tile = 0; tile < run.plan().tiles(); ++tile) {
    const std::vector<std::byte>* results = copies.Majority(tile);
    if (results == nullptr) continue;
    for (std::size_t place = 0; place < results->size() / info.result_bytes; place += 13) {
      std::uint64_t bits = 0;
      std::memcpy(&bits, results->data() + place * info.result_bytes, info.result_bytes);
      const std::size_t element = run.ElementOf(tile, place);
      const double reference = passes * problem.reference[element];
      const double bound =
          GemmErrorBound(problem, static_cast<std::uint32_t>(element / problem.shape.columns),
                         static_cast<std::uint32_t>(element % problem.shape.columns), passes);
      const double found = ResultValue(problem.format, bits);
      if (std::fabs(found - reference) <= bound) continue;
      return "tile " + std::to_string(tile) + ", element " + std::to_string(place) + " is " +
             std::to_string(found) + ", reference " + std::to_string(reference);
    }
  }
  return "";
}

double Operations(const GemmRun& run, std::uint32_t passes) {
  return 2.0 * kTile * kTile * run.problem().depth * passes *
         static_cast<double>(run.plan().slots());
}

struct Measured {
  std::vector<double> tera;  // operations a second
  std::string wrong;
};

Outcome<double> TimeOnce(Device& device, GemmRun& run, std::uint32_t passes, Deadline deadline) {
  KERNELS_TRY(device.StartTimer());
  KERNELS_TRY(run.Launch(0, passes));
  return device.StopTimer(deadline);
}

Outcome<Measured> Measure(Device& device, GemmRun& run, Deadline deadline) {
  Measured measured;
  // A first launch that is verified; its time, and that of a second, says how many passes fit.
  KERNELS_TRY(run.Launch(0, 2));
  KERNELS_TRY(run.Fetch(deadline));
  measured.wrong = Verify(run, 2);
  if (!measured.wrong.empty()) return measured;
  KERNELS_TRY_ASSIGN(const double once, TimeOnce(device, run, 2, deadline));
  const double wanted = device.info().simulated ? kHostSampleNs : kSampleNs;
  const auto passes = static_cast<std::uint32_t>(
      std::clamp(2 * wanted / std::max(once, 1.0), 1.0, static_cast<double>(kMaxPasses)));
  for (std::size_t i = 0; i < kSamples; ++i) {
    KERNELS_TRY_ASSIGN(const double ns, TimeOnce(device, run, passes, deadline));
    measured.tera.push_back(Operations(run, passes) / std::max(ns, 1.0) / 1e3);
  }
  KERNELS_TRY(run.Fetch(deadline));
  CopyTally copies(FormatInfo(run.problem().format).result_bytes);
  for (std::uint64_t slot = 0; slot < run.plan().slots(); ++slot) {
    copies.Add(run.TileOf(slot), run.Unit(slot), run.Results(slot));
  }
  if (const auto wrong = copies.WrongUnits(); !wrong.empty()) {
    measured.wrong = DescribeWrongUnits(wrong, copies.units(), "tile",
                                        FormatInfo(run.problem().format).result_bytes);
  }
  return measured;
}

CheckResult Report(const GemmPrecision& precision, Device& device, std::vector<double> rates,
                   bool modelled, const CheckRequest& request) {
  CheckResult result;
  result.verdict = VerdictKind::kNoProfile;
  result.unit = precision.formats[0] == kGemmInt8 ? "TOPS" : "TFLOPS";
  Distribution distribution = Summarize(std::move(rates));
  const Telemetry now = device.Sample();
  distribution.clock_mhz = now.clock_mhz.value_or(0);
  distribution.power_watts = now.power_watts.value_or(0);
  char text[32];
  const char* digits = distribution.p5 < 0.1 ? "%.8f" : distribution.p5 < 10 ? "%.4f" : "%.1f";
  std::snprintf(text, sizeof(text), digits, distribution.p5);
  result.value = text;
  result.evidence = std::to_string(distribution.samples) + " launches, random data of seed " +
                    std::to_string(request.seed) + ", by " +
                    std::string(GemmMeans(device.info().arch, precision)) +
                    (modelled ? ", rate claimed by the machine's description" : "");
  result.distribution = distribution;
  return result;
}

Outcome<CheckResult> Run(const GemmPrecision& precision, Device& device,
                         const CheckRequest& request) {
  // Of fp8, the first format: the other runs through the same units at the same rate.
  const GemmFormat format = precision.formats[0];
  const auto claimed =
      device.ModelledRates(std::string("gemm-rate-") + precision.name, request.seed, kSamples);
  const GemmPlan plan = PlanFor(device.info(), claimed.has_value());
  KERNELS_TRY_ASSIGN(
      GemmRun run,
      GemmRun::Make(device, std::string("bm_gemm_rate_") + FormatInfo(format).name,
                    MakeGemmProblem(format, GemmData::kRandom, plan.shape, request.seed), plan));
  Measured measured;
  if (claimed) {
    KERNELS_TRY(run.Launch(0, 1));
    KERNELS_TRY(run.Fetch(request.deadline));
    measured.wrong = Verify(run, 1);
    measured.tera = *claimed;
  } else {
    KERNELS_TRY_ASSIGN(measured, Measure(device, run, request.deadline));
  }
  if (!measured.wrong.empty()) {
    CheckResult result;
    result.verdict = VerdictKind::kFail;
    result.evidence = std::string(FormatInfo(format).name) + ": " + measured.wrong;
    return result;
  }
  return Report(precision, device, std::move(measured.tera), claimed.has_value(), request);
}

}  // namespace

CheckResult RunGemmRate(const GemmPrecision& precision, Device& device,
                        const CheckRequest& request) {
  return RunBody([&] { return Run(precision, device, request); });
}

}  // namespace bimetal::kernels
