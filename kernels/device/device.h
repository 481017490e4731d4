#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/device/module.h"
#include "kernels/device/outcome.h"

namespace bimetal::kernels {

using Deadline = std::chrono::steady_clock::time_point;

enum class BackendKind { kCuda, kHip, kHost };

// "cuda", "hip", "host".
std::string_view BackendName(BackendKind kind);

// What is known of a device before it is opened.
struct DeviceInfo {
  std::string id;      // the vendor's stable id, "GPU-..."; the PCI address where there is none
  std::string vendor;  // "nvidia", "amd"; "host" for the bare CPU
  std::string name;    // the vendor's product name; a hint, never an identity
  std::string arch;    // "sm_90", "gfx942"; empty where the library does not tell
  std::string pci_address;  // "0000:17:00.0"; empty where there is none
  std::uint32_t compute_units = 0;
  std::uint64_t memory_bytes = 0;
  bool simulated = false;
  // Launch shape that fills the device: compute_units * blocks_per_unit blocks.
  std::uint32_t threads_per_block = 256;
  std::uint32_t blocks_per_unit = 8;
  // Bytes that a memory check tests unless it is told otherwise; 0: a share of the free memory.
  std::uint64_t default_test_bytes = 0;
};

// Device memory. `address` is what a kernel sees; `offset` is the place within the device's memory
// where the back end knows it (host), else 0.
struct Buffer {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  std::uint64_t offset = 0;
};

struct MemoryInfo {
  std::uint64_t free_bytes = 0;
  std::uint64_t total_bytes = 0;
};

// Page-locked host memory, which the device reads and writes by itself.
struct PinnedBuffer {
  std::byte* data = nullptr;
  std::uint64_t bytes = 0;
};

// What the device's library tells of its state now; each absent where it does not.
struct Telemetry {
  std::optional<double> clock_mhz;
  std::optional<double> power_watts;
  std::optional<double> temperature_celsius;
  // Memory errors that could not be corrected, since the driver was loaded.
  std::optional<std::uint64_t> uncorrected_errors;
};

struct LaunchShape {
  std::uint32_t blocks = 1;
  std::uint32_t threads = 1;  // a block
  std::uint64_t total() const { return std::uint64_t{blocks} * threads; }
};

// An opened device. One thread at a time; CanAccessPeer, EnablePeer and QueueCopyPeer also use the
// peer. Any call may fail with kLost. After kTimeout the device is wedged: destroy nothing that
// would wait for it, and end the process. What is queued runs in order of queueing and is done
// when Synchronize or StopTimer says so; buffers must live until then.
class Device {
 public:
  virtual ~Device() = default;

  virtual const DeviceInfo& info() const = 0;
  virtual Outcome<MemoryInfo> QueryMemory() = 0;
  // Contents are undefined. Alignment is at least 256 bytes.
  virtual Outcome<Buffer> Allocate(std::uint64_t bytes) = 0;
  virtual Done Free(const Buffer& buffer) = 0;
  // Both REQUIRE that no launch is unfinished and that `data` fits the buffer.
  virtual Done Upload(const Buffer& buffer, std::span<const std::byte> data) = 0;
  virtual Done Download(const Buffer& buffer, std::span<std::byte> data) = 0;
  // Queues a kernel; `args` is copied. Launches run in order.
  virtual Done Launch(const ModuleImage& module, std::string_view kernel, LaunchShape shape,
                      std::span<const std::byte> args) = 0;
  // Returns when every queued launch is done, or with kTimeout at the deadline.
  virtual Done Synchronize(Deadline deadline) = 0;
  virtual Outcome<PinnedBuffer> AllocatePinned(std::uint64_t bytes) = 0;
  virtual Done FreePinned(const PinnedBuffer& buffer) = 0;
  // The first `bytes` of both buffers.
  virtual Done QueueUpload(const Buffer& to, const PinnedBuffer& from, std::uint64_t bytes) = 0;
  virtual Done QueueDownload(const PinnedBuffer& to, const Buffer& from, std::uint64_t bytes) = 0;
  virtual Done QueueCopy(const Buffer& to, const Buffer& from, std::uint64_t bytes) = 0;
  // Whether this device reaches the peer's memory without a detour over the host's. Both devices
  // are of one back end.
  virtual Outcome<bool> CanAccessPeer(Device& peer) = 0;
  virtual Done EnablePeer(Device& peer) = 0;
  // From this device's memory to the peer's, over the direct path where EnablePeer opened it.
  virtual Done QueueCopyPeer(Device& peer, const Buffer& to, const Buffer& from,
                             std::uint64_t bytes) = 0;
  // Device time from the one to the other, in nanoseconds: of what was queued between them.
  virtual Done StartTimer() = 0;
  virtual Outcome<double> StopTimer(Deadline deadline) = 0;
  virtual Telemetry Sample() = 0;
  // What a simulated device claims as its rate in the unit of `check`, one value a sample, drawn
  // from its description with `seed`. Nothing on devices that are to be measured.
  virtual std::optional<std::vector<double>> ModelledRates(std::string_view check,
                                                           std::uint64_t seed,
                                                           std::size_t samples) const {
    (void)check, (void)seed, (void)samples;
    return std::nullopt;
  }
  // Why a clean result over `buffer` would say less than it seems (a simulated fault lies outside).
  virtual std::optional<std::string> UntestedReason(const Buffer& buffer) const = 0;
};

// A vendor's library, or the host. Thread-safe.
class Backend {
 public:
  virtual ~Backend() = default;

  virtual BackendKind kind() const = 0;
  virtual Outcome<std::vector<DeviceInfo>> Enumerate() = 0;
  // `id` is a device's id or PCI address (MatchesId).
  virtual Outcome<std::unique_ptr<Device>> Open(std::string_view id) = 0;
};

// True where `id` names the device: its id, or its PCI address with or without a domain of zeros;
// letters in either case.
bool MatchesId(const DeviceInfo& info, std::string_view id);

// Owns a buffer for as long as the device lives. REQUIRES: outlived by the device.
class DeviceBuffer {
 public:
  static Outcome<DeviceBuffer> Make(Device& device, std::uint64_t bytes);
  DeviceBuffer(DeviceBuffer&& other) noexcept;
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept;
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;
  ~DeviceBuffer();

  const Buffer& get() const { return buffer_; }
  template <class T>
  T* address() const {
    return reinterpret_cast<T*>(buffer_.address);
  }

 private:
  DeviceBuffer(Device& device, Buffer buffer) : device_(&device), buffer_(buffer) {}
  void Release();

  Device* device_ = nullptr;
  Buffer buffer_;
};

// Owns pinned host memory for as long as the device lives. REQUIRES: outlived by the device.
class PinnedMemory {
 public:
  static Outcome<PinnedMemory> Make(Device& device, std::uint64_t bytes);
  PinnedMemory(PinnedMemory&& other) noexcept;
  PinnedMemory& operator=(PinnedMemory&& other) = delete;
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;
  ~PinnedMemory();

  const PinnedBuffer& get() const { return buffer_; }
  std::span<std::byte> bytes() const { return {buffer_.data, buffer_.bytes}; }

 private:
  PinnedMemory(Device& device, PinnedBuffer buffer) : device_(&device), buffer_(buffer) {}

  Device* device_ = nullptr;
  PinnedBuffer buffer_;
};

// Launch with a typed argument struct.
template <class Args>
Done LaunchWith(Device& device, const ModuleImage& module, std::string_view kernel,
                LaunchShape shape, const Args& args) {
  return device.Launch(module, kernel, shape, std::as_bytes(std::span<const Args, 1>(&args, 1)));
}

}  // namespace bimetal::kernels
