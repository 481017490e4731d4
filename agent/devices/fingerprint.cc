#include "agent/devices/fingerprint.h"

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "agent/devices/sha256.h"

namespace bimetal::agent {
namespace {

// A value on one line and without the separators of the text.
std::string Plain(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == '|' || c == '=') c = '_';
  }
  return text;
}

std::string Show(const Reading<std::string>& reading) {
  return reading.known() ? Plain(reading.value) : "?";
}
std::string Show(const Reading<std::int64_t>& reading) {
  return reading.known() ? std::to_string(reading.value) : "?";
}
std::string Show(const Reading<std::map<std::string, std::string>>& reading) {
  if (!reading.known()) return "?";
  std::string out;
  for (const auto& [name, version] : reading.value) {
    out += (out.empty() ? "" : ",") + Plain(name) + ":" + Plain(version);
  }
  return out;
}

// How many direct links of each kind there are, up or not.
std::string Show(const Reading<std::vector<DeviceLink>>& reading) {
  if (!reading.known()) return "?";
  std::map<std::string, std::int64_t> counts;
  for (const DeviceLink& link : reading.value) counts[link.kind] += link.count;
  std::string out;
  for (const auto& [kind, count] : counts) {
    out += (out.empty() ? "" : ",") + Plain(kind) + ":" + std::to_string(count);
  }
  return out.empty() ? "none" : out;
}

std::string DeviceLine(const Device& device) {
  return "model=" + Show(device.model) + "|pci=" + Show(device.pci_id) +
         "|architecture=" + Show(device.architecture) + "|firmware=" + Show(device.firmware) +
         "|partition=" + Show(device.partition) + "|ecc=" + Show(device.ecc) + "|link=gen" +
         Show(device.link_generation_max) + " x" + Show(device.link_width) + " of x" +
         Show(device.link_width_max) + "|links=" + Show(device.links);
}

std::string FactLine(const Inventory& inventory, Vendor vendor, const std::string& name) {
  Reading<std::string> fact;
  const auto facts = inventory.facts.find(vendor);
  if (facts != inventory.facts.end()) {
    const auto found = facts->second.find(name);
    if (found != facts->second.end()) fact = found->second;
  }
  return name + " " + Show(fact) + "\n";
}

}  // namespace

std::string FingerprintText(const Inventory& inventory, Vendor vendor) {
  std::map<std::string, int> sorts;
  std::set<std::string> gpus;
  for (const Device& device : inventory.devices) {
    if (device.vendor != vendor) continue;
    ++sorts[DeviceLine(device)];
    gpus.insert(device.parent.known() ? device.parent.value : device.id.value);
  }
  if (sorts.empty()) return {};
  std::string text = "bimetal-fingerprint 2\nvendor " + std::string(VendorName(vendor)) +
                     "\nkernel " + Show(inventory.kernel) + "\n";
  for (const std::string name : {"driver", "flavor", "runtime"}) {
    text += FactLine(inventory, vendor, name);
  }
  if (vendor == Vendor::kNvidia) text += FactLine(inventory, vendor, "toolkit");
  text += "gpus " + std::to_string(gpus.size()) + "\n";
  for (const auto& [line, count] : sorts) {
    text += "device " + std::to_string(count) + " x|" + line + "\n";
  }
  return text;
}

std::string Fingerprint(const Inventory& inventory, Vendor vendor) {
  const std::string text = FingerprintText(inventory, vendor);
  return text.empty() ? std::string() : Sha256Hex(text).substr(0, 16);
}

}  // namespace bimetal::agent
