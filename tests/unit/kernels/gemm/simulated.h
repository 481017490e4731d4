#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels/checks/check.h"
#include "kernels/device/host/host_backend.h"

namespace bimetal::kernels {

// A simulated device "GPU-sim" of so many units. "host" has every precision.
inline std::unique_ptr<Device> Simulated(std::uint32_t units, std::vector<HostFault> faults = {},
                                         const std::string& arch = "host") {
  HostDeviceSpec spec;
  spec.info.id = "GPU-sim";
  spec.info.vendor = "nvidia";
  spec.info.arch = arch;
  spec.info.compute_units = units;
  spec.info.memory_bytes = 80ull << 30;
  spec.faults = std::move(faults);
  HostBackend backend({spec});
  return std::move(backend.Open("GPU-sim").value());
}

inline HostFault FaultOf(HostFault::Kind kind, std::uint32_t unit = 0) {
  HostFault fault;
  fault.kind = kind;
  fault.unit = unit;
  return fault;
}

inline CheckRequest NumericsRequest(std::uint64_t seed = 1) {
  CheckRequest request;
  request.seed = seed;
  request.deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  return request;
}

}  // namespace bimetal::kernels
