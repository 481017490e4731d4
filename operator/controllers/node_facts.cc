#include "operator/controllers/node_facts.h"

#include <algorithm>
#include <array>

#include "core/admission/expect.h"
#include "operator/controllers/conditions.h"
#include "operator/state/store.h"

namespace bimetal::op {
namespace {

namespace validation = core::validation;
using core::admission::DeviceHealth;

constexpr int kMostRows = 64;
// A deep run takes up to ten minutes.
constexpr Millis kDeepRun = Minutes(12);

DeviceHealth HealthOf(api::Health health) {
  switch (health) {
    case api::HEALTHY:
      return DeviceHealth::kHealthy;
    case api::UNHEALTHY:
      return DeviceHealth::kUnhealthy;
    default:
      return DeviceHealth::kUnknown;
  }
}

core::admission::ReportedDevice DeviceOf(const api::Device& device) {
  core::admission::ReportedDevice out;
  out.id = DeviceId{device.id()};
  out.health = HealthOf(device.health());
  if (device.has_in_use()) out.in_use = device.in_use();
  out.partition = device.partition();
  out.firmware = {device.firmware().begin(), device.firmware().end()};
  for (const auto& link : device.links()) out.links_up += link.active();
  out.unread = {device.unread().begin(), device.unread().end()};
  return out;
}

core::admission::Verdict VerdictOf(validation::Verdict verdict) {
  return core::admission::ParseVerdict(validation::VerdictName(verdict))
      .value_or(core::admission::Verdict::kInconclusive);
}

// What a person must see first.
int RankOf(const api::VerdictStatus& verdict) {
  constexpr std::array<std::string_view, 4> kWorstFirst = {"Fail", "Inconclusive", "Degraded",
                                                           "NoProfile"};
  const auto it = std::find(kWorstFirst.begin(), kWorstFirst.end(), verdict.verdict());
  return static_cast<int>(it - kWorstFirst.begin());
}

void KeepVerdicts(const std::vector<validation::Judged>& judged, JudgedRun& out) {
  for (const auto& verdict : judged) {
    if (verdict.verdict == validation::Verdict::kPass) continue;
    api::VerdictStatus row;
    row.set_check(verdict.check);
    row.set_device(verdict.device);
    row.set_verdict(std::string(validation::VerdictName(verdict.verdict)));
    row.set_evidence(Cut(verdict.evidence, 1024));
    out.verdicts.push_back(std::move(row));
  }
  std::stable_sort(out.verdicts.begin(), out.verdicts.end(),
                   [](const auto& a, const auto& b) { return RankOf(a) < RankOf(b); });
  if (out.verdicts.size() > kMostRows) out.verdicts.resize(kMostRows);
}

void KeepRates(const std::vector<validation::RateSummary>& rates, const std::string& node,
               JudgedRun& out) {
  for (const auto& rate : rates) {
    out.node_rates.push_back({rate.key, node, rate.median, rate.devices});
    if (out.rates.size() == kMostRows) continue;
    api::RateStatus row;
    row.set_check(rate.key.check);
    row.set_unit(rate.unit);
    row.set_lowest(validation::FormatMilli(rate.lowest));
    row.set_median(validation::FormatMilli(rate.median));
    row.set_devices(rate.devices);
    row.set_floor(Cut(rate.floor, 256));
    out.rates.push_back(std::move(row));
  }
}

}  // namespace

core::admission::Report ReportOf(const api::ReportNodeRequest& request, core::Vendor vendor,
                                 const api::Stack& stack, TimePoint received) {
  core::admission::Report out;
  out.received = received;
  out.boot_id = request.boot_id();
  out.fingerprint = stack.fingerprint();
  out.driver_version = stack.driver_version();
  const std::string name(core::VendorName(vendor));
  for (const auto& device : request.inventory().devices()) {
    if (device.vendor() == name) out.devices.push_back(DeviceOf(device));
  }
  std::sort(out.devices.begin(), out.devices.end(),
            [](const auto& a, const auto& b) { return a.id < b.id; });
  for (const auto& finding : request.inventory().findings()) {
    if (!finding.vendor().empty() && finding.vendor() != name) continue;
    core::admission::Fault fault;
    fault.code = finding.code();
    fault.device = DeviceId{finding.device()};
    fault.effect = core::admission::ParseEffect(finding.effect());
    fault.event = finding.event();
    fault.evidence = finding.evidence();
    if (!finding.remedy().empty()) fault.evidence += "; " + finding.remedy();
    if (fault.effect != core::admission::Effect::kNone) out.faults.push_back(std::move(fault));
  }
  return out;
}

std::string LevelIn(const std::string& word) {
  const std::string level = word.substr(0, 2);
  const bool known = level == "L0" || level == "L1" || level == "L2";
  return known && (word.size() == 2 || word[2] == ' ') ? level : "";
}

core::admission::Policy PolicyOf(const core::Pool* pool, const api::ValidationProfileSpec* profile,
                                 Millis stale_after, const std::string& word) {
  core::admission::Policy policy;
  policy.stale_after = stale_after;
  if (pool == nullptr) return policy;
  policy.enforce = pool->enforce;
  policy.by_device = pool->bimetal_plugin;
  policy.path_check = profile == nullptr || profile->path_check() != "Skip";
  if (LevelIn(word) == "L2") policy.run_timeout = kDeepRun;
  if (profile == nullptr) return policy;
  policy.level = profile->level();
  if (const auto expires = ParseDuration(profile->expires_after()); expires) {
    policy.expires_after = *expires;
  }
  if (const auto timeout = ParseDuration(profile->timeout()); timeout && timeout->v > 0) {
    policy.run_timeout = LevelIn(word) == "L2" ? std::max(kDeepRun, *timeout) : *timeout;
  }
  policy.retries = profile->retries();
  policy.required_checks = {profile->checks().begin(), profile->checks().end()};
  policy.quarantine_node = profile->quarantine() == "Node";
  policy.quarantine_degraded = profile->degraded() == "Quarantine";
  policy.expect = core::admission::ExpectFromApi(profile->expect());
  return policy;
}

core::admission::BreakerLimits LimitsOf(const api::ValidationProfileSpec* profile) {
  core::admission::BreakerLimits limits;
  if (profile == nullptr) return limits;
  const auto& breakers = profile->breakers();
  if (breakers.max_runs() > 0) limits.max_runs = breakers.max_runs();
  if (breakers.max_shut_percent() > 0) limits.max_shut_percent = breakers.max_shut_percent();
  if (breakers.max_same_failures() > 0) limits.max_same_failures = breakers.max_same_failures();
  return limits;
}

std::vector<validation::DeviceFacts> DeviceFactsOf(const api::Inventory& inventory,
                                                   core::Vendor vendor) {
  std::vector<validation::DeviceFacts> out;
  for (const auto& device : inventory.devices()) {
    if (device.vendor() == core::VendorName(vendor)) {
      out.push_back(validation::FactsFromApi(device));
    }
  }
  return out;
}

JudgedRun JudgeRun(const api::ValidationRun& run, const std::string& node,
                   const std::vector<validation::DeviceFacts>& devices, bool simulated_node,
                   const validation::Yardstick& yardstick) {
  JudgedRun out;
  out.run.id = run.run();
  out.run.fingerprint = run.fingerprint();
  out.run.level = run.level();
  auto judged = validation::Judge(run, devices, yardstick);
  // The CPU stands in for a device only where the device is simulated.
  const bool wrong_backend = !simulated_node && (run.backend() == "host" || run.simulated());
  for (auto& verdict : judged) {
    if (wrong_backend) {
      verdict.verdict = validation::Verdict::kInconclusive;
      verdict.evidence = "the check ran on the host's CPU, not on the device";
      verdict.capability.clear();
      verdict.rate.reset();
    }
    core::admission::CheckVerdict v;
    v.check = verdict.check;
    v.device = DeviceId{verdict.device};
    v.verdict = VerdictOf(verdict.verdict);
    v.evidence = verdict.evidence;
    v.capability = verdict.capability;
    out.run.verdicts.push_back(std::move(v));
  }
  KeepVerdicts(judged, out);
  KeepRates(validation::Summarize(judged, devices, yardstick.driver), node, out);
  return out;
}

std::vector<validation::NodeRate> NodeRatesOf(const api::GPUNode& node,
                                              const api::VendorStatus& vendor) {
  std::vector<validation::NodeRate> out;
  const auto facts = validation::FactsFromApi(node.status(), vendor.vendor());
  if (!facts) return out;
  for (const auto& rate : vendor.rates()) {
    const auto median = validation::ParseMilli(rate.median());
    if (!median) continue;
    validation::FleetKey key = validation::KeyFor(*facts, rate.check());
    key.driver = vendor.driver_version();
    out.push_back({std::move(key), node.metadata().name(), *median, rate.devices()});
  }
  return out;
}

std::string RevalidateWord(const api::GPUNode* node) {
  if (node == nullptr) return "";
  std::string word = node->spec().revalidate();
  const auto& annotations = node->metadata().annotations();
  const auto it = annotations.find(kRevalidateAnnotation);
  if (it == annotations.end() || it->second.empty()) return word;
  return Cut((word.empty() ? "" : word + " | ") + it->second, 512);
}

}  // namespace bimetal::op
