#include "tests/bench/place/speed.h"

#include <time.h>

#include <algorithm>
#include <cstdio>
#include <utility>
#include <vector>

#include "tests/bench/place/replay.h"

namespace bimetal::place {
namespace {

using core::placement::EngineNode;

struct Speed {
  double per_second = 0, p99_us = 0;
};

// Of this thread: what others do on the machine does not count.
double CpuMicros() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) / 1e3;
}

Result<Speed> Measure(const Trace& trace, const PolicyOptions& options, std::uint64_t seed) {
  const std::vector<TracePod> pods = Arrivals(trace, seed);
  BIMETAL_TRY_ASSIGN(const auto policy,
                     MakePolicy(options, Renamed(trace.nodes, seed), MixOf(trace.pods)));
  std::vector<double> times;
  times.reserve(pods.size());
  const double began = CpuMicros();
  double before = began;
  for (const TracePod& pod : pods) {
    policy->Place(pod.shape);
    const double after = CpuMicros();
    times.push_back(after - before);
    before = after;
  }
  const double seconds = (before - began) / 1e6;
  const auto at = times.begin() + static_cast<std::ptrdiff_t>(times.size() * 99 / 100);
  std::nth_element(times.begin(), at, times.end());
  return Speed{.per_second = static_cast<double>(pods.size()) / seconds, .p99_us = *at};
}

Trace Times(const Trace& trace, int copies) {
  Trace many{.nodes = {}, .pods = trace.pods};
  for (int copy = 0; copy < copies; ++copy) {
    for (EngineNode node : trace.nodes) {
      node.name += "-" + std::to_string(copy);
      many.nodes.push_back(std::move(node));
    }
  }
  return many;
}

}  // namespace

Result<bool> PlaceSpeed(const std::string& name, const BenchOptions& options) {
  BIMETAL_TRY_ASSIGN(Trace trace, LoadTrace(options.traces, "default"));
  BIMETAL_TRY_ASSIGN(const Speed eight,
                     Measure(Times(trace, 8), options.policy, options.first_seed));
  std::printf("%zu nodes: %.0f placements/s, p99 %.1f us\n", trace.nodes.size() * 8,
              eight.per_second, eight.p99_us);
  Trace equal{.nodes = {}, .pods = trace.pods};
  for (int i = 0; i < 5'000; ++i) {
    EngineNode node = trace.nodes.back();
    node.name = "equal-" + std::to_string(i);
    node.devices = 8;
    equal.nodes.push_back(std::move(node));
  }
  BIMETAL_TRY_ASSIGN(const Speed five, Measure(equal, options.policy, options.first_seed));
  std::printf("5000 equal nodes: %.0f placements/s, p99 %.1f us\n", five.per_second, five.p99_us);
  BIMETAL_TRY_ASSIGN(const Speed one, Measure(trace, options.policy, options.first_seed));
  std::printf("%zu nodes: %.0f placements/s, p99 %.1f us\n", trace.nodes.size(), one.per_second,
              one.p99_us);
  std::printf("%s %.0f placements/s bar 50000\n", name.c_str(), one.per_second);
  return one.per_second >= 50'000 && one.p99_us < 100 && eight.p99_us < 1'000 &&
         five.per_second >= 5'000;
}

}  // namespace bimetal::place
