#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "kernels/checks/modules.h"
#include "kernels/checks/rate_common.h"
#include "kernels/checks/rates.h"

namespace bimetal::kernels {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kIterations = 65536;        // some milliseconds a launch
constexpr std::uint64_t kModelledIterations = 256;  // a simulated device is not to be heated
constexpr std::uint64_t kModelledLaunches = 3;
constexpr auto kTraceInterval = std::chrono::milliseconds(500);

// The least and the most of what was seen.
struct Band {
  std::optional<double> low;
  std::optional<double> high;
  void Add(const std::optional<double>& value) {
    if (!value) return;
    low = std::min(low.value_or(*value), *value);
    high = std::max(high.value_or(*value), *value);
  }
  std::string Text(const char* name, const char* unit) const {
    if (!low) return std::string(name) + " unknown";
    return std::string(name) + " " + Decimal(*low, 0) + ".." + Decimal(*high, 0) + " " + unit;
  }
};

struct Load {
  std::uint64_t launches = 0;
  std::uint64_t results = 0;
  std::uint64_t wrong = 0;
  std::string first_wrong;
  Band clock, power, temperature;
  double seconds = 0;
};

// What each lane must compute: two sums of two chains.
struct LaneResult {
  double found;
  double sum;
};

std::vector<LaneResult> Reference(std::uint64_t seed, std::uint64_t iterations) {
  std::vector<LaneResult> lanes;
  for (std::uint64_t lane = 0; lane < StressLanes(); ++lane) {
    float chain[4];
    for (std::uint64_t k = 0; k < 4; ++k) chain[k] = StressStart(seed, lane, k);
    for (std::uint64_t i = 0; i < iterations; ++i) {
      for (float& value : chain) value = StressStep(value);
    }
    lanes.push_back({static_cast<double>(chain[0]) + static_cast<double>(chain[1]),
                     static_cast<double>(chain[2]) + static_cast<double>(chain[3])});
  }
  return lanes;
}

void Compare(const std::vector<RateRecord>& records, const std::vector<LaneResult>& lanes,
             std::uint64_t token, Load* load) {
  for (std::uint64_t thread = 0; thread < records.size(); ++thread) {
    const RateRecord& record = records[thread];
    const LaneResult& must = lanes[thread % lanes.size()];
    const bool ran = record.token == Mix(token + thread);
    ++load->results;
    if (ran && record.found == must.found && record.sum == must.sum) continue;
    if (load->wrong++ > 0) continue;
    load->first_wrong = !ran ? "the device reported success, but thread " + std::to_string(thread) +
                                   " left no result"
                             : "launch " + std::to_string(load->launches) + ", thread " +
                                   std::to_string(thread) + ": " + Decimal(record.found, 9) + " " +
                                   Decimal(record.sum, 9) + ", expected " + Decimal(must.found, 9) +
                                   " " + Decimal(must.sum, 9);
  }
}

Outcome<Load> RunLoad(Device& device, const CheckRequest& request) {
  const bool modelled = IsModelled(device, "hbm-triad");
  const LaunchShape shape = FullShape(device.info());
  const std::uint64_t iterations = modelled ? kModelledIterations : kIterations;
  const std::vector<LaneResult> lanes = Reference(request.seed, iterations);
  KERNELS_TRY_ASSIGN(const DeviceBuffer buffer,
                     DeviceBuffer::Make(device, shape.total() * sizeof(RateRecord)));
  std::vector<RateRecord> records(shape.total());
  StressArgs args = {};
  args.seed = request.seed;
  args.iterations = iterations;
  args.records = buffer.address<RateRecord>();
  Load load;
  const auto begin = Clock::now();
  // The other half of what is left belongs to the checks that follow.
  const auto end = std::min(begin + request.stress, begin + (request.deadline - begin) / 2);
  auto next_sample = begin;
  for (;;) {
    args.token = Mix(request.seed ^ Mix(++load.launches));
    KERNELS_TRY(LaunchWith(device, RatesModule(), "bm_stress", shape, args));
    if (Clock::now() >= next_sample) {
      const Telemetry now = device.Sample();
      load.clock.Add(now.clock_mhz);
      load.power.Add(now.power_watts);
      load.temperature.Add(now.temperature_celsius);
      next_sample = Clock::now() + kTraceInterval;
    }
    KERNELS_TRY(device.Synchronize(request.deadline));
    KERNELS_TRY(device.Download(buffer.get(), std::as_writable_bytes(std::span(records))));
    Compare(records, lanes, args.token, &load);
    if (load.wrong > 0) break;
    if (modelled ? load.launches >= kModelledLaunches : Clock::now() >= end) break;
  }
  load.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  return load;
}

std::string CountText(const std::optional<std::uint64_t>& count) {
  return count ? std::to_string(*count) : "unknown";
}

Outcome<CheckResult> Run(Device& device, const CheckRequest& request) {
  // Errors that an earlier check of the run brought up are its load's as well.
  const auto before =
      request.errors_at_start ? request.errors_at_start : device.Sample().uncorrected_errors;
  KERNELS_TRY_ASSIGN(const Load load, RunLoad(device, request));
  const auto after = device.Sample().uncorrected_errors;
  CheckResult result;
  result.value = Decimal(load.seconds);
  result.unit = "s";
  result.verdict = VerdictKind::kPass;
  std::string text;
  if (load.wrong > 0) {
    result.verdict = VerdictKind::kFail;
    text = load.first_wrong + "; " + std::to_string(load.wrong) + " wrong; ";
  } else if (before && after && *after > *before) {
    result.verdict = VerdictKind::kFail;
    text = "the load raised the count of uncorrected memory errors; ";
  }
  text += std::to_string(load.launches) + " launches, " + std::to_string(load.results) +
          " results compared, seed " + std::to_string(request.seed) + "; " +
          load.clock.Text("clock", "MHz") + ", " + load.power.Text("power", "W") + ", " +
          load.temperature.Text("temperature", "C") + "; uncorrected errors " + CountText(before) +
          " -> " + CountText(after);
  result.evidence = text;
  return result;
}

}  // namespace

CheckResult RunStress(Device& device, const CheckRequest& request) {
  return RunBody([&] { return Run(device, request); });
}

CheckResult RunInventory(Device& device, const CheckRequest&) {
  return RunBody([&]() -> Outcome<CheckResult> {
    const DeviceInfo& info = device.info();
    KERNELS_TRY_ASSIGN(const MemoryInfo memory, device.QueryMemory());
    CheckResult result;
    result.value = std::to_string(info.memory_bytes);
    result.unit = "bytes";
    result.verdict = VerdictKind::kPass;
    result.evidence = (info.name.empty() ? "unnamed" : info.name) + ", " +
                      (info.arch.empty() ? "unknown architecture" : info.arch) + ", " +
                      std::to_string(info.compute_units) + " compute units, " +
                      std::to_string(memory.free_bytes) + " of " +
                      std::to_string(memory.total_bytes) + " bytes free" +
                      (info.pci_address.empty() ? "" : ", at " + info.pci_address);
    return result;
  });
}

}  // namespace bimetal::kernels
