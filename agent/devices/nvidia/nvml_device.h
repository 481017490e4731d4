#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/devices/nvidia/nvml.h"
#include "agent/devices/source.h"

namespace bimetal::agent {

// One NVLink of a GPU.
struct NvLinkEnd {
  bool active = false;
  std::string remote_address;  // PCI address at the other end; empty: down, or not told
};

// What NVML says about one index.
struct NvmlGpu {
  unsigned index = 0;
  Device device;              // id empty where the UUID could not be read
  nvml::Return worst = 0;     // the gravest answer: lost or reset required, else 0
  std::string why_no_handle;  // not empty: there is no handle, hence nothing else
  bool mig_on = false;
  std::vector<Device> instances;              // where mig_on
  std::vector<Telemetry> instance_telemetry;  // one an instance
  Telemetry telemetry;
  std::vector<NvLinkEnd> nvlinks;  // by number; device.links says why where they are not known
};

// Asks for every field of the GPU at `index`, each by itself. May block in the driver.
NvmlGpu ReadNvmlGpu(const nvml::Api& api, unsigned index);

}  // namespace bimetal::agent
