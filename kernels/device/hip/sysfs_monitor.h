#pragma once

#include <memory>
#include <string>

#include "kernels/device/vendor/monitor.h"

namespace bimetal::kernels {

// Clock, power, temperature and RAS errors of an AMD device as amdgpu shows them in sysfs, found by
// its PCI address. `root` stands before "sys", for tests. Null where the device is not there (a
// partition other than the first).
std::unique_ptr<Monitor> OpenSysfsMonitor(const DeviceInfo& info, const std::string& root = "/");

}  // namespace bimetal::kernels
