#include "kernels/device/host/host_backend.h"

#include <algorithm>
#include <string>
#include <thread>
#include <utility>

#include "kernels/device/host/host_device.h"
#include "kernels/device/trace.h"

namespace bimetal::kernels {
namespace {

// The tested region grows so that a declared memory fault lies inside, within the host's limit.
std::uint64_t TestBytes(const HostDeviceSpec& spec) {
  constexpr std::uint64_t kGranule = 1ull << 20;
  std::uint64_t bytes = kHostTestBytes;
  for (const HostFault& fault : spec.faults) {
    if (fault.kind != HostFault::Kind::kMemory || fault.offset >= kHostMemoryLimit - kGranule) {
      continue;
    }
    bytes = std::max(bytes, (fault.offset / kGranule + 1) * kGranule);
  }
  return spec.info.memory_bytes == 0 ? bytes : std::min(bytes, spec.info.memory_bytes);
}

}  // namespace

HostBackend::HostBackend(std::vector<HostDeviceSpec> devices) : devices_(std::move(devices)) {
  for (HostDeviceSpec& spec : devices_) {
    spec.info.simulated = true;
    spec.info.threads_per_block = 1;
    spec.info.blocks_per_unit = 2;
    spec.info.default_test_bytes = TestBytes(spec);
  }
}

Outcome<std::vector<DeviceInfo>> HostBackend::Enumerate() {
  std::vector<DeviceInfo> infos;
  for (const HostDeviceSpec& spec : devices_) infos.push_back(spec.info);
  if (infos.empty()) {
    return DeviceError{DeviceErrorCode::kNoDevice, "the machine description lists no device"};
  }
  return infos;
}

Outcome<std::unique_ptr<Device>> HostBackend::Open(std::string_view id) {
  for (const HostDeviceSpec& spec : devices_) {
    if (MatchesId(spec.info, id)) {
      const ScopedCall scope("open");
      for (const HostFault& fault : spec.faults) {
        if (fault.kind == HostFault::Kind::kHang && fault.call == "open") HangForever();
      }
      return std::unique_ptr<Device>(std::make_unique<HostDevice>(spec));
    }
  }
  return DeviceError{DeviceErrorCode::kNotFound,
                     "no simulated device answers to id " + std::string(id)};
}

void HangForever() {
  for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
}

HostDeviceSpec HostCpu() {
  HostDeviceSpec spec;
  spec.info.id = "host-cpu";
  spec.info.vendor = "host";
  spec.info.name = "host processor";
  spec.info.arch = "host";
  spec.info.compute_units = std::max(1u, std::thread::hardware_concurrency());
  spec.info.memory_bytes = kHostMemoryLimit;
  return spec;
}

}  // namespace bimetal::kernels
