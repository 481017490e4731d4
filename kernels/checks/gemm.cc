#include "kernels/checks/gemm.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kernels/checks/copies.h"
#include "kernels/checks/gemm_data.h"
#include "kernels/checks/gemm_launch.h"

namespace bimetal::kernels {
namespace {

constexpr std::string_view kWidened = "mma widened to fp16";

constexpr std::uint32_t kMaxLaunches = 12;  // a problem; more only while units are missing

// What was seen of one format over all launches.
struct Findings {
  std::map<std::uint64_t, CopyTally::Wrong> wrong;
  std::map<std::uint64_t, std::uint64_t> units;  // results of each, over both kinds of data
  std::size_t covered = ~std::size_t{0};         // units that ran, of the data that had fewest
  std::uint64_t launches = 0;
  std::uint64_t checksum = 0;  // over the results that count
  double worst = 0;            // largest error as a share of its bound
  std::optional<std::uint64_t> silent;
  std::string agreed;  // what all units say alike, and wrongly
};

GemmPlan PlanFor(const DeviceInfo& info) {
  GemmPlan plan;
  const std::uint32_t units = std::max(1u, info.compute_units);
  if (info.simulated) {
    // One tile a simulated unit, and at least two copies of each tile.
    plan.launch = {std::max(units, 32u), 1};
    plan.shape = {64, 64, 2};
    return plan;
  }
  plan.launch = {units * info.blocks_per_unit, info.threads_per_block};
  plan.tiles_per_block = std::max(1u, info.threads_per_block / 32);
  plan.shape = {128, 128, 4};
  return plan;
}

std::uint64_t BitsAt(std::span<const std::byte> results, std::size_t place, std::size_t bytes) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, results.data() + place * bytes, bytes);
  return bits;
}

// The first place of the tile that differs from the exact product.
std::optional<std::size_t> FirstMismatch(const GemmRun& run, std::uint32_t tile,
                                         std::span<const std::byte> results, std::size_t bytes) {
  const GemmFormat format = run.problem().format;
  for (std::size_t place = 0; place < results.size() / bytes; ++place) {
    const std::uint64_t found = BitsAt(results, place, bytes);
    const std::uint64_t expected = ExactBits(run.problem(), run.ElementOf(tile, place));
    if (found == expected) continue;
    // Hardware may give a sum of nothing either sign.
    if (ResultValue(format, expected) == 0 && ResultValue(format, found) == 0) continue;
    return place;
  }
  return std::nullopt;
}

// Whether every result of every unit is wrong in one and the same way: a unit's fault is not.
bool AllAgreeOnWrong(const Findings& findings, const CopyTally& copies,
                     const std::map<std::uint64_t, std::uint64_t>& ran) {
  if (ran.size() < 2 || !copies.WrongUnits().empty()) return false;
  return std::all_of(ran.begin(), ran.end(), [&](const auto& unit) {
    const auto wrong = findings.wrong.find(unit.first);
    return wrong != findings.wrong.end() && wrong->second.count >= unit.second;
  });
}

void CountExact(const GemmRun& run, std::size_t bytes, Findings* findings) {
  for (std::uint64_t slot = 0; slot < run.plan().slots(); ++slot) {
    const std::uint64_t unit = run.Unit(slot);
    const std::uint32_t tile = run.TileOf(slot);
    const auto place = FirstMismatch(run, tile, run.Results(slot), bytes);
    if (!place) continue;
    CopyTally::Wrong& wrong = findings->wrong[unit];
    if (wrong.count++ != 0) continue;
    wrong.work = tile;
    wrong.offset = *place * bytes;
    wrong.expected = ExactBits(run.problem(), run.ElementOf(tile, *place));
    wrong.found = BitsAt(run.Results(slot), *place, bytes);
  }
}

// Compares what most copies say with the reference in double.
void JudgeBound(const GemmRun& run, const CopyTally& copies, std::size_t bytes,
                Findings* findings) {
  const GemmProblem& problem = run.problem();
  for (std::uint32_t tile = 0; tile < run.plan().tiles(); ++tile) {
    const std::vector<std::byte>* results = copies.Majority(tile);
    if (results == nullptr) continue;
    for (std::size_t place = 0; place < results->size() / bytes; ++place) {
      const std::size_t element = run.ElementOf(tile, place);
      const std::uint64_t bits = BitsAt(*results, place, bytes);
      findings->checksum = Mix(findings->checksum ^ bits);
      const double value = ResultValue(problem.format, bits);
      const double share = std::fabs(value - problem.reference[element]) / problem.bound[element];
      if (share <= 1) {
        findings->worst = std::max(findings->worst, share);
      } else if (findings->agreed.empty()) {
        char text[160];
        std::snprintf(text, sizeof(text),
                      "%s tile %u, element %zu is %.9g, reference %.9g, error bound %.3g",
                      FormatInfo(problem.format).name, tile, place, value,
                      problem.reference[element], problem.bound[element]);
        findings->agreed = text;
      }
    }
  }
}

Done RunProblem(Device& device, const CheckRequest& request, GemmFormat format, GemmData data,
                std::uint64_t seed, Findings* findings) {
  const GemmPlan plan = PlanFor(device.info());
  const std::size_t bytes = FormatInfo(format).result_bytes;
  const std::uint32_t units = std::max(1u, device.info().compute_units);
  const std::uint32_t repeats = device.info().simulated ? 2 : 3;
  KERNELS_TRY_ASSIGN(GemmRun run,
                     GemmRun::Make(device, std::string("bm_gemm_") + FormatInfo(format).name,
                                   MakeGemmProblem(format, data, plan.shape, seed), plan));
  CopyTally copies(bytes);
  std::map<std::uint64_t, std::uint64_t> ran;
  for (std::uint32_t launch = 0; launch < kMaxLaunches; ++launch) {
    if (launch >= repeats && ran.size() >= units) break;
    KERNELS_TRY(run.Launch(launch, 1));
    KERNELS_TRY(run.Fetch(request.deadline));
    ++findings->launches;
    findings->silent = run.SilentSlot();
    if (findings->silent) return Success();
    if (data == GemmData::kExact) CountExact(run, bytes, findings);
    for (std::uint64_t slot = 0; slot < plan.slots(); ++slot) {
      ++ran[run.Unit(slot)];
      ++findings->units[run.Unit(slot)];
      copies.Add(run.TileOf(slot), run.Unit(slot), run.Results(slot));
    }
  }
  findings->covered = std::min(findings->covered, ran.size());
  if (data == GemmData::kExact) {
    if (AllAgreeOnWrong(*findings, copies, ran)) {
      findings->agreed =
          std::string(FormatInfo(format).name) + ": " +
          DescribeWrongUnits({*findings->wrong.begin()}, findings->units, "tile", bytes);
      findings->wrong.clear();
    }
    return Success();
  }
  findings->wrong = copies.WrongUnits();
  JudgeBound(run, copies, bytes, findings);
  return Success();
}

// Fills the result where the format is wrong; true if so.
bool Condemn(const Findings& findings, GemmFormat format, CheckResult* result) {
  const GemmFormatInfo& info = FormatInfo(format);
  if (findings.silent) {
    result->evidence = "the device reported success, but tile " + std::to_string(*findings.silent) +
                       " left no result";
  } else if (!findings.wrong.empty()) {
    result->evidence =
        std::string(info.name) + ": " +
        DescribeWrongUnits(findings.wrong, findings.units, "tile", info.result_bytes);
  } else if (!findings.agreed.empty()) {
    result->evidence = findings.agreed;
    if (findings.units.size() > 1) {
      // Hardware faults do not strike all units alike: the program, its compiler or the driver
      // does.
      result->evidence = "all " + std::to_string(findings.units.size()) +
                         " units agree on wrong results, so no unit is blamed: " + result->evidence;
      return true;
    }
  } else {
    return false;
  }
  result->verdict = VerdictKind::kFail;
  return true;
}

Outcome<CheckResult> Run(const GemmPrecision& precision, Device& device,
                         const CheckRequest& request) {
  const std::uint32_t units = std::max(1u, device.info().compute_units);
  CheckResult result;
  result.unit = "computeUnits";
  std::size_t covered = ~std::size_t{0};
  std::uint64_t launches = 0;
  std::uint64_t checksum = 0;
  double worst = 0;
  for (std::size_t i = 0; i < precision.count; ++i) {
    const GemmFormat format = precision.formats[i];
    Findings findings;
    for (std::uint32_t round = 0; round < request.rounds; ++round) {
      for (const GemmData data : {GemmData::kExact, GemmData::kRandom}) {
        if (data == GemmData::kRandom && FormatInfo(format).roundoff == 0) continue;
        // What exact data has condemned it has condemned for sure; a majority might be mistaken.
        if (findings.silent || !findings.wrong.empty() || !findings.agreed.empty()) break;
        KERNELS_TRY(RunProblem(device, request, format, data, request.seed + round, &findings));
      }
    }
    covered = std::min(covered, findings.covered);
    result.value = std::to_string(findings.units.size());
    if (Condemn(findings, format, &result)) return result;
    launches += findings.launches;
    checksum = Mix(checksum ^ findings.checksum);
    worst = std::max(worst, findings.worst);
  }
  result.value = std::to_string(covered);
  result.evidence = std::to_string(covered) + " of " + std::to_string(units) +
                    " compute units ran, by " +
                    std::string(GemmMeans(device.info().arch, precision));
  if (covered < units) return result;
  result.verdict = VerdictKind::kPass;
  // Right results by way of other units say nothing about the precision's own.
  if (GemmMeans(device.info().arch, precision) != kWidened) result.capability = precision.name;
  result.evidence += ", exact data equal bit for bit";
  if (FormatInfo(precision.formats[0]).roundoff > 0) {
    char text[96];
    std::snprintf(text, sizeof(text),
                  ", random data within %.1f %% of the error bound, checksum %s", worst * 100,
                  Hex(checksum).c_str());
    result.evidence += text;
  }
  result.evidence += ", identical in " + std::to_string(launches) + " launches";
  return result;
}

// The number behind "sm_"; 0 where there is none.
int CudaArch(std::string_view arch) {
  if (!arch.starts_with("sm_")) return 0;
  int number = 0;
  std::from_chars(arch.data() + 3, arch.data() + arch.size(), number);
  return number;
}

bool Is(const GemmPrecision& precision, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), precision.name) != names.end();
}

}  // namespace

std::string_view GemmMeans(std::string_view arch, const GemmPrecision& precision) {
  if (arch == "host") return "software";
  if (const int cuda = CudaArch(arch); cuda >= 75) {
    if (Is(precision, {"fp16", "int8"})) return "mma";
    if (Is(precision, {"fp32"})) return "fma";
    if (Is(precision, {"fp64"})) return cuda >= 80 ? "mma" : "fma";
    if (Is(precision, {"tf32", "bf16"})) return cuda >= 80 ? "mma" : "";
    if (Is(precision, {"fp8-ocp"})) {
      if (cuda == 90) return "wgmma";
      // Datacentre Blackwell keeps fp8 to tcgen05 instructions, which these kernels do not use.
      if (cuda >= 100 && cuda < 120) return kWidened;
      return cuda >= 89 ? "mma" : "";
    }
    return "";
  }
  const std::string_view target = arch.substr(0, arch.find(':'));
  if (target == "gfx90a" || target == "gfx942" || target == "gfx950") {
    if (Is(precision, {"tf32", "fp8-fnuz"})) return target == "gfx942" ? "mfma" : "";
    if (Is(precision, {"fp8-ocp"})) return target == "gfx950" ? "mfma" : "";
    return "mfma";
  }
  if (target.starts_with("gfx11") && Is(precision, {"fp16", "bf16", "int8"})) return "wmma";
  return Is(precision, {"fp64", "fp32"}) ? "fma" : "";
}

bool GemmHasPrecision(std::string_view arch, const GemmPrecision& precision) {
  return !GemmMeans(arch, precision).empty();
}

CheckResult RunGemm(const GemmPrecision& precision, Device& device, const CheckRequest& request) {
  return RunBody([&] { return Run(precision, device, request); });
}

}  // namespace bimetal::kernels
