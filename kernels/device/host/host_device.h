#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/device/device.h"
#include "kernels/device/host/host_backend.h"

namespace bimetal::kernels {

// One simulated device. One thread at a time, as every Device. Its memory is backed by pages of
// this process, allocated first fit from offset 0, so that a check's first buffer begins at offset
// 0.
class HostDevice final : public Device {
 public:
  explicit HostDevice(HostDeviceSpec spec);
  ~HostDevice() override;
  HostDevice(const HostDevice&) = delete;
  HostDevice& operator=(const HostDevice&) = delete;

  const DeviceInfo& info() const override { return spec_.info; }
  Outcome<MemoryInfo> QueryMemory() override;
  Outcome<Buffer> Allocate(std::uint64_t bytes) override;
  Done Free(const Buffer& buffer) override;
  Done Upload(const Buffer& buffer, std::span<const std::byte> data) override;
  Done Download(const Buffer& buffer, std::span<std::byte> data) override;
  Done Launch(const ModuleImage& module, std::string_view kernel, LaunchShape shape,
              std::span<const std::byte> args) override;
  Done Synchronize(Deadline deadline) override;
  std::optional<std::string> UntestedReason(const Buffer& buffer) const override;

 private:
  struct Pending {
    const HostKernel* kernel;
    LaunchShape shape;
    std::vector<std::byte> args;
  };

  bool Has(HostFault::Kind kind) const;
  std::uint64_t AluFault(std::uint32_t unit) const;
  Done CheckPresent() const;
  // False where the deadline passed first.
  bool Run(const Pending& launch, Deadline deadline) const;
  void RunBlock(const Pending& launch, std::uint32_t block) const;
  // Puts every stuck bit of allocated memory back to where it is stuck.
  void ApplyMemoryFaults();
  std::uint64_t Limit() const;

  HostDeviceSpec spec_;
  std::map<std::uint64_t, Buffer> buffers_;  // by offset
  std::vector<Pending> pending_;
  bool vanished_ = false;
};

}  // namespace bimetal::kernels
