#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "kernels/device/device.h"

namespace bimetal::kernels {

// A fault that a simulated device has.
struct HostFault {
  enum class Kind {
    kMemory,   // bit `bit` at byte `offset` is stuck at `stuck`
    kCompute,  // unit `unit` computes wrong results
    kHang,     // launches never finish
    kVanish,   // the device goes away at the first launch
    kSkip,     // launches report success without having run
  };
  Kind kind = Kind::kMemory;
  std::uint64_t offset = 0;
  std::uint32_t bit = 0;
  bool stuck = true;
  std::uint32_t unit = 0;
};

// A device that the host back end presents.
struct HostDeviceSpec {
  DeviceInfo info;  // info.simulated is set by the back end
  std::vector<HostFault> faults;
};

// Bytes of a simulated device's memory that a check tests unless told otherwise.
inline constexpr std::uint64_t kHostTestBytes = 4ull << 20;
// Most bytes that one simulated device may hold at a time.
inline constexpr std::uint64_t kHostMemoryLimit = 256ull << 20;

// Runs kernels on this machine's processor in place of a device: each block on a small pool of
// threads, dealt to simulated compute units in turn. Everything it presents says `simulated`.
class HostBackend final : public Backend {
 public:
  explicit HostBackend(std::vector<HostDeviceSpec> devices);

  BackendKind kind() const override { return BackendKind::kHost; }
  Outcome<std::vector<DeviceInfo>> Enumerate() override;
  Outcome<std::unique_ptr<Device>> Open(std::string_view id) override;

 private:
  std::vector<HostDeviceSpec> devices_;
};

// This machine's processor as one device, "host-cpu", without faults.
HostDeviceSpec HostCpu();

}  // namespace bimetal::kernels
