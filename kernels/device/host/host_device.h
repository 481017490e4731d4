#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
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
  Outcome<PinnedBuffer> AllocatePinned(std::uint64_t bytes) override;
  Done FreePinned(const PinnedBuffer& buffer) override;
  Done QueueUpload(const Buffer& to, const PinnedBuffer& from, std::uint64_t bytes) override;
  Done QueueDownload(const PinnedBuffer& to, const Buffer& from, std::uint64_t bytes) override;
  Done QueueCopy(const Buffer& to, const Buffer& from, std::uint64_t bytes) override;
  Outcome<bool> CanAccessPeer(Device& peer) override;
  Done EnablePeer(Device& peer) override;
  Done QueueCopyPeer(Device& peer, const Buffer& to, const Buffer& from,
                     std::uint64_t bytes) override;
  Done Launch(const ModuleImage& module, std::string_view kernel, LaunchShape shape,
              std::span<const std::byte> args) override;
  Done Synchronize(Deadline deadline) override;
  Done StartTimer() override;
  Outcome<double> StopTimer(Deadline deadline) override;
  Telemetry Sample() override;
  std::optional<std::vector<double>> ModelledRates(std::string_view check, std::uint64_t seed,
                                                   std::size_t samples) const override;
  std::optional<std::string> UntestedReason(const Buffer& buffer) const override;

 private:
  struct Pending {
    const HostKernel* kernel;  // null: `action`
    LaunchShape shape;
    std::vector<std::byte> args;
    std::function<void()> action;
  };

  const HostFault* Find(HostFault::Kind kind) const;
  bool Has(HostFault::Kind kind) const { return Find(kind) != nullptr; }
  // Hangs where the device is described to hang in this call. Error kLost where it is gone.
  Done Enter(const char* call) const;
  std::uint64_t AluFault(std::uint32_t unit) const;
  Done Fits(const Buffer& buffer, std::uint64_t bytes) const;
  Done QueueMove(std::byte* to, const std::byte* from, std::uint64_t bytes,
                 HostFault::Kind corrupt);
  // False where the deadline passed first.
  bool Run(const Pending& launch, Deadline deadline) const;
  void RunBlock(const Pending& launch, std::uint32_t block) const;
  // Puts every stuck bit of allocated memory back to where it is stuck.
  void ApplyMemoryFaults();
  std::uint64_t Limit() const;

  HostDeviceSpec spec_;
  std::map<std::uint64_t, Buffer> buffers_;  // by offset
  std::map<std::byte*, std::unique_ptr<std::byte[]>> pinned_;
  std::vector<Pending> pending_;
  std::chrono::steady_clock::time_point timer_begin_;
  std::chrono::steady_clock::time_point timer_end_;
  bool vanished_ = false;
  bool wedged_ = false;  // a kernel outlived its deadline
  bool loaded_ = false;  // a kernel ran
};

}  // namespace bimetal::kernels
