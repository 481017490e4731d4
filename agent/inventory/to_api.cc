#include "agent/inventory/to_api.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

#include "agent/devices/device_fields.h"
#include "agent/devices/fingerprint.h"
#include "agent/inventory/clean_text.h"

namespace bimetal::agent {
namespace {

constexpr std::size_t kMaxField = 128;
constexpr std::size_t kMaxId = 253;
constexpr std::size_t kMaxSentence = 1024;
constexpr std::size_t kMaxWhy = 256;
constexpr std::size_t kMaxCpus = 1024;

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

// A number that fits the field; nothing where it is not known or makes no sense there.
std::optional<std::int32_t> Small(const Reading<std::int64_t>& reading) {
  if (!reading.known() || reading.value < 0 ||
      reading.value > std::numeric_limits<std::int32_t>::max()) {
    return std::nullopt;
  }
  return static_cast<std::int32_t>(reading.value);
}

void LinksToApi(const Device& device, api::Device& out) {
  if (const auto n = Small(device.link_generation)) out.set_link_generation(*n);
  if (const auto n = Small(device.link_generation_max)) out.set_link_generation_max(*n);
  if (const auto n = Small(device.link_width)) out.set_link_width(*n);
  if (const auto n = Small(device.link_width_max)) out.set_link_width_max(*n);
  if (!device.links.known()) return;
  for (const DeviceLink& link : device.links.value) {
    if (out.links_size() >= kMaxReportedLinks) break;
    auto* added = out.add_links();
    added->set_kind(CleanToken(link.kind, kMaxField));
    added->set_peer(CleanToken(link.peer, kMaxId));
    added->set_count(Small(Reading<std::int64_t>::Of(link.count)).value_or(0));
    added->set_active(Small(Reading<std::int64_t>::Of(link.active)).value_or(0));
  }
}

// Every field that is not known, or not any more, with why; health has a place of its own.
void UnreadToApi(const Device& device, api::Device& out) {
  VisitReadings(
      [&](std::string_view name, const auto& reading) {
        if (name == "healthy" || (reading.known() && !reading.why.starts_with(kLastRead))) return;
        // A whole GPU has no parent: nothing is missing.
        if (name == "parent" && reading.state == Known::kUnknown) return;
        if (static_cast<int>(out.unread_size()) >= kMaxReportedUnread) return;
        const char* state = reading.state == Known::kUnknown ? "unknown: " : "error: ";
        (*out.mutable_unread())[std::string(name)] = state + CleanText(reading.why, kMaxWhy);
      },
      device);
}

// The lines that fit as a whole.
std::string LinesUpTo(const std::string& text, std::size_t limit) {
  std::string out;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = text.find('\n', at);
    const std::string line = CleanText(text.substr(at, end - at), limit);
    if (out.size() + line.size() + 1 > limit) break;
    out += line + "\n";
    if (end == std::string::npos) break;
    at = end + 1;
  }
  return out;
}

api::Device DeviceToApi(const Device& device) {
  api::Device out;
  out.set_id(CleanToken(device.id.value, kMaxId));
  out.set_vendor(std::string(VendorName(device.vendor)));
  if (device.index >= 0) out.set_index(device.index);
  out.set_model(Field(device.model));
  out.set_architecture(TokenField(device.architecture));
  if (device.memory_bytes.known() && device.memory_bytes.value >= 0) {
    out.set_memory_bytes(device.memory_bytes.value);
  }
  if (const auto n = Small(device.compute_units)) out.set_compute_units(*n);
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
  if (const auto n = Small(device.numa_node)) out.set_numa_node(*n);
  out.set_pci_id(TokenField(device.pci_id));
  out.set_cpus(TokenField(device.cpus, kMaxCpus));
  LinksToApi(device, out);
  out.set_ecc(TokenField(device.ecc));
  UnreadToApi(device, out);
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
    stack->set_driver_flavor(Fact(inventory, key, "flavor"));
    stack->set_toolkit_version(Fact(inventory, key, "toolkit"));
    stack->set_fingerprint_text(LinesUpTo(FingerprintText(inventory, key), kMaxFingerprintText));
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
