#pragma once

#include <memory>
#include <string>

#include "agent/devices/source.h"

namespace bimetal::agent {

// Reads AMD devices from sysfs and the KFD topology under `root`. Facts: "driver", "flavor",
// "runtime". Steps: "kfd" and "pci" (the kernel's trees), "gpu <PCI address>" (everything that may
// reach that GPU's firmware), "vendor" (that of all GPUs).
std::unique_ptr<DeviceSource> MakeAmdSource(const std::string& root);

}  // namespace bimetal::agent
