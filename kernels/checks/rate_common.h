#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/checks/check.h"
#include "kernels/checks/rates_args.h"

namespace bimetal::kernels {

// Repetitions of a rate: enough for a 5th percentile, after those that warm the device up.
inline constexpr std::size_t kRateSamples = 24;
inline constexpr std::size_t kRateWarmUp = 2;

LaunchShape FullShape(const DeviceInfo& info);

// The lesser of `most`, a share of the free memory for each of `buffers`, and what the request
// allows; in whole pages. Error kOutOfMemory where that is too little to say anything.
Outcome<std::uint64_t> RateBytes(Device& device, const CheckRequest& request, std::uint64_t most,
                                 std::uint64_t buffers);

// True where the device's rates come from its description: only the data is worth a run.
bool IsModelled(const Device& device, std::string_view check);

// Device time of each repetition of what `queue` queues, in nanoseconds.
Outcome<std::vector<double>> TimeEach(Device& device, Deadline deadline,
                                      const std::function<Done()>& queue);

// What verifying threads left, put together.
struct RateTally {
  std::uint64_t mismatches = 0;
  std::optional<RateRecord> first;  // lowest index
  std::optional<std::uint64_t> silent_thread;
  double sum = 0;
};

// What was wrong with the data, "value 5 is 3, expected 4; 1 mismatches"; empty: nothing.
std::string WrongText(const RateTally& tally);

// Of `suspects.size()` things, those that are to blame for bad pairs of two: first the suspects
// among them, then whoever is in most of the others, until none is left. Both ends of a pair where
// nothing tells them apart.
std::vector<bool> Blame(const std::vector<bool>& suspects,
                        std::vector<std::pair<std::size_t, std::size_t>> bad);

// Downloads the records of a launch and reads them. `token` is the launch's.
Outcome<RateTally> ReadRecords(Device& device, const DeviceBuffer& records, LaunchShape shape,
                               std::uint64_t token);

// Fills a, b and c (null: not that one) with the data of `seed`.
Done FillRate(Device& device, const CheckRequest& request, std::uint64_t seed, RatePair* a,
              RatePair* b, RatePair* c, std::uint64_t bytes);
// Compares c with what `kind` makes of the data of `seed`.
Outcome<RateTally> VerifyRate(Device& device, const CheckRequest& request, std::uint64_t seed,
                              RateKind kind, RatePair* c, std::uint64_t bytes);

// A verdict of a rate: Fail where the data was wrong, else NoProfile with the distribution: floors
// are not this program's matter. `samples` are in `unit`; a latency is judged by its 95th
// percentile, all else by its 5th. `what` begins the evidence.
CheckResult RateResultOf(const RateTally& tally, std::vector<double> samples, const char* unit,
                         const std::string& what, const Telemetry& beside);

// "1980 MHz, 512 W, 61 C"; "clock and power unknown".
std::string TelemetryText(const Telemetry& telemetry);
// With at most `digits` after the point, without trailing zeros.
std::string Decimal(double value, int digits = 3);

}  // namespace bimetal::kernels
