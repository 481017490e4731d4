#pragma once

#include <memory>
#include <string>

#include "agent/devices/source.h"

namespace bimetal::agent {

struct NvidiaSourceOptions {
  std::string root = "/";
  std::string library;          // explicit path of libnvidia-ml.so.1; empty: search under the root
  bool system_library = false;  // ask the loader by name; the root's own only where it is "/"
};

// Reads NVIDIA devices from /proc/driver/nvidia, the PCI bus and NVML, the last opened at run time.
// Facts: "driver", "flavor", "runtime" (highest CUDA version), "library" (NVML version), "toolkit".
// Steps: "proc" and "pci" (kernel files), "vendor" (opening the library and asking it for the
// count), "gpu <index>".
std::unique_ptr<DeviceSource> MakeNvidiaSource(NvidiaSourceOptions options);

}  // namespace bimetal::agent
