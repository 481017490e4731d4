#include "workloads/exchange/exchange.h"

#include <cstdio>
#include <vector>

#include "workloads/compute/computer.h"
#include "workloads/program/progress.h"
#include "workloads/program/stop.h"

namespace bimetal::workloads {
namespace {

// Closed form of the sum of ExchangeValue over all ranks (compute/exchange_step_args.h), written
// apart from it so that the two check each other.
std::uint64_t ExpectedSum(std::uint64_t world, std::uint64_t round, std::uint64_t index) {
  return world * (world + 1) / 2 * (round + 1) + world * index;
}

std::string Who(const GangPlace& place) {
  return "world=" + std::to_string(place.world) + " rank=" + std::to_string(place.rank);
}

int Failure(const GangPlace& place, const std::string& what) {
  std::fprintf(stderr, "exchange %s: %s\n", Who(place).c_str(), what.c_str());
  return StopRequested() ? kExitStopped : 1;
}

// One round; adds what it summed up to `total`.
Done RunRound(const ExchangeOptions& options, std::uint64_t round, Computer& computer,
              AllReduce& gang, std::uint64_t* total) {
  KERNELS_TRY_ASSIGN(std::vector<std::uint64_t> values,
                     computer.Step(options.place.rank, round, options.place.round_timeout));
  KERNELS_TRY(gang.Sum(round, &values));
  for (std::uint64_t i = 0; i < values.size(); ++i) {
    const std::uint64_t expected = ExpectedSum(options.place.world, round, i);
    if (values[i] != expected) {
      return kernels::DeviceError{kernels::DeviceErrorCode::kFailed,
                                  "value " + std::to_string(i) + " is " +
                                      std::to_string(values[i]) + ", expected " +
                                      std::to_string(expected)};
    }
    *total += values[i];
  }
  return kernels::Success();
}

}  // namespace

int RunExchange(const ExchangeOptions& options,
                const std::function<void(const std::string&)>& say) {
  const GangPlace& place = options.place;
  Outcome<Computer> computer = Computer::Open(options.values);
  if (!computer.ok()) return Failure(place, computer.error().message);
  say("exchange " + Who(place) + " backend " + computer.value().description());
  Outcome<AllReduce> gang = AllReduce::Join(place);
  if (!gang.ok()) return Failure(place, gang.error().message);
  say("exchange " + Who(place) + " joined");
  Progress progress(options.progress_file);
  std::uint64_t total = 0;
  const auto start = std::chrono::steady_clock::now();
  for (std::uint64_t round = 0; round < options.rounds; ++round) {
    const Done done = RunRound(options, round, computer.value(), gang.value(), &total);
    if (!done.ok()) {
      return Failure(place, "round " + std::to_string(round + 1) + ": " + done.error().message);
    }
    progress.Step(round + 1);
    say("round " + std::to_string(round + 1) + "/" + std::to_string(options.rounds) + " " +
        Who(place) + " sum=" + std::to_string(total));
    // In signed milliseconds: a round that is late gives a negative rest.
    const auto due = options.duration.count() * static_cast<std::int64_t>(round + 1) /
                     static_cast<std::int64_t>(options.rounds);
    const auto spent = std::chrono::duration_cast<std::chrono::milliseconds>(
        std::chrono::steady_clock::now() - start);
    const auto left = std::chrono::milliseconds(due) - spent;
    if (!SleepUnlessStopped(left)) {
      return Failure(place, "stopped by a signal after round " + std::to_string(round + 1));
    }
  }
  say("sum=" + std::to_string(total) + " " + Who(place) + " ok");
  return 0;
}

}  // namespace bimetal::workloads
