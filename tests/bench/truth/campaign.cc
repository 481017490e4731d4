#include "tests/bench/truth/campaign.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>
#include <vector>

#include "kernels/checks/check.h"

namespace bimetal::truth {
namespace {

namespace admission = core::admission;

constexpr int kSamples = 24;
// What sound devices of the two models reach, in GB/s, and how far nodes, devices and repetitions
// lie apart (standard deviations in thousandths).
constexpr double kH100Triad = 2950, kMi300xTriad = 4400;
constexpr double kOfNode = 0.006, kOfDevice = 0.004, kOfSample = 0.008;

double Noise(std::mt19937_64& random, double deviation) {
  return std::clamp(std::normal_distribution<double>(0, deviation)(random), -3 * deviation,
                    3 * deviation);
}

void Fill(api::Distribution& spread, std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  spread.set_samples(static_cast<int>(samples.size()));
  spread.set_min(samples.front());
  spread.set_p5(samples[samples.size() / 20]);
  spread.set_median(samples[samples.size() / 2]);
  spread.set_max(samples.back());
}

// Gives every device of the run a memory rate, unless the program measured one itself.
void AddModelRates(api::ValidationRun& run, double mean, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::set<std::string> devices;
  for (const api::Verdict& verdict : run.verdicts()) {
    if (verdict.check() == "hbm-triad") return;
    devices.insert(verdict.device());
  }
  const double of_node = mean * (1 + Noise(random, kOfNode));
  for (const std::string& device : devices) {
    const double of_device = of_node * (1 + Noise(random, kOfDevice));
    api::Verdict& rate = *run.add_verdicts();
    rate.set_check("hbm-triad");
    rate.set_device(device);
    rate.set_verdict("NoProfile");
    rate.set_unit("GB/s");
    std::vector<double> samples;
    for (int i = 0; i < kSamples; ++i) {
      samples.push_back(of_device * (1 + Noise(random, kOfSample)));
    }
    Fill(*rate.mutable_distribution(), std::move(samples));
  }
}

double MeanOf(const std::string& machine) {
  return machine == "mi300x" ? kMi300xTriad : kH100Triad;
}

Result<SimNode> MakeNode(const Campaign& campaign, const std::string& machine,
                         const std::string& name, std::uint64_t seed) {
  NodeSettings settings;
  settings.probe_program = campaign.probe_program;
  settings.nvml = campaign.nvml;
  settings.table = &campaign.table;
  settings.fleet = &campaign.fleet;
  settings.policy.by_device = true;
  settings.checks = {"compute-checksum", "memory-pattern"};
  settings.policy.required_checks = settings.checks;
  auto node = SimNode::Make(DescriptionOf(machine), campaign.folder + "/" + name, name,
                            static_cast<std::int64_t>(seed), std::move(settings));
  if (node) {
    node->Tamper([mean = MeanOf(machine), seed](api::ValidationRun& run) {
      AddModelRates(run, mean, seed);
    });
  }
  return node;
}

// Every check of L1 that measures a rate; those of matrix products, which compute one each, where
// `matrix_too`.
void AddRateChecks(SimNode& node, bool matrix_too) {
  for (const kernels::Check& check : kernels::AllChecks()) {
    const std::string key(check.key);
    if (check.level > 1 || !core::validation::FindRateCheck(key)) continue;
    if (key.starts_with("gemm-") && !matrix_too) continue;
    node.settings().checks.push_back(key);
  }
}

std::string State(const SimNode& node) {
  const admission::Decision& decision = node.decision();
  return std::string(admission::PhaseName(decision.phase)) + "/" + decision.reason + ": " +
         decision.message;
}

// Sound devices that are held to be failed, and devices in trouble that are open.
void Look(const SimNode& node, const std::set<std::string>& troubled, bool may_fail,
          Outcome& outcome) {
  for (const std::string& id : node.Failed()) {
    if (may_fail && troubled.contains(id)) continue;
    outcome.false_quarantine = true;
    outcome.note = id + " is quarantined; " + State(node);
  }
  for (const std::string& id : node.Open()) {
    if (!troubled.contains(id)) continue;
    outcome.false_admission = true;
    outcome.note = id + " is open; " + State(node);
  }
}

bool AllFailed(const SimNode& node, const std::set<std::string>& troubled) {
  const auto failed = node.Failed();
  return std::any_of(troubled.begin(), troubled.end(),
                     [&](const std::string& id) { return failed.contains(id); });
}

Outcome Bad(std::string note) {
  Outcome outcome;
  outcome.note = std::move(note);
  return outcome;
}

Outcome JudgeSound(const SimNode& node, Outcome outcome) {
  if (!node.Failed().empty() || node.Open().size() != node.DeviceCount()) {
    outcome.false_quarantine = true;
    outcome.note = State(node);
  }
  outcome.ok = !outcome.false_quarantine;
  return outcome;
}

// After the fault was put in: what the first look says, and what comes of the runs that follow.
Outcome Observe(SimNode& node, const FaultClass& fault, std::set<std::string> troubled) {
  Outcome outcome;
  const int runs = node.runs();
  node.Look();
  if (fault.truth == Truth::kSound) outcome = JudgeSound(node, outcome);
  const bool at_once = fault.truth == Truth::kProveAgain || fault.truth == Truth::kShut;
  if (at_once) Look(node, troubled, false, outcome);
  node.Settle();
  if (fault.truth == Truth::kSound) return JudgeSound(node, outcome);
  // A device that has passed since is no longer in trouble.
  const bool proven = fault.truth == Truth::kProveAgain && node.runs() > runs;
  Look(node, proven ? std::set<std::string>() : troubled, fault.truth == Truth::kFail, outcome);
  outcome.ok = !outcome.false_quarantine && !outcome.false_admission;
  if (fault.truth == Truth::kFail && outcome.ok && !AllFailed(node, troubled)) {
    outcome.ok = false;
    outcome.inconclusive = true;
    outcome.note = "nothing is quarantined; " + State(node);
  }
  if (fault.truth == Truth::kProveAgain && fault.whole_node && outcome.ok &&
      node.decision().phase != admission::Phase::kAdmitted) {
    outcome.ok = false;
    outcome.inconclusive = true;
    outcome.note = "no way back; " + State(node);
  }
  return outcome;
}

}  // namespace

Outcome RunFault(const Campaign& campaign, const FaultClass& fault, std::uint64_t seed) {
  std::mt19937_64 random(seed * 7919 + std::hash<std::string>()(fault.name) % 1000);
  std::string name =
      "c" + std::to_string(std::hash<std::string>()(fault.name)) + "-s" + std::to_string(seed);
  auto node = MakeNode(campaign, fault.machine, name, seed);
  if (!node) return Bad(node.error().message);
  Case c{*node, random, 0};
  c.target = c.Below(node->DeviceCount());
  std::set<std::string> troubled;
  for (std::size_t i = 0; i < node->DeviceCount(); ++i) {
    if (fault.whole_node || i == c.target) troubled.insert(node->DeviceId(i));
  }
  if (fault.prepare) fault.prepare(*node);
  if (fault.later) {
    node->Look();
    node->Settle();
    const Outcome before = JudgeSound(*node, {});
    if (!before.ok) return before;
  }
  if (const Status injected = fault.inject(c); !injected) {
    return Bad("the fault could not be put in: " + injected.error().message);
  }
  Outcome outcome = Observe(*node, fault, std::move(troubled));
  std::filesystem::remove_all(node->root());
  return outcome;
}

Outcome RunHealthy(const Campaign& campaign, std::uint64_t seed) {
  auto node = MakeNode(campaign, seed % 2 == 0 ? "h100" : "mi300x", "h" + std::to_string(seed),
                       seed + 100'000);
  if (!node) return Bad(node.error().message);
  node->settings().policy.quarantine_degraded = true;
  // What measures a rate takes part each time, the costly numerics now and then.
  if (seed % 100 == 0) {
    node->settings().checks.clear();
  } else {
    AddRateChecks(*node, false);
  }
  node->Look();
  node->Settle();
  Outcome outcome = JudgeSound(*node, {});
  for (const auto& judged : node->judged()) {
    if (judged.verdict != core::validation::Verdict::kInconclusive) continue;
    outcome.ok = false;
    outcome.inconclusive = true;
    outcome.note = judged.check + " on " + judged.device + ": " + judged.evidence;
  }
  if (node->runs() != 1 && outcome.ok) {
    outcome.ok = false;
    outcome.note = std::to_string(node->runs()) + " runs where one is enough";
  }
  std::filesystem::remove_all(node->root());
  return outcome;
}

core::validation::FleetMedians FleetOf(const Campaign& campaign) {
  constexpr int kNodes = 3;
  std::vector<core::validation::NodeRate> rates;
  for (const std::string machine : {"h100", "mi300x"}) {
    for (int i = 0; i < kNodes; ++i) {
      const std::string name = machine + "-fleet-" + std::to_string(i);
      auto node = MakeNode(campaign, machine, name, 900'000 + static_cast<std::uint64_t>(i));
      if (!node) continue;
      AddRateChecks(*node, true);
      node->Look();
      node->Settle();
      for (const auto& summary : node->Rates()) {
        rates.push_back({summary.key, name, summary.median, summary.devices});
      }
      std::filesystem::remove_all(node->root());
    }
  }
  return core::validation::MediansOf(rates);
}

}  // namespace bimetal::truth
