#include "kernels/checks/rate_common.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <span>

#include "kernels/checks/modules.h"

namespace bimetal::kernels {
namespace {

constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kModelledBytes = 64ull << 10;
constexpr std::uint64_t kLeastBytes = 16ull << 10;
constexpr std::uint64_t kSharePercent = 80;

}  // namespace

LaunchShape FullShape(const DeviceInfo& info) {
  return {std::max(1u, info.compute_units * info.blocks_per_unit), info.threads_per_block};
}

bool IsModelled(const Device& device, std::string_view check) {
  return device.ModelledRates(check, 1, 1).has_value();
}

Outcome<std::uint64_t> RateBytes(Device& device, const CheckRequest& request, std::uint64_t most,
                                 std::uint64_t buffers) {
  KERNELS_TRY_ASSIGN(const MemoryInfo memory, device.QueryMemory());
  std::uint64_t bytes = std::min(most, memory.free_bytes / 100 * kSharePercent / buffers);
  if (request.memory_bytes != 0) bytes = std::min(bytes, request.memory_bytes / buffers);
  if (IsModelled(device, "hbm-triad")) bytes = std::min(bytes, kModelledBytes);
  bytes = bytes / kPage * kPage;
  if (bytes >= kLeastBytes) return bytes;
  return DeviceError{DeviceErrorCode::kOutOfMemory, "device " + device.info().id + ": " +
                                                        std::to_string(memory.free_bytes) +
                                                        " bytes free are too few to measure with"};
}

Outcome<std::vector<double>> TimeEach(Device& device, Deadline deadline,
                                      const std::function<Done()>& queue) {
  std::vector<double> nanoseconds;
  for (std::size_t i = 0; i < kRateWarmUp + kRateSamples; ++i) {
    KERNELS_TRY(device.StartTimer());
    KERNELS_TRY(queue());
    KERNELS_TRY_ASSIGN(const double elapsed, device.StopTimer(deadline));
    // Below the timer's resolution there is no rate.
    if (i >= kRateWarmUp) nanoseconds.push_back(std::max(elapsed, 1.0));
  }
  return nanoseconds;
}

Outcome<RateTally> ReadRecords(Device& device, const DeviceBuffer& records, LaunchShape shape,
                               std::uint64_t token) {
  std::vector<RateRecord> host(shape.total());
  KERNELS_TRY(device.Download(records.get(), std::as_writable_bytes(std::span(host))));
  RateTally tally;
  for (std::uint64_t thread = 0; thread < host.size(); ++thread) {
    const RateRecord& record = host[thread];
    if (record.token != Mix(token + thread)) {
      tally.silent_thread = thread;
      return tally;
    }
    tally.sum += record.sum;
    if (record.mismatches == 0) continue;
    tally.mismatches += record.mismatches;
    if (!tally.first || record.first < tally.first->first) tally.first = record;
  }
  return tally;
}

Done FillRate(Device& device, const CheckRequest& request, std::uint64_t seed, RatePair* a,
              RatePair* b, RatePair* c, std::uint64_t bytes) {
  RateArgs args = {};
  args.a = a;
  args.b = b;
  args.c = c;
  args.pairs = bytes / sizeof(RatePair);
  args.seed = seed;
  KERNELS_TRY(LaunchWith(device, RatesModule(), "bm_rate_fill", FullShape(device.info()), args));
  return device.Synchronize(request.deadline);
}

Outcome<RateTally> VerifyRate(Device& device, const CheckRequest& request, std::uint64_t seed,
                              RateKind kind, RatePair* c, std::uint64_t bytes) {
  const LaunchShape shape = FullShape(device.info());
  KERNELS_TRY_ASSIGN(const DeviceBuffer records,
                     DeviceBuffer::Make(device, shape.total() * sizeof(RateRecord)));
  RateArgs args = {};
  args.c = c;
  args.pairs = bytes / sizeof(RatePair);
  args.seed = seed;
  args.token = Mix(seed ^ 0x76657269667931ull);
  args.records = records.address<RateRecord>();
  args.kind = kind;
  KERNELS_TRY(LaunchWith(device, RatesModule(), "bm_rate_verify", shape, args));
  KERNELS_TRY(device.Synchronize(request.deadline));
  return ReadRecords(device, records, shape, args.token);
}

std::string Decimal(double value, int digits) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.*f", digits, value);
  std::string out = text.data();
  if (out.find('.') != std::string::npos) {
    out.erase(out.find_last_not_of('0') + 1);
    if (out.back() == '.') out.pop_back();
  }
  return out;
}

std::string TelemetryText(const Telemetry& telemetry) {
  std::string out;
  const auto add = [&](const std::optional<double>& value, const char* unit) {
    if (value) out += (out.empty() ? "" : ", ") + Decimal(*value, 0) + unit;
  };
  add(telemetry.clock_mhz, " MHz");
  add(telemetry.power_watts, " W");
  add(telemetry.temperature_celsius, " C");
  return out.empty() ? "clock and power unknown" : out;
}

std::string WrongText(const RateTally& tally) {
  if (tally.silent_thread) {
    return "the device reported success, but thread " + std::to_string(*tally.silent_thread) +
           " left no result";
  }
  if (tally.mismatches == 0) return "";
  std::array<char, 128> text{};
  std::snprintf(text.data(), text.size(), " is %.17g, expected %.17g", tally.first->found,
                tally.first->expected);
  return "wrong data: value " + std::to_string(tally.first->first) + text.data() + "; " +
         std::to_string(tally.mismatches) + " mismatches";
}

std::vector<bool> Blame(const std::vector<bool>& suspects,
                        std::vector<std::pair<std::size_t, std::size_t>> bad) {
  const std::size_t count = suspects.size();
  std::vector<bool> blamed(count, false);
  const auto drop = [&] {
    std::erase_if(bad, [&](const auto& pair) { return blamed[pair.first] || blamed[pair.second]; });
  };
  for (const auto& [one, other] : bad) {
    if (suspects[one]) blamed[one] = true;
    if (suspects[other]) blamed[other] = true;
  }
  drop();
  while (!bad.empty()) {
    std::vector<std::size_t> times(count, 0);
    for (const auto& [one, other] : bad) ++times[one], ++times[other];
    const std::size_t most = *std::max_element(times.begin(), times.end());
    for (std::size_t i = 0; i < count; ++i) blamed[i] = blamed[i] || times[i] == most;
    drop();
  }
  return blamed;
}

CheckResult RateResultOf(const RateTally& tally, std::vector<double> samples, const char* unit,
                         const std::string& what, const Telemetry& beside) {
  CheckResult result;
  result.unit = unit;
  if (const std::string wrong = WrongText(tally); !wrong.empty()) {
    result.verdict = VerdictKind::kFail;
    result.evidence = wrong + "; " + what;
    return result;
  }
  Distribution spread = Summarize(std::move(samples));
  spread.clock_mhz = beside.clock_mhz.value_or(0);
  spread.power_watts = beside.power_watts.value_or(0);
  const bool latency = std::string_view(unit) == "us";
  result.value = Decimal(latency ? spread.p95 : spread.p5);
  result.distribution = spread;
  result.verdict = VerdictKind::kNoProfile;
  result.evidence = what + ", data exact; " + std::to_string(spread.samples) + " samples: min " +
                    Decimal(spread.min) + ", p5 " + Decimal(spread.p5) + ", median " +
                    Decimal(spread.median) + ", max " + Decimal(spread.max) + " " + unit + "; " +
                    TelemetryText(beside);
  return result;
}

}  // namespace bimetal::kernels
