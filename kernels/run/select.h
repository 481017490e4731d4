#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernels/device/device.h"
#include "kernels/run/run.h"

namespace bimetal::kernels {

// The devices that a run is about.
struct Selection {
  std::unique_ptr<Backend> backend;
  std::string vendor;
  std::vector<DeviceInfo> present;
  std::vector<std::string> absent;  // requested ids that no device answers to
};

// Opens the back end that the options ask for and picks the devices. May hang where a vendor's
// driver does. Errors say why no device can be had.
Outcome<Selection> SelectDevices(const RunOptions& options);

}  // namespace bimetal::kernels
