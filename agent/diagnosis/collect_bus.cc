// Facts of the bus: gpus, nvidia.gpus, nvidia.bound, nvidia.unbound (amd likewise), pci.driver,
// driver.present, wsl, nvswitch, iommu, aer.*, link.speed, link.busy, power_cap.
#include <algorithm>
#include <array>
#include <set>

#include "agent/diagnosis/collect.h"

namespace bimetal::agent {
namespace {

constexpr std::array<Vendor, 2> kVendors = {Vendor::kNvidia, Vendor::kAmd};

std::string_view OwnDriver(Vendor vendor) {
  return vendor == Vendor::kNvidia ? "nvidia" : "amdgpu";
}

std::string_view People(Vendor vendor) { return vendor == Vendor::kNvidia ? "NVIDIA" : "AMD"; }

// The PCI addresses of a vendor's GPUs, by the bus and by the readers of devices; the size of a
// machine that lists neither is not known.
std::set<std::string> Addresses(const Look& look, Vendor vendor) {
  std::set<std::string> out;
  for (const PciGpu& gpu : look.pci.at(vendor).gpus) out.insert(gpu.address);
  for (const Device& device : look.inventory.devices) {
    if (device.vendor != vendor) continue;
    out.insert(device.pci_address.known() ? device.pci_address.value : device.id.value);
  }
  return out;
}

std::string Joined(const std::set<std::string>& words) {
  constexpr std::size_t kMost = 4;
  std::string out;
  std::size_t count = 0;
  for (const std::string& word : words) {
    if (count == kMost) return out + ", ...";
    out += (count++ == 0 ? "" : ", ") + word;
  }
  return out;
}

std::size_t CollectVendor(const Look& look, Vendor vendor, Observations& seen) {
  const std::string name(VendorName(vendor));
  const auto addresses = Addresses(look, vendor);
  std::size_t unbound = 0;
  std::set<std::string> other;
  for (const PciGpu& gpu : look.pci.at(vendor).gpus) {
    if (!gpu.driver.known()) continue;
    unbound += gpu.driver.value.empty() ? 1 : 0;
    if (!gpu.driver.value.empty() && gpu.driver.value != OwnDriver(vendor)) {
      other.insert(gpu.address);
    }
    seen.SetFor(SubjectAt(look, gpu.address), "pci.driver",
                gpu.driver.value.empty() ? "none" : gpu.driver.value,
                "/sys/bus/pci/devices/" + gpu.address + "/driver is " +
                    (gpu.driver.value.empty() ? "missing" : gpu.driver.value));
  }
  const std::string count = std::to_string(addresses.size());
  seen.Set(name + ".gpus", count,
           count + " " + std::string(People(vendor)) + " GPU(s) (" + Joined(addresses) + ")");
  seen.Set(
      name + ".unbound", std::to_string(unbound),
      std::to_string(unbound) + " " + std::string(People(vendor)) + " GPU(s) without a driver");
  seen.Set(name + ".bound", std::to_string(addresses.size() - unbound - other.size()));
  return addresses.size();
}

void CollectCounts(const Look& look, Observations& seen) {
  std::size_t gpus = 0;
  bool any_list = false;
  for (const Vendor vendor : kVendors) {
    gpus += CollectVendor(look, vendor, seen);
    any_list = any_list || look.pci.at(vendor).present;
  }
  if (gpus > 0 || any_list) {
    seen.Set("gpus", std::to_string(gpus),
             gpus == 0 ? "no display controller or accelerator of vendor 10de or 1002 in "
                         "/sys/bus/pci/devices"
                       : std::to_string(gpus) + " GPU(s)");
  } else {
    seen.SetUnknown("gpus", "the PCI bus cannot be seen");
  }
}

void CollectDriverPresence(const Look& look, Observations& seen) {
  for (const char* path : {"sys/module/nvidia", "sys/module/amdgpu", "proc/driver/nvidia/version",
                           "usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1",
                           "usr/lib64/libnvidia-ml.so.1", "opt/rocm/.info/version"}) {
    if (look.files.Exists(path)) {
      return seen.Set("driver.present", "yes", "/" + std::string(path) + " is there");
    }
  }
  seen.Set("driver.present", "no");
}

void CollectWsl(const Look& look, Observations& seen) {
  const auto version = look.files.Text("proc/version");
  if (look.files.Exists("dev/dxg")) return seen.Set("wsl", "yes", "/dev/dxg is there");
  const bool named =
      version.known() && version.value.find("microsoft-standard-WSL2") != std::string::npos;
  seen.Set("wsl", named ? "yes" : "no", named ? "/proc/version: " + version.value : std::string());
}

void CollectSwitches(const Look& look, Observations& seen) {
  const auto names = look.files.List("sys/bus/pci/devices");
  if (!names.known()) return seen.SetUnknown("nvswitch", names.why);
  std::set<std::string> switches;
  for (const std::string& name : names.value) {
    const std::string folder = "sys/bus/pci/devices/" + name;
    if (look.files.Text(folder + "/vendor").value != "0x10de") continue;
    if (look.files.Text(folder + "/class").value.starts_with("0x0680")) switches.insert(name);
  }
  seen.Set("nvswitch", std::to_string(switches.size()),
           std::to_string(switches.size()) + " NVSwitch(es) (" + Joined(switches) + ")");
}

bool HasWord(const std::string& line, std::string_view word) {
  const auto at = line.find(word);
  if (at == std::string::npos) return false;
  const auto end = at + word.size();
  return (at == 0 || line[at - 1] == ' ') && (end == line.size() || line[end] == ' ');
}

// passthrough, translated, off.
void CollectIommu(const Look& look, Observations& seen) {
  const auto groups = look.files.List("sys/kernel/iommu_groups");
  if (!groups.known() || groups.value.empty()) {
    if (look.visible.sys) return seen.Set("iommu", "off");
    return seen.SetUnknown("iommu", groups.why);
  }
  bool identity = false;  // some GPU's group says so, and no other says otherwise
  for (const auto& [vendor, list] : look.pci) {
    for (const PciGpu& gpu : list.gpus) {
      const auto group = look.files.LinkName(gpu.folder + "/iommu_group");
      if (!group.known()) continue;
      const auto type = look.files.Text("sys/kernel/iommu_groups/" + group.value + "/type");
      if (!type.known()) continue;
      identity = true;
      if (type.value == "identity") continue;
      return seen.Set("iommu", "translated",
                      "/sys/kernel/iommu_groups/" + group.value + "/type of " + gpu.address +
                          " is " + type.value);
    }
  }
  if (identity) return seen.Set("iommu", "passthrough");
  const auto line = look.files.Text("proc/cmdline");
  if (!line.known()) return seen.SetUnknown("iommu", line.why);
  const bool through =
      HasWord(line.value, "iommu=pt") || HasWord(line.value, "iommu.passthrough=1");
  seen.Set("iommu", through ? "passthrough" : "translated",
           "/sys/kernel/iommu_groups is not empty and /proc/cmdline has no iommu=pt");
}

// "TOTAL_ERR_FATAL 3": the number behind the word that begins with TOTAL.
std::optional<std::uint64_t> AerTotal(const Reading<std::string>& text) {
  if (!text.known()) return std::nullopt;
  for (const std::string_view line : Lines(text.value)) {
    if (!line.starts_with("TOTAL_ERR_")) continue;
    return ParseUnsigned(Trim(line.substr(line.find(' ') + 1)));
  }
  return std::nullopt;
}

void CollectGpu(const Look& look, const PciGpu& gpu, Observations& seen) {
  const std::string subject = SubjectAt(look, gpu.address);
  for (const std::string kind : {"fatal", "nonfatal", "correctable"}) {
    const std::string path = gpu.folder + "/aer_dev_" + kind;
    const auto total = AerTotal(look.files.Text(path));
    if (!total) continue;
    seen.SetFor(subject, "aer." + kind, std::to_string(*total),
                "/sys/bus/pci/devices/" + gpu.address + "/aer_dev_" + kind + " counts " +
                    std::to_string(*total));
  }
  for (const std::string& name : look.files.List(gpu.folder + "/hwmon").value) {
    const std::string folder = gpu.folder + "/hwmon/" + name;
    const auto cap = look.files.Number(folder + "/power1_cap");
    const auto normal = look.files.Number(folder + "/power1_cap_default");
    if (!cap.known() || !normal.known() || cap.value <= 0) continue;
    seen.SetFor(subject, "power_cap", cap.value < normal.value ? "lowered" : "default",
                name + "/power1_cap is " + std::to_string(cap.value / 1'000'000) +
                    " W, the default " + std::to_string(normal.value / 1'000'000) + " W");
  }
}

void CollectLinkSpeed(const Look& look, const Device& device, Observations& seen) {
  if (!device.link_generation.known() || !device.link_generation_max.known()) return;
  const bool reduced = device.link_generation.value < device.link_generation_max.value;
  seen.SetFor(device.id.value, "link.speed", reduced ? "reduced" : "full",
              "PCIe generation " + std::to_string(device.link_generation.value) + " of " +
                  std::to_string(device.link_generation_max.value));
  // An idle GPU lowers the speed by itself.
  const auto telemetry = look.inventory.telemetry.find(device.id.value);
  if (telemetry == look.inventory.telemetry.end()) return;
  const auto& load = telemetry->second.utilization_percent;
  if (!load.known() || !look.options.fleeting) return;
  seen.SetFor(device.id.value, "link.busy", load.value >= 50 ? "yes" : "no", "under load");
}

}  // namespace

std::string SubjectAt(const Look& look, const std::string& address) {
  for (const Device& device : look.inventory.devices) {
    if (!device.pci_address.known() || device.pci_address.value != address) continue;
    return device.parent.known() ? device.parent.value : device.id.value;
  }
  return address;
}

void CollectBus(const Look& look, Observations& seen) {
  CollectCounts(look, seen);
  CollectDriverPresence(look, seen);
  CollectWsl(look, seen);
  CollectSwitches(look, seen);
  CollectIommu(look, seen);
  for (const auto& [vendor, list] : look.pci) {
    for (const PciGpu& gpu : list.gpus) CollectGpu(look, gpu, seen);
  }
  for (const Device& device : look.inventory.devices) CollectLinkSpeed(look, device, seen);
}

}  // namespace bimetal::agent
