#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "agent/devices/root_files.h"

namespace bimetal::agent {

// One GPU on the PCI bus, by /sys/bus/pci/devices and /sys/class/drm.
struct PciGpu {
  std::string address;  // 0000:05:00.0, lower case
  std::string folder;   // its sysfs folder under the root, without a leading slash
  std::optional<std::uint64_t> device;
  // The bound kernel driver; empty value: none is bound. Unknown: sysfs does not tell.
  Reading<std::string> driver;
  std::optional<int> card;    // N of /dev/dri/cardN
  std::optional<int> render;  // N of /dev/dri/renderDN
};

struct PciGpus {
  bool present = false;      // one of the two folders could be listed
  std::vector<PciGpu> gpus;  // by address
};

// Display controllers and accelerators of `vendor` (0x1002, 0x10de). Other functions of a card
// (audio, USB) and bridges are left out.
PciGpus ReadPciGpus(const RootFiles& files, std::uint64_t vendor);

// N of a name "<prefix>N", nothing else behind.
std::optional<int> NumberAfter(std::string_view name, std::string_view prefix);

// "16.0 GT/s PCIe" as 4, by PCI Express generation.
Reading<std::int64_t> LinkGeneration(const Reading<std::string>& speed);

}  // namespace bimetal::agent
