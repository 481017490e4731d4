#include "operator/controllers/node_status.h"

#include <algorithm>
#include <set>

#include <google/protobuf/util/message_differencer.h>

#include "kube/codec/codec.h"
#include "kube/codec/json.h"
#include "operator/controllers/conditions.h"
#include "operator/controllers/node_memory.h"

namespace bimetal::op {
namespace {

using core::admission::Phase;

// The worst first: what a person must look at.
constexpr std::array<Phase, 6> kWorstFirst = {Phase::kQuarantined,  Phase::kLost,
                                              Phase::kInconclusive, Phase::kValidating,
                                              Phase::kDiscovered,   Phase::kAdmitted};

std::string Join(const std::set<std::string>& parts) {
  std::string out;
  for (const auto& part : parts) out += (out.empty() || part.empty() ? "" : ",") + part;
  return out;
}

void FillVendor(const VendorView& view, const api::GPUNodeStatus& before, api::VendorStatus* out) {
  const std::string name(core::VendorName(view.vendor));
  if (view.decision == nullptr) {
    for (const auto& old : before.vendors()) {
      if (old.vendor() == name) *out = old;
    }
    out->set_vendor(name);
    return;
  }
  StoreMemory(*view.memory, out);
  out->set_vendor(name);
  out->set_phase(std::string(core::admission::PhaseName(view.decision->phase)));
  out->set_reason(view.decision->reason);
  out->set_message(Cut(view.remark.empty() ? view.decision->message : view.remark, 4096));
  out->set_driver_version(view.stack->driver_version());
  out->set_fingerprint(view.stack->fingerprint());
  out->set_run(view.run);
  out->set_runtime_version(view.stack->runtime_version());
  out->set_toolkit_version(view.stack->toolkit_version());
  *out->mutable_verdicts() = {view.verdicts->begin(), view.verdicts->end()};
  *out->mutable_rates() = {view.rates->begin(), view.rates->end()};
}

std::string_view HealthName(api::Health health) {
  switch (health) {
    case api::HEALTHY:
      return "Healthy";
    case api::UNHEALTHY:
      return "Unhealthy";
    default:
      return "Unknown";
  }
}

// "gen4 x16 of gen5 x16"; what is not known is "?". Empty where nothing is.
std::string PcieLink(const api::Device& device) {
  const auto number = [](bool known, int n) { return known ? std::to_string(n) : "?"; };
  if (!device.has_link_generation() && !device.has_link_width()) return "";
  return "gen" + number(device.has_link_generation(), device.link_generation()) + " x" +
         number(device.has_link_width(), device.link_width()) + " of gen" +
         number(device.has_link_generation_max(), device.link_generation_max()) + " x" +
         number(device.has_link_width_max(), device.link_width_max());
}

// What is known of it beside its identity; absent where it is not.
void FillDetails(const api::Device& device, api::DeviceStatus* out) {
  out->set_pci_id(device.pci_id());
  if (device.has_compute_units()) out->set_compute_units(device.compute_units());
  if (device.has_numa_node()) out->set_numa_node(device.numa_node());
  out->set_cpus(Cut(device.cpus(), 1024));
  out->set_link(PcieLink(device));
  for (const auto& link : device.links()) {
    if (out->links_size() == 64) break;
    auto* l = out->add_links();
    l->set_kind(link.kind());
    l->set_peer(link.peer());
    l->set_count(link.count());
    l->set_active(link.active());
  }
  out->set_ecc(device.ecc());
  out->set_parent(device.parent_id());
  if (device.has_in_use()) out->set_in_use(device.in_use());
  for (const auto& [field, why] : std::map(device.unread().begin(), device.unread().end())) {
    if (out->unread_size() == 64) break;
    (*out->mutable_unread())[field] = Cut(why, 256);
  }
}

void FillFinding(const api::Finding& finding, api::FindingStatus* out) {
  out->set_code(finding.code());
  out->set_severity(finding.severity());
  out->set_device(finding.device());
  out->set_evidence(Cut(finding.evidence(), 1024));
  out->set_remedy(Cut(finding.remedy(), 1024));
  out->set_effect(finding.effect());
  out->set_documentation(Cut(finding.documentation(), 1024));
  out->set_vendor(finding.vendor());
}

void FillDevice(const api::Device& device, const std::vector<VendorView>& vendors,
                api::DeviceStatus* out) {
  out->set_id(device.id());
  out->set_vendor(device.vendor());
  out->set_index(device.index());
  out->set_model(device.model());
  out->set_architecture(device.architecture());
  if (device.has_memory_bytes()) out->set_memory(std::to_string(device.memory_bytes()));
  out->set_pci_address(device.pci_address());
  out->set_health(std::string(HealthName(device.health())));
  out->set_health_reason(Cut(device.health_reason(), 1024));
  *out->mutable_firmware() = device.firmware();
  out->set_partition(device.partition());
  out->set_serial(device.serial());
  FillDetails(device, out);
  for (const auto& view : vendors) {
    if (view.decision == nullptr || core::VendorName(view.vendor) != device.vendor()) continue;
    out->set_open(std::binary_search(view.decision->open.begin(), view.decision->open.end(),
                                     DeviceId{device.id()}));
  }
}

void FillSummary(const std::vector<VendorView>& vendors, api::GPUNodeStatus* status) {
  std::set<std::string> names, models, drivers, fingerprints;
  for (const auto& vendor : status->vendors()) {
    names.insert(vendor.vendor());
    if (!vendor.driver_version().empty()) drivers.insert(vendor.driver_version());
    if (!vendor.fingerprint().empty()) fingerprints.insert(vendor.fingerprint());
  }
  for (const auto& device : status->devices()) models.insert(device.model());
  status->set_vendor(Join(names));
  status->set_model(Cut(Join(models), 1024));
  status->set_driver_version(Join(drivers));
  status->set_fingerprint(Join(fingerprints));
  status->set_device_count(status->devices_size());
  status->set_validated_count(static_cast<int>(std::count_if(
      status->devices().begin(), status->devices().end(), [](const auto& d) { return d.open(); })));
  for (const auto phase : kWorstFirst) {
    const auto it =
        std::find_if(status->vendors().begin(), status->vendors().end(),
                     [&](const auto& v) { return v.phase() == core::admission::PhaseName(phase); });
    if (it == status->vendors().end()) continue;
    status->set_phase(it->phase());
    status->set_reason(it->reason());
    status->set_message(it->message());
    break;
  }
  std::set<std::string> pools;
  for (const auto& view : vendors) {
    if (!view.pool.empty()) pools.insert(view.pool);
  }
  for (const auto& pool : pools) status->add_pools(pool);
}

}  // namespace

api::GPUNodeStatus MakeNodeStatus(const api::GPUNodeStatus& before, const api::Inventory& inventory,
                                  const std::string& boot_id, std::optional<TimePoint> last_report,
                                  const std::vector<VendorView>& vendors, std::int64_t generation,
                                  TimePoint now) {
  api::GPUNodeStatus out;
  out.set_observed_generation(generation);
  for (const auto& view : vendors) FillVendor(view, before, out.add_vendors());
  if (last_report) {
    for (const auto& device : inventory.devices()) FillDevice(device, vendors, out.add_devices());
    std::sort(out.mutable_devices()->begin(), out.mutable_devices()->end(),
              [](const auto& a, const auto& b) {
                return std::pair(a.vendor(), a.id()) < std::pair(b.vendor(), b.id());
              });
    int grave = 0;
    for (const auto& finding : inventory.findings()) {
      grave += finding.severity() == "Info" ? 0 : 1;
      if (out.findings_size() < 64) FillFinding(finding, out.add_findings());
    }
    out.set_finding_count(grave);
    out.set_simulated(inventory.simulated());
    out.set_kernel_version(inventory.kernel_version());
  } else {
    *out.mutable_devices() = before.devices();
    *out.mutable_findings() = before.findings();
    if (before.has_finding_count()) out.set_finding_count(before.finding_count());
    // No report since our start: nothing of it is open.
    for (auto& device : *out.mutable_devices()) device.set_open(false);
    out.set_simulated(before.simulated());
    out.set_kernel_version(before.kernel_version());
  }
  out.set_boot_id(boot_id);
  FillSummary(vendors, &out);
  *out.mutable_conditions() = before.conditions();
  // A node with one device in quarantine may have others that take jobs.
  const bool open = out.validated_count() > 0 &&
                    (out.phase() == "Admitted" || out.reason() == "DeviceQuarantined");
  const std::string reason = out.reason().empty() ? "WaitingForReport" : out.reason();
  SetCondition(out.mutable_conditions(), "Ready", open ? "True" : "False", reason, out.message(),
               generation, now);
  SetCondition(out.mutable_conditions(), "Quarantined",
               out.phase() == "Quarantined" ? "True" : "False", reason,
               out.phase() == "Quarantined" ? out.message() : "", generation, now);
  return out;
}

bool SameNodeStatus(const api::GPUNodeStatus& a, const api::GPUNodeStatus& b) {
  api::GPUNodeStatus x = a, y = b;
  x.clear_last_report_time();
  y.clear_last_report_time();
  return google::protobuf::util::MessageDifferencer::Equals(x, y);
}

std::string NodePatch(const NodeRecord& node, bool shut,
                      const std::map<std::string, std::string>& labels) {
  const bool has = std::any_of(node.taints.begin(), node.taints.end(),
                               [](const auto& t) { return t.key() == core::kUnvalidatedTaint; });
  std::string label_part;
  for (const auto& [key, value] : labels) {
    const auto it = node.node.labels.find(key);
    if (it != node.node.labels.end() && it->second == value) continue;
    label_part +=
        (label_part.empty() ? "" : ",") + kube::JsonString(key) + ":" + kube::JsonString(value);
  }
  for (const auto& [key, value] : node.node.labels) {
    if (!key.starts_with(kCapabilityLabelPrefix) || labels.contains(key)) continue;
    label_part += (label_part.empty() ? "" : ",") + kube::JsonString(key) + ":null";
  }
  if (has == shut && label_part.empty()) return "";
  std::string out = R"({"metadata":{"resourceVersion":)" + kube::JsonString(node.resource_version);
  if (!label_part.empty()) out += R"(,"labels":{)" + label_part + "}";
  out += "}";
  if (has != shut) {
    std::string list;
    const auto add = [&](const api::Taint& taint) {
      list += (list.empty() ? "" : ",") + kube::ToJson(taint);
    };
    for (const auto& taint : node.taints) {
      if (taint.key() != core::kUnvalidatedTaint) add(taint);
    }
    if (shut) {
      api::Taint taint;
      taint.set_key(std::string(core::kUnvalidatedTaint));
      taint.set_effect("NoSchedule");
      add(taint);
    }
    out += R"(,"spec":{"taints":[)" + list + "]}";
  }
  return out + "}";
}

}  // namespace bimetal::op
