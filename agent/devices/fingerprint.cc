#include "agent/devices/fingerprint.h"

#include <algorithm>
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

std::string DeviceLine(const Device& device) {
  return "device " + device.id.value + "|model=" + Show(device.model) +
         "|architecture=" + Show(device.architecture) + "|firmware=" + Show(device.firmware) +
         "|partition=" + Show(device.partition) + "|link=gen" + Show(device.link_generation_max) +
         " x" + Show(device.link_width) + " of x" + Show(device.link_width_max) + "\n";
}

}  // namespace

std::string FingerprintText(const Inventory& inventory, Vendor vendor) {
  std::vector<std::string> lines;
  for (const Device& device : inventory.devices) {
    if (device.vendor == vendor) lines.push_back(DeviceLine(device));
  }
  if (lines.empty()) return {};
  std::sort(lines.begin(), lines.end());
  std::string text = "bimetal-fingerprint 1\nvendor " + std::string(VendorName(vendor)) +
                     "\nkernel " + Show(inventory.kernel) + "\n";
  const auto facts = inventory.facts.find(vendor);
  for (const std::string name : {"driver", "runtime"}) {
    Reading<std::string> fact;
    if (facts != inventory.facts.end()) {
      const auto found = facts->second.find(name);
      if (found != facts->second.end()) fact = found->second;
    }
    text += name + " " + Show(fact) + "\n";
  }
  for (const std::string& line : lines) text += line;
  return text;
}

std::string Fingerprint(const Inventory& inventory, Vendor vendor) {
  const std::string text = FingerprintText(inventory, vendor);
  return text.empty() ? std::string() : Sha256Hex(text).substr(0, 16);
}

}  // namespace bimetal::agent
