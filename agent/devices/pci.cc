#include "agent/devices/pci.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

namespace bimetal::agent {
namespace {

// KEY=value of a uevent file.
std::optional<std::string> UeventValue(const Reading<std::string>& uevent, std::string_view key) {
  if (!uevent.known()) return std::nullopt;
  for (const std::string_view line : Lines(uevent.value)) {
    if (line.starts_with(key) && line.substr(key.size()).starts_with('=')) {
      return std::string(line.substr(key.size() + 1));
    }
  }
  return std::nullopt;
}

std::string Lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return text;
}

std::optional<std::uint64_t> Hex(std::string_view text) {
  if (text.starts_with("0x")) text.remove_prefix(2);
  return ParseUnsigned(text, 16);
}

// "1002:744C" of a uevent's PCI_ID, as vendor and device.
std::optional<std::pair<std::uint64_t, std::uint64_t>> PciId(const Reading<std::string>& uevent) {
  const auto text = UeventValue(uevent, "PCI_ID");
  if (!text) return std::nullopt;
  const auto colon = text->find(':');
  if (colon == std::string::npos) return std::nullopt;
  const auto vendor = Hex(std::string_view(*text).substr(0, colon));
  const auto device = Hex(std::string_view(*text).substr(colon + 1));
  if (!vendor || !device) return std::nullopt;
  return std::pair(*vendor, *device);
}

std::optional<std::uint64_t> VendorOf(const RootFiles& files, const std::string& folder) {
  const auto text = files.Text(folder + "/vendor");
  if (text.known()) return Hex(text.value);
  const auto id = PciId(files.Text(folder + "/uevent"));
  if (id) return id->first;
  return std::nullopt;
}

// Class 0x0300xx, 0x0302xx, 0x0380xx or 0x1200xx. Where sysfs gives no class, a card that has video
// memory or a unique id is one.
bool IsGpuClass(const RootFiles& files, const std::string& folder) {
  const auto text = files.Text(folder + "/class");
  if (!text.known()) {
    return files.Exists(folder + "/mem_info_vram_total") || files.Exists(folder + "/unique_id");
  }
  const auto value = Hex(text.value);
  if (!value) return false;
  constexpr std::array<std::uint64_t, 4> kClasses = {0x0300, 0x0302, 0x0380, 0x1200};
  return std::find(kClasses.begin(), kClasses.end(), *value >> 8) != kClasses.end();
}

Reading<std::string> DriverOf(const RootFiles& files, const std::string& folder,
                              const Reading<std::string>& uevent) {
  const auto link = files.LinkName(folder + "/driver");
  if (link.known()) return link;
  if (const auto name = UeventValue(uevent, "DRIVER")) return Reading<std::string>::Of(*name);
  if (uevent.known()) return Reading<std::string>::Of("");
  return Reading<std::string>::Unknown("sysfs does not name the driver");
}

PciGpu ReadGpu(const RootFiles& files, const std::string& address, const std::string& folder) {
  PciGpu gpu;
  gpu.address = Lower(address);
  gpu.folder = folder;
  const auto uevent = files.Text(folder + "/uevent");
  const auto device = files.Text(folder + "/device");
  if (device.known()) gpu.device = Hex(device.value);
  if (const auto id = PciId(uevent); !gpu.device && id) gpu.device = id->second;
  gpu.driver = DriverOf(files, folder, uevent);
  for (const std::string& name : files.List(folder + "/drm").value) {
    if (const auto n = NumberAfter(name, "card")) gpu.card = n;
    if (const auto n = NumberAfter(name, "renderD")) gpu.render = n;
  }
  return gpu;
}

}  // namespace

PciGpus ReadPciGpus(const RootFiles& files, std::uint64_t vendor) {
  PciGpus out;
  std::map<std::string, PciGpu> by_address;
  const std::string bus = "sys/bus/pci/devices";
  const auto functions = files.List(bus);
  out.present = functions.known();
  for (const std::string& name : functions.value) {
    const std::string folder = bus + "/" + name;
    if (VendorOf(files, folder) != vendor || !IsGpuClass(files, folder)) continue;
    PciGpu gpu = ReadGpu(files, name, folder);
    by_address.emplace(gpu.address, std::move(gpu));
  }
  const auto cards = files.List("sys/class/drm");
  out.present = out.present || cards.known();
  for (const std::string& name : cards.value) {
    const auto number = NumberAfter(name, "card");
    const std::string folder = "sys/class/drm/" + name + "/device";
    if (!number || VendorOf(files, folder) != vendor) continue;
    // A card that is no PCI device (a partition of another card) has no slot name.
    const auto address = UeventValue(files.Text(folder + "/uevent"), "PCI_SLOT_NAME");
    if (!address) continue;
    const auto [at, added] = by_address.emplace(Lower(*address), ReadGpu(files, *address, folder));
    at->second.card = number;
  }
  for (auto& [address, gpu] : by_address) out.gpus.push_back(std::move(gpu));
  return out;
}

std::optional<int> NumberAfter(std::string_view name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return std::nullopt;
  const auto number = ParseUnsigned(name.substr(prefix.size()));
  if (!number || *number > 1'000'000) return std::nullopt;
  return static_cast<int>(*number);
}

Reading<std::int64_t> LinkGeneration(const Reading<std::string>& speed) {
  if (!speed.known()) return SameGap<std::int64_t>(speed);
  constexpr std::array<std::string_view, 6> kSpeeds = {"2.5 ",  "5.0 ",  "8.0 ",
                                                       "16.0 ", "32.0 ", "64.0 "};
  for (std::size_t i = 0; i < kSpeeds.size(); ++i) {
    if (speed.value.starts_with(kSpeeds[i])) {
      return Reading<std::int64_t>::Of(static_cast<std::int64_t>(i + 1));
    }
  }
  if (speed.value.starts_with("5 ")) return Reading<std::int64_t>::Of(2);
  if (speed.value.starts_with("8 ")) return Reading<std::int64_t>::Of(3);
  return Reading<std::int64_t>::Unknown("link speed '" + speed.value + "' is not known");
}

}  // namespace bimetal::agent
