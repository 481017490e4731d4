// p13: a burst of 53 gangs on 32 nodes of two vendors, ours beside the stock scheduler's.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "tests/bench/loop/benches.h"
#include "tests/bench/loop/operator_loop.h"
#include "tests/bench/loop/stock.h"
#include "tests/bench/measure.h"

namespace bimetal::bench {
namespace {

constexpr Micros kSecond = 1'000'000;
constexpr Micros kBegin = 10 * kSecond;
constexpr int kNodes = 16, kDevices = 8;  // of each vendor
constexpr int kPerPod = 4;
constexpr Micros kBound = 120 * kSecond;  // starvationBound of the queue

struct Gang {
  int pods;
  Micros run_time;
};

// 53 gangs of 1 to 32 pods in a random order: as many devices in each size but the smallest. The
// largest takes all nodes of one vendor.
std::vector<Gang> Burst(std::uint64_t seed) {
  std::vector<Gang> out;
  const auto add = [&](int count, int pods) {
    out.insert(out.end(), static_cast<std::size_t>(count), {pods, 0});
  };
  add(1, 32), add(2, 16), add(4, 8), add(8, 4), add(16, 2), add(22, 1);
  std::uint64_t state = seed * 2 + 1;
  const auto up = [&](std::uint64_t below) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    return (state >> 33U) % below;
  };
  for (std::size_t i = out.size(); i > 1; --i) std::swap(out[i - 1], out[up(i)]);
  for (Gang& gang : out) gang.run_time = static_cast<Micros>(30 + up(61)) * kSecond;
  return out;
}

struct Outcome {
  double occupancy = 0;  // of all devices until the last gang has ended
  double end = 0;
  double largest = 0, last_other = 0;  // when they started
  bool whole = true;
};

Outcome RunOurs(const std::vector<Gang>& gangs) {
  OperatorLoop loop({.nvidia_nodes = kNodes, .amd_nodes = kNodes, .devices = kDevices}, {});
  api::GPUQueue& queue = AddQueue(loop.store(), "default", "");
  queue.mutable_spec()->set_order("Backfill");
  queue.mutable_spec()->set_starvation_bound("2m");
  loop.Start();
  for (std::size_t i = 0; i < gangs.size(); ++i) {
    api::GPUJob job =
        MakeLoopJob("gang-" + std::to_string(100 + i), "default", gangs[i].pods, kPerPod);
    auto* other = job.mutable_spec()->add_variants();
    other->set_name("rocm");
    other->set_vendor("amd");
    other->set_devices_per_pod(kPerPod);
    other->set_image("image:amd");
    const auto estimate = FormatDuration(Millis{gangs[i].run_time / 1000});
    job.mutable_spec()->mutable_limits()->set_estimated_duration(estimate);
    loop.Submit(kBegin + static_cast<Micros>(i) * 2000, std::move(job), gangs[i].run_time);
  }
  loop.Run(3600 * kSecond);
  Outcome out;
  out.whole = loop.AllEnded();
  double useful = 0;
  const double begin = static_cast<double>(kBegin) * 1e-6;
  for (std::size_t i = 0; i < gangs.size(); ++i) {
    const Life& life = loop.lives().at("gang-" + std::to_string(100 + i));
    if (!life.ended || !life.running) continue;
    const double start = *life.running - begin;
    const double run_time = static_cast<double>(gangs[i].run_time) * 1e-6;
    useful += run_time * gangs[i].pods * kPerPod;
    out.end = std::max(out.end, start + run_time);
    double& latest = gangs[i].pods == 32 ? out.largest : out.last_other;
    latest = std::max(latest, start);
  }
  out.occupancy = 100 * useful / (out.end * 2 * kNodes * kDevices);
  return out;
}

// Half of the gangs ask for each vendor, in turn: nobody can ask the stock scheduler for either.
StockOutcome RunStockOn(const std::vector<Gang>& gangs) {
  std::vector<StockGang> stock;
  for (std::size_t i = 0; i < gangs.size(); ++i) {
    stock.push_back({.created = static_cast<double>(i) * 0.002,
                     .run_time = static_cast<double>(gangs[i].run_time) * 1e-6,
                     .pods = gangs[i].pods,
                     .devices_per_pod = kPerPod,
                     .vendor = static_cast<int>(i % 2)});
  }
  return RunStock({kNodes, kNodes}, kDevices, stock, 1.0 / 232);
}

}  // namespace

int P13(int part) {
  Conditions conditions;
  std::vector<double> ours, theirs;
  const int seeds = std::max(1, 5 / part);
  for (int seed = 0; seed < seeds; ++seed) {
    const auto gangs = Burst(static_cast<std::uint64_t>(seed));
    const Outcome mine = RunOurs(gangs);
    const StockOutcome stock = RunStockOn(gangs);
    const double devices = 2 * kNodes * kDevices;
    const double useful = stock.end > 0 ? 100 * stock.useful / (stock.end * devices) : 0;
    const double held = stock.end > 0 ? 100 * stock.held / (stock.end * devices) : 0;
    std::printf(
        "burst %d: ours %.1f %% in %.0f s, the largest gang starts after %.0f s, the last other "
        "after %.0f s; stock %.1f %% (held %.1f %%) in %.0f s, %d gangs never start\n",
        seed, mine.occupancy, mine.end, mine.largest, mine.last_other, useful, held, stock.end,
        stock.stuck);
    conditions.Require(mine.whole, "every gang runs to its end");
    conditions.Require(mine.largest - mine.last_other <= static_cast<double>(kBound) * 1e-6,
                       "the largest gang is not last by more than its starvation bound");
    ours.push_back(mine.occupancy);
    theirs.push_back(useful);
  }
  conditions.Require(Mean(ours) >= Mean(theirs), "at least the occupancy of the stock scheduler");
  std::printf(
      "the stock scheduler is a model: one pod at a time, 232 a second; a device counts as "
      "occupied where its gang is whole\n");
  std::printf("p13 %.1f %% bar %.1f\n", Mean(ours), Mean(theirs));
  return conditions.ExitStatus();
}

}  // namespace bimetal::bench
