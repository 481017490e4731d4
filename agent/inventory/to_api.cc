#include "agent/inventory/to_api.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include "agent/devices/fingerprint.h"
#include "agent/inventory/clean_text.h"

namespace bimetal::agent {
namespace {

constexpr std::size_t kMaxField = 128;
constexpr std::size_t kMaxId = 253;
constexpr std::size_t kMaxSentence = 1024;

std::string Field(const Reading<std::string>& reading) {
  return reading.known() ? CleanText(reading.value, kMaxField) : std::string();
}

std::string TokenField(const Reading<std::string>& reading, std::size_t limit = kMaxField) {
  return reading.known() ? CleanToken(reading.value, limit) : std::string();
}

api::Health HealthOf(const Reading<bool>& healthy) {
  if (!healthy.known()) return api::HEALTH_UNKNOWN;
  return healthy.value ? api::HEALTHY : api::UNHEALTHY;
}

api::Device DeviceToApi(const Device& device) {
  constexpr auto kMaxInt32 = std::numeric_limits<std::int32_t>::max();
  api::Device out;
  out.set_id(CleanToken(device.id.value, kMaxId));
  out.set_vendor(std::string(VendorName(device.vendor)));
  if (device.index >= 0) out.set_index(device.index);
  out.set_model(Field(device.model));
  out.set_architecture(TokenField(device.architecture));
  if (device.memory_bytes.known() && device.memory_bytes.value >= 0) {
    out.set_memory_bytes(device.memory_bytes.value);
  }
  if (device.compute_units.known() && device.compute_units.value >= 0 &&
      device.compute_units.value <= kMaxInt32) {
    out.set_compute_units(static_cast<std::int32_t>(device.compute_units.value));
  }
  out.set_pci_address(TokenField(device.pci_address));
  out.set_serial(TokenField(device.serial));
  out.set_partition(Field(device.partition));
  out.set_parent_id(TokenField(device.parent, kMaxId));
  if (device.firmware.known()) {
    for (const auto& [name, version] : device.firmware.value) {
      if (out.firmware_size() >= kMaxReportedFirmware) break;
      const std::string key = CleanToken(name, kMaxField);
      if (!key.empty()) (*out.mutable_firmware())[key] = CleanText(version, kMaxField);
    }
  }
  out.set_health(HealthOf(device.healthy));
  out.set_health_reason(CleanText(device.healthy.why, kMaxSentence));
  if (device.numa_node.known() && device.numa_node.value >= 0 &&
      device.numa_node.value <= kMaxInt32) {
    out.set_numa_node(static_cast<std::int32_t>(device.numa_node.value));
  }
  return out;
}

std::string Fact(const Inventory& inventory, Vendor vendor, const std::string& name) {
  const auto facts = inventory.facts.find(vendor);
  if (facts == inventory.facts.end()) return {};
  const auto fact = facts->second.find(name);
  return fact == facts->second.end() ? std::string() : Field(fact->second);
}

std::string_view SeverityText(Severity severity) {
  switch (severity) {
    case Severity::kInfo:
      return "Info";
    case Severity::kWarning:
      return "Warning";
    case Severity::kError:
      return "Critical";
  }
  return "Critical";
}

}  // namespace

std::map<std::string, std::string> FingerprintsOf(const Inventory& inventory) {
  std::map<std::string, std::string> out;
  for (const Vendor vendor : {Vendor::kAmd, Vendor::kNvidia}) {
    const std::string fingerprint = Fingerprint(inventory, vendor);
    if (!fingerprint.empty()) out[std::string(VendorName(vendor))] = fingerprint;
  }
  return out;
}

api::Inventory ToApi(const Inventory& inventory) {
  api::Inventory out;
  for (const auto& device : inventory.devices) {
    if (out.devices_size() >= kMaxReportedDevices) break;
    *out.add_devices() = DeviceToApi(device);
  }
  if (inventory.devices.size() > kMaxReportedDevices) {
    auto* finding = out.add_findings();
    finding->set_code("TooManyDevices");
    finding->set_severity("Critical");
    finding->set_evidence(std::to_string(inventory.devices.size()) + " devices, the first " +
                          std::to_string(kMaxReportedDevices) + " are reported");
    finding->set_remedy("use a coarser partition mode");
  }
  for (const auto& [vendor, fingerprint] : FingerprintsOf(inventory)) {
    const Vendor key = vendor == VendorName(Vendor::kAmd) ? Vendor::kAmd : Vendor::kNvidia;
    auto* stack = out.add_stacks();
    stack->set_vendor(vendor);
    stack->set_driver_version(Fact(inventory, key, "driver"));
    stack->set_runtime_version(Fact(inventory, key, "runtime"));
    stack->set_fingerprint(fingerprint);
  }
  out.set_kernel_version(Field(inventory.kernel));
  out.set_simulated(inventory.simulated);
  for (const auto& finding : inventory.findings) {
    if (out.findings_size() >= kMaxReportedFindings) break;
    auto* added = out.add_findings();
    added->set_code(CleanToken(finding.code, kMaxField));
    added->set_severity(std::string(SeverityText(finding.severity)));
    added->set_device(CleanToken(finding.device, kMaxId));
    added->set_evidence(CleanText(finding.evidence, kMaxSentence));
    added->set_remedy(CleanText(finding.remedy, kMaxSentence));
    added->set_effect(std::string(EffectName(finding.effect)));
    added->set_event(CleanToken(finding.event, kMaxId));
    added->set_vendor(CleanToken(finding.vendor, kMaxField));
    added->set_documentation(CleanText(finding.documentation, kMaxSentence));
  }
  return out;
}

std::vector<PluginDevice> OfferedDevices(const Inventory& inventory, Vendor vendor,
                                         const api::VendorOrder* order) {
  const std::string fingerprint = Fingerprint(inventory, vendor);
  const bool proven =
      order != nullptr && !fingerprint.empty() && order->open_fingerprint() == fingerprint;
  std::vector<PluginDevice> out;
  for (const auto& device : inventory.devices) {
    if (device.vendor != vendor) continue;
    PluginDevice offered;
    offered.id = device.id.value;
    const bool healthy = device.healthy.known() && device.healthy.value;
    const bool passed =
        proven && std::find(order->open_devices().begin(), order->open_devices().end(),
                            offered.id) != order->open_devices().end();
    offered.open = healthy && (passed || (order != nullptr && order->observe()));
    if (device.numa_node.known() && device.numa_node.value >= 0) {
      offered.numa_node = device.numa_node.value;
    }
    offered.nodes = device.device_nodes;
    out.push_back(std::move(offered));
  }
  return out;
}

}  // namespace bimetal::agent
