#include "tests/bench/queue/benches.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "tests/bench/queue/fair.h"
#include "tests/bench/queue/line_sim.h"
#include "tests/bench/queue/rounds_sim.h"
#include "tests/bench/queue/slices_sim.h"
#include "tests/bench/queue/trace.h"

namespace bimetal::bench {
namespace {

using core::queue::order::Objective;

constexpr double kHour = 3600;
constexpr int kNodes = 40;  // of each vendor
constexpr double kDevicesOfVendor = 320;

// One figure beside its bar; both as printed, so that what reads equal is equal.
bool Within(const char* what, double value, double bar, int decimals) {
  const double scale = std::pow(10.0, decimals);
  const bool good = std::round(value * scale) <= std::round(bar * scale);
  std::printf("  %s: %.*f, bar %.*f%s\n", what, decimals, value, decimals, bar,
              good ? "" : "  OVER");
  std::fflush(stdout);
  return good;
}

void Last(const char* name, double value, const char* unit, double bar) {
  std::printf("%s %.2f %s bar %g\n", name, value, unit, bar);
  std::fflush(stdout);
}

struct Times {
  double mean = 0, p99 = 0;  // hours
};

Times TimesOf(const std::vector<TraceJob>& jobs, const std::vector<double>& finish) {
  std::vector<double> times;
  double sum = 0;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    times.push_back((finish[i] - jobs[i].arrival) / kHour);
    sum += times.back();
  }
  const auto rank = static_cast<std::ptrdiff_t>(times.size() * 99 / 100);
  std::nth_element(times.begin(), times.begin() + rank, times.end());
  return {sum / static_cast<double>(times.size()), times[static_cast<std::size_t>(rank)]};
}

double GavelMean(const std::vector<Throughput>& table, int seed, double rate, Known known) {
  constexpr std::size_t kFirst = 4000, kLast = 5000;
  const auto jobs = GenerateGavel(table, seed, 30000, rate, 1e18);
  const RoundsResult result =
      SimulateRounds(jobs, {.known = known, .first = kFirst, .until = kLast});
  double sum = 0;
  for (std::size_t i = kFirst; i < kLast; ++i) sum += result.finish[i] - jobs[i].arrival;
  const double mean = sum / (kLast - kFirst) / kHour;
  std::printf("    seed %d: %.2f h (%ld rounds, %.3f ms each)\n", seed, mean, result.rounds,
              result.decision_ms);
  std::fflush(stdout);
  return mean;
}

bool Gavel(const Seeds& seeds) {
  const auto table = ReadThroughputs(TraceFolder());
  struct Point {
    Known known;
    double rate, bar;
  };
  constexpr Point kPoints[] = {{Known::kExactly, 2.0, 20.0}, {Known::kExactly, 2.4, 23.0},
                               {Known::kExactly, 2.6, 25.6}, {Known::kNothing, 2.0, 20.3},
                               {Known::kNothing, 2.4, 25.5}, {Known::kNothing, 2.6, 30.0}};
  bool good = true;
  double value = 0;
  for (const Point& point : kPoints) {
    double sum = 0;
    for (int seed = seeds.first; seed <= seeds.last; ++seed) {
      sum += GavelMean(table, seed, point.rate, point.known);
    }
    value = sum / seeds.Count();
    const std::string what = std::to_string(point.rate).substr(0, 3) + " jobs/h, run times " +
                             (point.known == Known::kNothing ? "unknown" : "known");
    good &= Within(what.c_str(), value, point.bar, 1);
  }
  Last("queue-gavel", value, "h", kPoints[5].bar);
  return good;
}

bool Makespan(const Seeds& seeds) {
  const auto table = ReadThroughputs(TraceFolder());
  constexpr std::pair<int, double> kSizes[] = {{300, 161.16}, {500, 169.42}, {700, 244.23}};
  bool good = true;
  double value = 0;
  for (const auto& [count, bar] : kSizes) {
    double sum = 0;
    for (int seed = seeds.first; seed <= seeds.last; ++seed) {
      // The published list has no job longer than this: its makespan is the same from 100 to 300
      // jobs, which is its longest job.
      const auto jobs = GenerateGavel(table, seed, count, 0, 161 * kHour);
      const RoundsResult result = SimulateRounds(
          jobs, {.objective = Objective::kMakespan, .known = Known::kExactly, .until = 0});
      std::printf("    %d jobs, seed %d: %.1f h, no schedule of this list is under %.1f h\n", count,
                  seed, result.makespan / kHour, LeastMakespan(jobs, {36, 36, 36}) / kHour);
      std::fflush(stdout);
      sum += result.makespan / kHour;
    }
    value = sum / seeds.Count();
    good &= Within((std::to_string(count) + " jobs").c_str(), value, bar, 1);
  }
  Last("queue-makespan", value, "h", kSizes[2].second);
  return good;
}

bool Philly(const Seeds& seeds) {
  const auto table = ReadThroughputs(TraceFolder());
  Times line, slices;
  for (int seed = seeds.first; seed <= seeds.last; ++seed) {
    const auto jobs = ReadPhilly(TraceFolder(), table, static_cast<std::uint64_t>(seed));
    const Times a = TimesOf(jobs, SimulateLine(jobs, {.nodes = kNodes}).finish);
    const SlicesResult result = SimulateSlices(jobs, {.nodes = kNodes});
    const Times b = TimesOf(jobs, result.finish);
    std::printf("    seed %d: %.2f h mean %.1f h p99; with time slices %.2f %.1f, %ld restarts\n",
                seed, a.mean, a.p99, b.mean, b.p99, result.restarts);
    std::fflush(stdout);
    line = {line.mean + a.mean / seeds.Count(), line.p99 + a.p99 / seeds.Count()};
    slices = {slices.mean + b.mean / seeds.Count(), slices.p99 + b.p99 / seeds.Count()};
  }
  bool good = Within("mean h, no preemption, predicted run times", line.mean, 4.5, 2);
  good &= Within("p99 h, no preemption, predicted run times", line.p99, 72, 1);
  good &= Within("mean h, preempting, 60 s a restart", slices.mean, 3.3, 2);
  good &= Within("p99 h, preempting, 60 s a restart", slices.p99, 56, 1);
  Last("queue-philly-2v", line.mean, "h", 4.5);
  return good;
}

bool Promise(const Seeds& seeds) {
  const auto table = ReadThroughputs(TraceFolder());
  int late = 0, promises = 0;
  for (int seed = seeds.first; seed <= seeds.last; ++seed) {
    const auto jobs = ReadPhilly(TraceFolder(), table, static_cast<std::uint64_t>(seed));
    const LineResult result = SimulateLine(jobs, {.nodes = kNodes, .exact = true});
    const Times times = TimesOf(jobs, result.finish);
    std::printf("    seed %d: %d heads promised, %d late; %.2f h mean %.1f h p99\n", seed,
                result.promises, result.late, times.mean, times.p99);
    std::fflush(stdout);
    late += result.late;
    promises += result.promises;
  }
  if (promises == 0) std::printf("  no head of line ever had to wait: nothing was tested\n");
  std::printf("queue-promise %d late bar 0\n", late);
  return late == 0 && promises > 0;
}

std::vector<double> FairFinishes(const std::vector<TraceJob>& jobs,
                                 const std::vector<double>& share) {
  FairProgram program(kDevicesOfVendor);
  SlicesSetup setup{.nodes = kNodes};
  setup.restart = 0;  // in its favour: it moves jobs ten times as often
  setup.rule = [&](double now, const std::vector<std::size_t>& there,
                   const std::vector<double>& left) {
    std::vector<Fluid> fluid;
    for (std::size_t i = 0; i < there.size(); ++i) {
      const TraceJob& job = jobs[there[i]];
      fluid.push_back({.job = there[i],
                       .devices = static_cast<double>(job.devices),
                       .elapsed = now - job.arrival,
                       .left = left[i],
                       .share_time = share[there[i]],
                       .rate = {job.rate[0], job.rate[1]}});
    }
    return program.Round(fluid);
  };
  return SimulateSlices(jobs, setup).finish;
}

bool Fair(const Seeds& seeds) {
  const auto table = ReadThroughputs(TraceFolder());
  double worst = 0, bar = 0;
  for (int seed = seeds.first; seed <= seeds.last; ++seed) {
    const auto jobs = ReadPhilly(TraceFolder(), table, static_cast<std::uint64_t>(seed));
    const auto share = ShareTimes(jobs, 2 * kDevicesOfVendor);
    const Fairness ours = FairnessOf(jobs, SimulateSlices(jobs, {.nodes = kNodes}).finish, share);
    const Fairness program = FairnessOf(jobs, FairFinishes(jobs, share), share);
    std::printf("    seed %d: worst rho %.3f mean %.3f; linear program %.3f %.3f\n", seed,
                ours.worst, ours.mean, program.worst, program.mean);
    for (const auto& [queue, rho] : ours.by_queue) {
      std::printf("      %s %.3f, linear program %.3f\n", queue.c_str(), rho,
                  program.by_queue.at(queue));
    }
    std::fflush(stdout);
    worst += ours.worst / seeds.Count();
    bar += program.worst / seeds.Count();
  }
  const bool good = Within("worst rho of a virtual cluster", worst, bar, 3);
  std::printf("fair-2v %.3f rho bar %.3f\n", worst, bar);
  return good;
}

}  // namespace

Bench FindBench(std::string_view name) {
  if (name == "queue-gavel") return Gavel;
  if (name == "queue-makespan") return Makespan;
  if (name == "queue-philly-2v") return Philly;
  if (name == "queue-promise") return Promise;
  if (name == "fair-2v") return Fair;
  return nullptr;
}

}  // namespace bimetal::bench
