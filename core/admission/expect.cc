#include "core/admission/expect.h"

namespace bimetal::core::admission {
namespace {

std::string Differs(const std::string& what, const std::string& wanted, const std::string& found) {
  return std::string(kProfileExpects) + what + wanted + ", found " +
         (found.empty() ? "none" : found);
}

std::string OfNode(const Expect& expect, const Report& report) {
  const auto count = static_cast<std::int64_t>(report.devices.size());
  if (expect.devices && *expect.devices != count) {
    return Differs("devices: ", std::to_string(*expect.devices), std::to_string(count));
  }
  if (!expect.driver_version.empty() && !report.driver_version.empty() &&
      expect.driver_version != report.driver_version) {
    return Differs("driver ", expect.driver_version, report.driver_version);
  }
  return "";
}

std::string OfDevice(const Expect& expect, const ReportedDevice& device) {
  for (const auto& [part, version] : expect.firmware) {
    const auto found = device.firmware.find(part);
    if (found == device.firmware.end() && device.unread.contains("firmware")) continue;
    const std::string has = found == device.firmware.end() ? "" : found->second;
    if (has != version) return Differs("firmware " + part + " ", version, has);
  }
  if (!expect.partition.empty() && !device.unread.contains("partition") &&
      expect.partition != (device.partition.empty() ? "off" : device.partition)) {
    return Differs("partition ", expect.partition,
                   device.partition.empty() ? "off" : device.partition);
  }
  if (expect.links && !device.unread.contains("links") && device.links_up < *expect.links) {
    return Differs("direct links up: ", std::to_string(*expect.links),
                   std::to_string(device.links_up));
  }
  return "";
}

// What the profile asks for and the agent could not read.
std::string Unknown(const Expect& expect, const Report& report, const ReportedDevice& device) {
  if (!expect.driver_version.empty() && report.driver_version.empty()) {
    return "the version of the driver is not known";
  }
  const auto unread = [&](bool wanted, const char* field) -> std::string {
    const auto it = device.unread.find(field);
    if (!wanted || it == device.unread.end()) return "";
    return std::string(field) + " of " + device.id.value + " could not be read: " + it->second;
  };
  for (const std::string& text : {unread(!expect.firmware.empty(), "firmware"),
                                  unread(!expect.partition.empty(), "partition"),
                                  unread(expect.links.has_value(), "links")}) {
    if (!text.empty()) return text;
  }
  return "";
}

}  // namespace

Expect ExpectFromApi(const api::ExpectedNode& expect) {
  Expect out;
  if (expect.has_devices()) out.devices = expect.devices();
  if (expect.has_links()) out.links = expect.links();
  out.driver_version = expect.driver_version();
  out.partition = expect.partition();
  out.firmware = {expect.firmware().begin(), expect.firmware().end()};
  return out;
}

Mismatch Compare(const Expect& expect, const Report& report) {
  Mismatch out;
  const std::string of_node = OfNode(expect, report);
  for (const ReportedDevice& device : report.devices) {
    const std::string text = of_node.empty() ? OfDevice(expect, device) : of_node;
    const std::string unknown = Unknown(expect, report, device);
    if (!text.empty()) {
      out.failed[device.id] = text;
    } else if (!unknown.empty()) {
      out.unknown[device.id] = unknown;
    }
  }
  return out;
}

}  // namespace bimetal::core::admission
