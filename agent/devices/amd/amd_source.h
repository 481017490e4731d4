#pragma once

#include <memory>
#include <string>

#include "agent/devices/source.h"

namespace bimetal::agent {

// Reads AMD devices from sysfs and the KFD topology under `root`. Facts: "driver", "runtime".
// Steps: "vendor" (everything that may reach the GPU's firmware), "gpu <PCI address>".
std::unique_ptr<DeviceSource> MakeAmdSource(const std::string& root);

}  // namespace bimetal::agent
