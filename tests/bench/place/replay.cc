#include "tests/bench/place/replay.h"

#include <algorithm>
#include <cmath>
#include <queue>
#include <tuple>
#include <utility>

namespace bimetal::place {
namespace {

using core::placement::DevicesOf;
using core::placement::EngineNode;
using core::placement::EnginePlace;

// Uniform enough, and the same on every platform.
std::size_t Draw(std::mt19937_64& random, std::size_t below) { return random() % below; }

template <class T>
void Shuffle(std::vector<T>& items, std::mt19937_64& random) {
  for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[Draw(random, i)]);
}

double Exponential(std::mt19937_64& random, double mean) {
  const double uniform = (static_cast<double>(random() >> 11) + 0.5) / 9007199254740992.0;
  return -mean * std::log(uniform);
}

}  // namespace

std::vector<EngineNode> Renamed(std::vector<EngineNode> nodes, std::uint64_t seed) {
  std::mt19937_64 random(seed * 2 + 1);
  for (EngineNode& node : nodes) node.name = std::to_string(random()) + "-" + node.name;
  return nodes;
}

std::vector<TracePod> Arrivals(const Trace& trace, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<TracePod> pods = trace.pods;
  Shuffle(pods, random);
  const std::int64_t most = CapacityOf(trace.nodes) / 100 * kLastLoad;
  std::int64_t asked = 0;
  for (const TracePod& pod : pods) asked += DevicesOf(pod.shape).v;
  while (asked > most) {
    const std::size_t lost = Draw(random, pods.size());
    asked -= DevicesOf(pods[lost].shape).v;
    pods.erase(pods.begin() + static_cast<std::ptrdiff_t>(lost));
  }
  while (true) {
    const TracePod& next = trace.pods[Draw(random, trace.pods.size())];
    asked += DevicesOf(next.shape).v;
    if (asked > most) return pods;
    pods.push_back(next);
  }
}

Result<std::map<int, double>> ReplayInflow(const Trace& trace, PolicyOptions options,
                                           std::uint64_t seed) {
  options.seed = seed;
  BIMETAL_TRY_ASSIGN(const auto policy,
                     MakePolicy(options, Renamed(trace.nodes, seed), MixOf(trace.pods)));
  const auto capacity = static_cast<double>(CapacityOf(trace.nodes));
  std::map<int, std::pair<double, int>> sums;
  std::int64_t asked = 0, used = 0;
  for (const TracePod& pod : Arrivals(trace, seed)) {
    asked += DevicesOf(pod.shape).v;
    if (policy->Place(pod.shape)) used += DevicesOf(pod.shape).v;
    auto& [sum, count] =
        sums[static_cast<int>(std::lround(100.0 * static_cast<double>(asked) / capacity))];
    sum += 100.0 * static_cast<double>(used) / capacity;
    ++count;
  }
  std::map<int, double> loads;
  for (const auto& [load, sum] : sums) loads[load] = sum.first / sum.second;
  return loads;
}

Result<ChurnFigures> ReplayChurn(const Trace& trace, PolicyOptions options, std::uint64_t seed,
                                 double load, std::int64_t arrivals) {
  options.seed = seed;
  std::vector<std::pair<const TracePod*, double>> pods;  // with run times in seconds
  core::placement::Mix mix;  // by device time: the pods that a look at the cluster would find
  double device_seconds = 0;
  for (const TracePod& pod : trace.pods) {
    if (!pod.run_seconds) continue;
    const double run = static_cast<double>(std::clamp<std::int64_t>(*pod.run_seconds, 60, 86'400));
    pods.emplace_back(&pod, run);
    mix[pod.shape] += static_cast<std::int64_t>(run);
    device_seconds += run * static_cast<double>(DevicesOf(pod.shape).v);
  }
  BIMETAL_TRY_ASSIGN(const auto policy, MakePolicy(options, Renamed(trace.nodes, seed), mix));
  const auto capacity = static_cast<double>(CapacityOf(trace.nodes));
  const double gap = device_seconds / static_cast<double>(pods.size()) / (load * capacity);
  std::mt19937_64 random(seed);
  using Departure = std::tuple<double, std::int64_t, EnginePlace, std::int64_t>;
  std::priority_queue<Departure, std::vector<Departure>, std::greater<>> departures;
  double now = 0, measured_since = 0, busy = 0, asked_time = 0, lost_time = 0;
  std::int64_t used = 0, multi = 0, lost_multi = 0;
  const auto advance = [&](double to, bool measure) {
    if (measure) busy += static_cast<double>(used) * (to - now);
    now = to;
  };
  for (std::int64_t i = 0; i < arrivals; ++i) {
    const bool measure = i >= arrivals / 2;
    const double next = now + Exponential(random, gap);
    const auto& [pod, run] = pods[Draw(random, pods.size())];
    while (!departures.empty() && std::get<0>(departures.top()) <= next) {
      const auto [when, number, place, milli] = departures.top();
      departures.pop();
      advance(when, measure);
      policy->Release(place);
      used -= milli;
    }
    advance(next, measure);
    if (i == arrivals / 2) {
      measured_since = now;
      busy = 0;
    }
    const std::int64_t milli = DevicesOf(pod->shape).v;
    const auto place = policy->Place(pod->shape);
    if (place) {
      used += milli;
      departures.emplace(now + run, i, *place, milli);
    }
    if (!measure) continue;
    asked_time += run * static_cast<double>(milli);
    if (!place) lost_time += run * static_cast<double>(milli);
    if (pod->shape.devices < 2) continue;
    ++multi;
    if (!place) ++lost_multi;
  }
  return ChurnFigures{
      .allocated = 100 * busy / (capacity * (now - measured_since)),
      .lost_time = 100 * lost_time / asked_time,
      .lost_multi =
          multi == 0 ? 0 : 100 * static_cast<double>(lost_multi) / static_cast<double>(multi)};
}

}  // namespace bimetal::place
