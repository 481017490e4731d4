#include "agent/devices/inventory.h"

#include <algorithm>
#include <set>
#include <utility>

#include "agent/devices/kernel_log.h"
#include "agent/devices/labels.h"
#include "agent/devices/root_files.h"
#include "agent/devices/sha256.h"

namespace bimetal::agent {
namespace {

constexpr std::size_t kMaxId = 63;
constexpr std::size_t kMaxLog = 4 * 1024 * 1024;

// An id that the kubelet takes and that is safe in a path-like or log context.
std::string BoundId(const std::string& id) {
  const bool legal = !id.empty() && std::all_of(id.begin(), id.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.' || c == ':' || c == '/';
  });
  if (legal && id.size() <= kMaxId) return id;
  const std::string hash = Sha256Hex(id).substr(0, 16);
  return legal ? id.substr(0, kMaxId - 17) + "-" + hash : "ID-" + hash;
}

void CheckDevice(const Device& device, std::vector<Finding>& findings) {
  const std::string& id = device.id.value;
  if (!device.memory_bytes.known()) {
    findings.push_back({"MemorySizeUnknown", Severity::kWarning, id, device.memory_bytes.why,
                        "jobs that ask for memory do not match it; set the size in the pool", ""});
  }
  if (device.uncorrected_errors.known() && device.uncorrected_errors.value > 0) {
    findings.push_back(
        {"UncorrectedMemoryErrors", Severity::kError, id,
         std::to_string(device.uncorrected_errors.value) + " since the driver was loaded",
         "reset the GPU and validate it again; replace it where they come again", ""});
  }
  if (device.link_width.known() && device.link_width_max.known() &&
      device.link_width.value < device.link_width_max.value) {
    findings.push_back({"LinkWidthReduced", Severity::kWarning, id,
                        "x" + std::to_string(device.link_width.value) + " of x" +
                            std::to_string(device.link_width_max.value),
                        "reseat the card; check riser and slot", ""});
  }
}

void CheckLabels(const std::vector<Device>& devices, std::vector<Finding>& findings) {
  std::set<std::string> models;
  for (const Device& device : devices) {
    if (device.model.known()) models.insert(device.model.value);
  }
  for (const auto& [label, names] : LabelClashes(models)) {
    std::string evidence = "label " + label + " of";
    for (const std::string& name : names) evidence += " '" + name + "'";
    findings.push_back({"LabelClash", Severity::kWarning, "", evidence,
                        "tell the models apart by device id, not by label", ""});
  }
}

}  // namespace

InventoryReader::InventoryReader(std::string root, InventoryOptions options)
    : root_(std::move(root)), options_(std::move(options)) {}

Inventory InventoryReader::Read() {
  Inventory inventory;
  const RootFiles files(root_);
  inventory.kernel = files.Text("proc/sys/kernel/osrelease");
  inventory.boot_id = files.Text("proc/sys/kernel/random/boot_id");
  inventory.simulated = files.Exists("simulated");
  if (options_.amd) AddReport(ReadVendor(Vendor::kAmd), Vendor::kAmd, inventory);
  if (options_.nvidia) AddReport(ReadVendor(Vendor::kNvidia), Vendor::kNvidia, inventory);
  if (inventory.simulated) inventory.machine = root_;
  FinishInventory(inventory);
  if (options_.kernel_log && !inventory.devices.empty()) {
    const auto log = files.KernelLog("dev/kmsg", kMaxLog);
    if (log.known()) {
      for (Finding& finding : KernelFindings(log.value, inventory.devices)) {
        inventory.findings.push_back(std::move(finding));
      }
    } else if (log.state == Known::kError) {
      inventory.findings.push_back(
          {"KernelLogUnreadable", Severity::kInfo, "", log.why,
           "give the agent /dev/kmsg and CAP_SYSLOG, so that it sees Xid and RAS lines", ""});
    }
  }
  std::sort(inventory.findings.begin(), inventory.findings.end(),
            [](const Finding& a, const Finding& b) {
              return a.severity != b.severity ? a.severity > b.severity : a < b;
            });
  return inventory;
}

SourceReport InventoryReader::ReadVendor(Vendor vendor) {
  SourceReport now = ReadInProbe(vendor, root_, options_.probe, memory_);
  KeepUnseen(last_[vendor], now);
  for (auto& [id, telemetry] : now.telemetry) {
    const auto before = last_[vendor].telemetry.find(id);
    if (before != last_[vendor].telemetry.end()) ThrottleFromCounts(before->second, telemetry);
  }
  last_[vendor] = now;
  return now;
}

Inventory ReadInventory(const std::string& root, const InventoryOptions& options) {
  return InventoryReader(root, options).Read();
}

void AddReport(SourceReport report, Vendor vendor, Inventory& inventory) {
  inventory.facts[vendor] = std::move(report.facts);
  inventory.simulated = inventory.simulated || report.simulated;
  for (Finding& finding : report.findings) {
    if (finding.vendor.empty()) finding.vendor = std::string(VendorName(vendor));
    inventory.findings.push_back(std::move(finding));
  }
  for (auto& [id, telemetry] : report.telemetry) {
    inventory.telemetry[BoundId(id)] = std::move(telemetry);
  }
  for (Device& device : report.devices) {
    device.id.value = BoundId(device.id.value);
    inventory.devices.push_back(std::move(device));
  }
}

void FinishInventory(Inventory& inventory) {
  auto& devices = inventory.devices;
  std::stable_sort(devices.begin(), devices.end(),
                   [](const Device& a, const Device& b) { return a.id < b.id; });
  for (std::size_t i = 1; i < devices.size(); ++i) {
    if (devices[i].id != devices[i - 1].id) continue;
    inventory.findings.push_back({"DuplicateDevice", Severity::kError, devices[i].id.value,
                                  "two devices have one id",
                                  "report it; the device is counted once", ""});
  }
  devices.erase(std::unique(devices.begin(), devices.end(),
                            [](const Device& a, const Device& b) { return a.id == b.id; }),
                devices.end());
  for (const Device& device : devices) CheckDevice(device, inventory.findings);
  CheckLabels(devices, inventory.findings);
}

}  // namespace bimetal::agent
