#include "tests/bench/place/benches.h"

#include <cmath>
#include <cstdio>
#include <functional>
#include <map>
#include <utility>

#include "tests/bench/place/replay.h"
#include "tests/bench/place/speed.h"
#include "tests/bench/place/trace.h"

namespace bimetal::place {
namespace {

struct Sample {
  double sum = 0, squares = 0;
  int count = 0;
  void Add(double value) {
    sum += value;
    squares += value * value;
    ++count;
  }
  double Mean() const { return count == 0 ? 0 : sum / count; }
  double Deviation() const {
    return count < 2 ? 0 : std::sqrt(std::max(0.0, (squares - sum * Mean()) / (count - 1)));
  }
};

using Curve = std::map<int, Sample>;  // by arrived load

Result<Curve> Inflow(const BenchOptions& options, const std::string& list, bool two_vendors) {
  BIMETAL_TRY_ASSIGN(Trace trace, LoadTrace(options.traces, list));
  if (two_vendors) MakeTwoVendors(&trace);
  Curve curve;
  for (std::uint64_t seed = options.first_seed; seed <= options.last_seed; ++seed) {
    BIMETAL_TRY_ASSIGN(const auto loads, ReplayInflow(trace, options.policy, seed));
    for (const auto& [load, allocated] : loads) curve[load].Add(allocated);
  }
  return curve;
}

void Print(const std::string& list, Curve& curve) {
  std::printf("%-12s", list.c_str());
  for (const int load : {90, 95, 100, 110, 120, 130}) {
    std::printf("  %d: %6.2f (%.2f)", load, curve[load].Mean(), curve[load].Deviation());
  }
  std::printf("\n");
  std::fflush(stdout);
}

// A mean is compared as it is printed.
bool Reaches(double value, double bar) { return std::round(value * 100) / 100 >= bar; }

bool Last(const std::string& name, double value, double bar, bool others) {
  std::printf("%s %.2f %% bar %.2f\n", name.c_str(), value, bar);
  return others && Reaches(value, bar);
}

using Bars = std::map<int, double>;

// One list against bars by load; the figure is the allocation at `load`.
Result<bool> OneList(const std::string& name, const BenchOptions& options, const std::string& list,
                     bool two_vendors, const Bars& bars, int load) {
  BIMETAL_TRY_ASSIGN(Curve curve, Inflow(options, list, two_vendors));
  Print(list, curve);
  bool all = true;
  for (const auto& [at, bar] : bars) all = all && Reaches(curve[at].Mean(), bar);
  return Last(name, curve[load].Mean(), bars.at(load), all);
}

const std::vector<std::string> kLists = {
    "default",    "cpu050",     "cpu100",      "cpu200",     "cpu250",    "gpushare40",
    "gpushare60", "gpushare80", "gpushare100", "gpuspec10",  "gpuspec20", "gpuspec25",
    "gpuspec33",  "multigpu20", "multigpu30",  "multigpu40", "multigpu50"};

Result<bool> Place17(const BenchOptions& options) {
  Curve all;
  for (const std::string& list : options.lists.empty() ? kLists : options.lists) {
    BIMETAL_TRY_ASSIGN(Curve curve, Inflow(options, list, false));
    Print(list, curve);
    for (const auto& [load, sample] : curve) all[load].Add(sample.Mean());
  }
  Print("mean", all);
  const bool others = Reaches(all[90].Mean(), 89.4) && Reaches(all[100].Mean(), 94.5);
  return Last("place-17", all[130].Mean(), 94.7, others);
}

Result<bool> PlaceCpu(const BenchOptions& options) {
  BIMETAL_TRY_ASSIGN(Curve most, Inflow(options, "cpu300", false));
  Print("cpu300", most);
  BIMETAL_TRY_ASSIGN(Curve curve, Inflow(options, "cpu250", false));
  Print("cpu250", curve);
  return Last("place-cpu", curve[130].Mean(), 93.3, Reaches(most[130].Mean(), 85.9));
}

Result<bool> PlaceTies(const BenchOptions& options) {
  BenchOptions other = options;
  BIMETAL_TRY_ASSIGN(Curve own, Inflow(other, "default", false));
  Print("own ties", own);
  other.policy.random_ties = true;
  BIMETAL_TRY_ASSIGN(Curve random, Inflow(other, "default", false));
  Print("random ties", random);
  const double gap = own[130].Mean() - random[130].Mean();
  std::printf("place-ties %.2f points bar 0.30\n", gap);
  return std::round(gap * 100) / 100 <= 0.3;
}

struct ChurnSamples {
  Sample allocated, lost_time, lost_multi;
  void Add(const ChurnFigures& figures) {
    allocated.Add(figures.allocated);
    lost_time.Add(figures.lost_time);
    lost_multi.Add(figures.lost_multi);
  }
  void Print(const std::string& name) const {
    std::printf(
        "%-12s allocated %.2f (%.2f)  lost device time %.2f (%.2f)  lost pods of 2+ %.2f (%.2f)\n",
        name.c_str(), allocated.Mean(), allocated.Deviation(), lost_time.Mean(),
        lost_time.Deviation(), lost_multi.Mean(), lost_multi.Deviation());
    std::fflush(stdout);
  }
};

Result<bool> PlaceChurn(const std::string& name, const BenchOptions& options, bool two_vendors) {
  BIMETAL_TRY_ASSIGN(Trace trace, LoadTrace(options.traces, "default"));
  if (two_vendors) MakeTwoVendors(&trace);
  ChurnSamples ours, peer, paired;
  PolicyOptions peer_options = options.policy;
  peer_options.name = "gpubin";
  for (std::uint64_t seed = options.first_seed; seed <= options.last_seed; ++seed) {
    BIMETAL_TRY_ASSIGN(const ChurnFigures a,
                       ReplayChurn(trace, options.policy, seed, 0.95, options.arrivals));
    ours.Add(a);
    if (options.alone) continue;
    BIMETAL_TRY_ASSIGN(const ChurnFigures b,
                       ReplayChurn(trace, peer_options, seed, 0.95, options.arrivals));
    peer.Add(b);
    paired.Add({.allocated = a.allocated - b.allocated,
                .lost_time = a.lost_time - b.lost_time,
                .lost_multi = a.lost_multi - b.lost_multi});
    std::fprintf(stderr, "seed %d: %.2f %.2f %.2f, gpubin %.2f %.2f %.2f\n", static_cast<int>(seed),
                 a.allocated, a.lost_time, a.lost_multi, b.allocated, b.lost_time, b.lost_multi);
  }
  ours.Print(options.policy.name);
  if (options.alone) return true;
  peer.Print("gpubin");
  paired.Print("difference");
  if (two_vendors) return Last(name, ours.allocated.Mean(), 93.3, true);
  const bool no_worse = Reaches(paired.allocated.Mean(), 0) &&
                        Reaches(-paired.lost_time.Mean(), 0) &&
                        Reaches(-paired.lost_multi.Mean(), 0);
  return Last(name, ours.allocated.Mean(), peer.allocated.Mean(), no_worse);
}

}  // namespace

std::vector<std::string> BenchNames() {
  return {"place-openb", "place-17",       "place-spec", "place-2v",   "place-cpu",
          "place-churn", "place-churn-2v", "place-ties", "place-speed"};
}

Result<bool> RunBench(const std::string& name, const BenchOptions& options) {
  if (name == "place-openb") {
    return OneList(name, options, "default", false, {{100, 95.7}, {130, 95.8}}, 130);
  }
  if (name == "place-spec") {
    return OneList(name, options, "gpuspec33", false, {{90, 87.3}, {100, 94.4}, {130, 95.5}}, 100);
  }
  if (name == "place-2v") {
    return OneList(name, options, "default", true, {{90, 89.9}, {100, 95.7}, {130, 95.8}}, 100);
  }
  if (name == "place-17") return Place17(options);
  if (name == "place-cpu") return PlaceCpu(options);
  if (name == "place-ties") return PlaceTies(options);
  if (name == "place-churn") return PlaceChurn(name, options, false);
  if (name == "place-churn-2v") return PlaceChurn(name, options, true);
  return PlaceSpeed(name, options);
}

}  // namespace bimetal::place
