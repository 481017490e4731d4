#include "cli/validate_plan.h"

#include <algorithm>
#include <map>

#include "cli/table.h"
#include "core/admission/expect.h"
#include "core/validation/floors.h"

namespace bimetal::cli {
namespace {

namespace admission = core::admission;
namespace validation = core::validation;

// What the status shows of the devices, as the agent would report it.
admission::Report ReportOf(const api::GPUNodeStatus& status, const api::VendorStatus& vendor) {
  admission::Report out;
  out.driver_version = vendor.driver_version();
  for (const auto& device : status.devices()) {
    if (device.vendor() != vendor.vendor()) continue;
    admission::ReportedDevice d;
    d.id = DeviceId{device.id()};
    d.partition = device.partition();
    d.firmware = {device.firmware().begin(), device.firmware().end()};
    d.unread = {device.unread().begin(), device.unread().end()};
    for (const auto& link : device.links()) d.links_up += link.active();
    out.devices.push_back(std::move(d));
  }
  return out;
}

void CompareExpectations(const admission::Expect& expect, const api::GPUNodeStatus& status,
                         const api::VendorStatus& vendor, Change& change) {
  const auto mismatch = admission::Compare(expect, ReportOf(status, vendor));
  for (const auto& [id, text] : mismatch.failed) {
    change.quarantine = true;
    const std::string line = "inventory: " + text;
    if (std::find(change.why.begin(), change.why.end(), line) == change.why.end()) {
      change.why.push_back(line);
    }
  }
  if (!mismatch.unknown.empty()) {
    change.why.push_back("would stay shut: " + mismatch.unknown.begin()->second);
  }
}

void CompareFloors(const std::vector<validation::FloorOverride>& overrides,
                   const api::GPUNodeStatus& status, const api::VendorStatus& vendor,
                   Change& change) {
  static const validation::FloorTable kTable = validation::FloorTable::BuiltIn();
  const auto facts = validation::FactsFromApi(status, vendor.vendor());
  if (!facts) return;
  for (const auto& rate : vendor.rates()) {
    const auto check = validation::FindRateCheck(rate.check());
    const auto lowest = validation::ParseMilli(rate.lowest());
    const auto floor = validation::FindFloor(kTable, overrides, *facts, rate.check());
    if (!check || !lowest || !floor || !floor->binding) continue;
    const bool higher = check->better == validation::Better::kHigher;
    if (higher ? *lowest >= floor->value : *lowest <= floor->value) continue;
    change.rerun = true;
    change.quarantine = true;
    change.why.push_back(rate.check() + ": " + rate.lowest() + " " + rate.unit() +
                         (higher ? " is below " : " is above ") + "the floor of " +
                         validation::FormatMilli(floor->value) + " " + rate.unit() + " (" +
                         floor->source + "), found at its next run");
  }
}

void ComparePass(const api::ValidationProfileSpec& spec, const api::VendorStatus& vendor,
                 TimePoint now, Change& change) {
  if (!vendor.level().empty() && vendor.level() < spec.level()) {
    change.rerun = true;
    change.why.push_back("passed at level " + vendor.level() + ", the profile asks for " +
                         spec.level());
  }
  const auto expires = ParseDuration(spec.expires_after());
  const auto passed = ParseTime(vendor.validated_time());
  if (expires && passed && now >= *passed + *expires) {
    change.rerun = true;
    change.why.push_back("its pass of " + vendor.validated_time() + " has expired after " +
                         FormatDuration(*expires));
  }
  if (spec.quarantine() == "Node" && vendor.reason() == "DeviceQuarantined") {
    change.quarantine = true;
    change.why.push_back("one failed device would shut all of the node");
  }
}

}  // namespace

Result<Plan> PlanProfile(const api::ValidationProfile& profile,
                         const std::vector<api::GPUPool>& pools,
                         const std::vector<api::GPUNode>& nodes, TimePoint now) {
  BIMETAL_TRY_ASSIGN(const auto overrides, validation::OverridesFromApi(profile.spec()));
  if (!profile.spec().expires_after().empty()) {
    BIMETAL_TRY(ParseDuration(profile.spec().expires_after()));
  }
  const admission::Expect expect = admission::ExpectFromApi(profile.spec().expect());
  Plan plan;
  std::map<std::string, std::string> vendor_of;  // pool -> vendor
  for (const auto& pool : pools) {
    if (pool.spec().validation_profile_name() != profile.metadata().name()) continue;
    vendor_of[pool.metadata().name()] = pool.spec().vendor();
    plan.pools.push_back(pool.metadata().name());
  }
  std::sort(plan.pools.begin(), plan.pools.end());
  for (const auto& node : nodes) {
    for (const auto& pool : node.status().pools()) {
      for (const auto& vendor : node.status().vendors()) {
        const auto it = vendor_of.find(pool);
        if (it == vendor_of.end() || it->second != vendor.vendor()) continue;
        ++plan.nodes;
        Change change{
            node.metadata().name(), vendor.vendor(), pool, vendor.phase(), false, false, {}};
        CompareExpectations(expect, node.status(), vendor, change);
        CompareFloors(overrides, node.status(), vendor, change);
        ComparePass(profile.spec(), vendor, now, change);
        if (!change.why.empty()) plan.changes.push_back(std::move(change));
      }
    }
  }
  std::sort(plan.changes.begin(), plan.changes.end(), [](const Change& a, const Change& b) {
    return std::tie(a.node, a.vendor) < std::tie(b.node, b.vendor);
  });
  return plan;
}

Answer RenderPlan(const api::ValidationProfile& profile, const Plan& plan) {
  if (plan.pools.empty()) {
    return {"", "no GPUPool uses the profile " + profile.metadata().name() +
                    "; set spec.validationProfileName of one"};
  }
  Table table{{"NODE", "VENDOR", "POOL", "NOW", "RUN AGAIN", "WOULD BE"}, {}};
  for (const auto& change : plan.changes) {
    std::string note;
    for (const auto& why : change.why) note += (note.empty() ? "" : "; ") + why;
    table.rows.push_back(
        {{change.node, change.vendor, change.pool, change.now, change.rerun ? "yes" : "no",
          change.quarantine ? "Quarantined" : change.now},
         note});
  }
  const std::string sum = std::to_string(plan.changes.size()) + " of " +
                          std::to_string(plan.nodes) + " nodes would change; nothing was changed";
  return {plan.changes.empty() ? "" : RenderTable(table), sum};
}

}  // namespace bimetal::cli
