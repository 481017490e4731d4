#include "kernels/checks/rates.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <mutex>
#include <string>

#include "kernels/checks/modules.h"
#include "kernels/checks/rate_common.h"

namespace bimetal::kernels {
namespace {

constexpr std::uint64_t kArrayBytes = 1ull << 30;  // beyond every cache
constexpr std::uint64_t kPinnedBytes = 256ull << 20;
constexpr std::uint64_t kBatch = 64;  // launches between two events

struct Kernel {
  const char* check;
  const char* name;
  RateKind kind;
  std::uint64_t arrays;  // that one pass moves
};
constexpr Kernel kCopy = {"hbm-copy", "bm_rate_copy", kRateCopy, 2};
constexpr Kernel kScale = {"hbm-scale", "bm_rate_scale", kRateScale, 2};
constexpr Kernel kAdd = {"hbm-add", "bm_rate_add", kRateAdd, 3};
constexpr Kernel kTriad = {"hbm-triad", "bm_rate_triad", kRateTriad, 3};
constexpr Kernel kDot = {"hbm-dot", "bm_rate_dot", kRateDot, 2};

// The claim of a simulated device, else what `measure` measures in GB/s for `bytes` a pass.
Outcome<std::vector<double>> SamplesOf(Device& device, const CheckRequest& request,
                                       std::string_view check, double bytes,
                                       const std::function<Done()>& queue) {
  if (auto claimed = device.ModelledRates(check, request.seed, kRateSamples)) {
    // Once, so that there is data to verify.
    KERNELS_TRY(queue());
    KERNELS_TRY(device.Synchronize(request.deadline));
    return std::move(*claimed);
  }
  KERNELS_TRY_ASSIGN(std::vector<double> samples, TimeEach(device, request.deadline, queue));
  for (double& sample : samples) sample = bytes / sample;
  return samples;
}

// Under load: one more pass, read while it runs.
Outcome<Telemetry> SampleBeside(Device& device, const CheckRequest& request,
                                const std::function<Done()>& queue) {
  KERNELS_TRY(queue());
  const Telemetry now = device.Sample();
  KERNELS_TRY(device.Synchronize(request.deadline));
  return now;
}

std::uint64_t DotOfPeriod(std::uint64_t seed, std::uint64_t count) {
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    sum += static_cast<std::uint64_t>(RateValue(seed, i) * RateValue(seed + 1, i));
  }
  return sum;
}

// The dot product of `count` values: the threads' sums are whole numbers, exact in fp64.
RateTally JudgeDot(RateTally tally, std::uint64_t seed, std::uint64_t count) {
  const std::uint64_t period = RatePeriod();
  const std::uint64_t must =
      DotOfPeriod(seed, period) * (count / period) + DotOfPeriod(seed, count % period);
  if (tally.silent_thread || tally.sum == static_cast<double>(must)) return tally;
  RateRecord wrong = {};
  wrong.expected = static_cast<double>(must);
  wrong.found = tally.sum;
  tally.mismatches = 1;
  tally.first = wrong;
  return tally;
}

Outcome<CheckResult> RunHbm(Device& device, const CheckRequest& request, const Kernel& kernel) {
  KERNELS_TRY_ASSIGN(const std::uint64_t bytes, RateBytes(device, request, kArrayBytes, 3));
  const LaunchShape shape = FullShape(device.info());
  KERNELS_TRY_ASSIGN(const DeviceBuffer a, DeviceBuffer::Make(device, bytes));
  KERNELS_TRY_ASSIGN(const DeviceBuffer b, DeviceBuffer::Make(device, bytes));
  KERNELS_TRY_ASSIGN(const DeviceBuffer c, DeviceBuffer::Make(device, bytes));
  KERNELS_TRY_ASSIGN(const DeviceBuffer records,
                     DeviceBuffer::Make(device, shape.total() * sizeof(RateRecord)));
  KERNELS_TRY(FillRate(device, request, request.seed, a.address<RatePair>(), b.address<RatePair>(),
                       c.address<RatePair>(), bytes));
  RateArgs args = {};
  args.a = a.address<RatePair>();
  args.b = b.address<RatePair>();
  args.c = c.address<RatePair>();
  args.pairs = bytes / sizeof(RatePair);
  args.seed = request.seed;
  args.token = Mix(request.seed ^ 0x646f74ull);
  args.records = records.address<RateRecord>();
  const auto queue = [&] { return LaunchWith(device, RatesModule(), kernel.name, shape, args); };
  KERNELS_TRY_ASSIGN(
      std::vector<double> samples,
      SamplesOf(device, request, kernel.check, static_cast<double>(kernel.arrays * bytes), queue));
  KERNELS_TRY_ASSIGN(const Telemetry beside, SampleBeside(device, request, queue));
  RateTally tally;
  if (kernel.kind == kRateDot) {
    KERNELS_TRY_ASSIGN(tally, ReadRecords(device, records, shape, args.token));
    tally = JudgeDot(tally, request.seed, bytes / sizeof(double));
  } else {
    KERNELS_TRY_ASSIGN(tally, VerifyRate(device, request, request.seed, kernel.kind,
                                         c.address<RatePair>(), bytes));
  }
  return RateResultOf(tally, std::move(samples), "GB/s",
                      std::to_string(kernel.arrays) + " arrays of " + std::to_string(bytes) +
                          " bytes, seed " + std::to_string(request.seed),
                      beside);
}

// The data of `seed` on the host, and the first value that is not.
void FillHost(std::span<std::byte> bytes, std::uint64_t seed) {
  std::vector<double> period(RatePeriod());
  for (std::uint64_t i = 0; i < period.size(); ++i) period[i] = RateValue(seed, i);
  const std::size_t step = period.size() * sizeof(double);
  for (std::size_t at = 0; at < bytes.size(); at += step) {
    std::memcpy(bytes.data() + at, period.data(), std::min(step, bytes.size() - at));
  }
}

RateTally VerifyHost(std::span<const std::byte> bytes, std::uint64_t seed) {
  RateTally tally;
  for (std::uint64_t i = 0; i < bytes.size() / sizeof(double); ++i) {
    double found = 0;
    std::memcpy(&found, bytes.data() + i * sizeof(double), sizeof(double));
    const double must = RateValue(seed, i);
    if (found == must) continue;
    if (tally.mismatches++ > 0) continue;
    RateRecord wrong = {};
    wrong.first = i;
    wrong.expected = must;
    wrong.found = found;
    tally.first = wrong;
  }
  return tally;
}

// Devices may share their way to the host (a PCIe switch, a socket), and owe what their own link
// can do: they are measured in turn. One that hangs in its turn holds the others up no longer than
// this.
std::timed_mutex host_path;
constexpr std::chrono::seconds kLongestTurn{5};

Outcome<CheckResult> RunCopy(Device& device, const CheckRequest& request, bool up) {
  KERNELS_TRY_ASSIGN(const std::uint64_t bytes, RateBytes(device, request, kPinnedBytes, 2));
  KERNELS_TRY_ASSIGN(const DeviceBuffer buffer, DeviceBuffer::Make(device, bytes));
  KERNELS_TRY_ASSIGN(const PinnedMemory pinned, PinnedMemory::Make(device, bytes));
  // The far end begins with other data.
  if (up) FillHost(pinned.bytes(), request.seed);
  if (!up) std::memset(pinned.get().data, 0xff, bytes);
  KERNELS_TRY(FillRate(device, request, request.seed, up ? nullptr : buffer.address<RatePair>(),
                       nullptr, up ? buffer.address<RatePair>() : nullptr, bytes));
  const auto queue = [&] {
    return up ? device.QueueUpload(buffer.get(), pinned.get(), bytes)
              : device.QueueDownload(pinned.get(), buffer.get(), bytes);
  };
  std::unique_lock turn(host_path, std::defer_lock);
  if (!device.info().simulated) (void)turn.try_lock_for(kLongestTurn);
  KERNELS_TRY_ASSIGN(std::vector<double> samples,
                     SamplesOf(device, request, up ? "host-to-device" : "device-to-host",
                               static_cast<double>(bytes), queue));
  KERNELS_TRY_ASSIGN(const Telemetry beside, SampleBeside(device, request, queue));
  if (turn.owns_lock()) turn.unlock();
  RateTally tally;
  if (up) {
    KERNELS_TRY_ASSIGN(tally, VerifyRate(device, request, request.seed, kRateCopy,
                                         buffer.address<RatePair>(), bytes));
  } else {
    tally = VerifyHost(pinned.bytes(), request.seed);
  }
  return RateResultOf(
      tally, std::move(samples), "GB/s",
      std::to_string(bytes) + " bytes of pinned memory, seed " + std::to_string(request.seed),
      beside);
}

Outcome<CheckResult> RunLatency(Device& device, const CheckRequest& request) {
  KERNELS_TRY_ASSIGN(const DeviceBuffer counter, DeviceBuffer::Make(device, sizeof(std::uint64_t)));
  const std::uint64_t zero = 0;
  KERNELS_TRY(device.Upload(counter.get(), std::as_bytes(std::span(&zero, 1))));
  RateArgs args = {};
  args.launches = counter.address<std::uint64_t>();
  std::uint64_t launched = 0;
  const auto queue = [&]() -> Done {
    for (std::uint64_t i = 0; i < kBatch; ++i, ++launched) {
      KERNELS_TRY(LaunchWith(device, RatesModule(), "bm_rate_empty", {1, 1}, args));
    }
    return Success();
  };
  std::vector<double> samples;
  if (auto claimed = device.ModelledRates("launch-latency", request.seed, kRateSamples)) {
    KERNELS_TRY(queue());
    KERNELS_TRY(device.Synchronize(request.deadline));
    samples = std::move(*claimed);
  } else {
    KERNELS_TRY_ASSIGN(samples, TimeEach(device, request.deadline, queue));
    for (double& sample : samples) sample = sample / static_cast<double>(kBatch) / 1000.0;
  }
  KERNELS_TRY_ASSIGN(const Telemetry beside, SampleBeside(device, request, queue));
  std::uint64_t counted = 0;
  KERNELS_TRY(device.Download(counter.get(), std::as_writable_bytes(std::span(&counted, 1))));
  RateTally tally;
  if (counted != launched) {
    RateRecord wrong = {};
    wrong.expected = static_cast<double>(launched);
    wrong.found = static_cast<double>(counted);
    tally.mismatches = 1;
    tally.first = wrong;
  }
  return RateResultOf(tally, std::move(samples), "us",
                      std::to_string(kBatch) + " dependent launches a sample, " +
                          std::to_string(counted) + " of " + std::to_string(launched) + " counted",
                      beside);
}

}  // namespace

CheckResult RunHbmCopy(Device& device, const CheckRequest& request) {
  return RunBody([&] { return RunHbm(device, request, kCopy); });
}
CheckResult RunHbmScale(Device& device, const CheckRequest& request) {
  return RunBody([&] { return RunHbm(device, request, kScale); });
}
CheckResult RunHbmAdd(Device& device, const CheckRequest& request) {
  return RunBody([&] { return RunHbm(device, request, kAdd); });
}
CheckResult RunHbmTriad(Device& device, const CheckRequest& request) {
  return RunBody([&] { return RunHbm(device, request, kTriad); });
}
CheckResult RunHbmDot(Device& device, const CheckRequest& request) {
  return RunBody([&] { return RunHbm(device, request, kDot); });
}
CheckResult RunHostToDevice(Device& device, const CheckRequest& request) {
  return RunBody([&] { return RunCopy(device, request, true); });
}
CheckResult RunDeviceToHost(Device& device, const CheckRequest& request) {
  return RunBody([&] { return RunCopy(device, request, false); });
}
CheckResult RunLaunchLatency(Device& device, const CheckRequest& request) {
  return RunBody([&] { return RunLatency(device, request); });
}

}  // namespace bimetal::kernels
