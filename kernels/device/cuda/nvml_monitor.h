#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernels/device/vendor/monitor.h"

namespace bimetal::kernels {

// Clock, power, temperature and ECC errors of an NVIDIA device through NVML, opened at run time.
// Null where the library is missing or does not know the device.
std::unique_ptr<Monitor> OpenNvmlMonitor(const DeviceInfo& info,
                                         const std::vector<std::string>& libraries = {
                                             "libnvidia-ml.so.1"});

}  // namespace bimetal::kernels
