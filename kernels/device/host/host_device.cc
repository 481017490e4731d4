#include "kernels/device/host/host_device.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>
#include <utility>

namespace bimetal::kernels {
namespace {

constexpr std::uint64_t kPage = 4096;
constexpr std::uint32_t kMaxPoolThreads = 4;

std::uint64_t RoundUp(std::uint64_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

}  // namespace

HostDevice::HostDevice(HostDeviceSpec spec) : spec_(std::move(spec)) {}

HostDevice::~HostDevice() {
  for (const auto& [offset, buffer] : buffers_) {
    munmap(reinterpret_cast<void*>(buffer.address), RoundUp(buffer.bytes));
  }
}

bool HostDevice::Has(HostFault::Kind kind) const {
  return std::any_of(spec_.faults.begin(), spec_.faults.end(),
                     [kind](const HostFault& fault) { return fault.kind == kind; });
}

Done HostDevice::CheckPresent() const {
  if (!vanished_) return Success();
  return DeviceError{DeviceErrorCode::kLost, "device " + spec_.info.id + " is gone"};
}

std::uint64_t HostDevice::Limit() const {
  return std::min(spec_.info.memory_bytes, kHostMemoryLimit);
}

Outcome<MemoryInfo> HostDevice::QueryMemory() {
  KERNELS_TRY(CheckPresent());
  std::uint64_t used = 0;
  for (const auto& [offset, buffer] : buffers_) used += RoundUp(buffer.bytes);
  return MemoryInfo{Limit() - std::min(used, Limit()), Limit()};
}

Outcome<Buffer> HostDevice::Allocate(std::uint64_t bytes) {
  KERNELS_TRY(CheckPresent());
  const DeviceError full{DeviceErrorCode::kOutOfMemory,
                         "device " + spec_.info.id + ": no room for " + std::to_string(bytes) +
                             " bytes (the host back end holds at most " + std::to_string(Limit()) +
                             " bytes a device)"};
  if (bytes == 0 || bytes > Limit()) return full;
  std::uint64_t offset = 0;
  for (const auto& [start, buffer] : buffers_) {
    if (offset + RoundUp(bytes) <= start) break;
    offset = start + RoundUp(buffer.bytes);
  }
  if (offset + bytes > Limit()) return full;
  void* pages =
      mmap(nullptr, RoundUp(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) return full;
  const Buffer buffer{reinterpret_cast<std::uint64_t>(pages), bytes, offset};
  buffers_[offset] = buffer;
  return buffer;
}

Done HostDevice::Free(const Buffer& buffer) {
  if (buffers_.erase(buffer.offset) == 1) {
    munmap(reinterpret_cast<void*>(buffer.address), RoundUp(buffer.bytes));
  }
  return Success();
}

Done HostDevice::Upload(const Buffer& buffer, std::span<const std::byte> data) {
  KERNELS_TRY(CheckPresent());
  if (data.size() > buffer.bytes) {
    return DeviceError{DeviceErrorCode::kFailed, "upload is larger than its buffer"};
  }
  std::memcpy(reinterpret_cast<void*>(buffer.address), data.data(), data.size());
  ApplyMemoryFaults();
  return Success();
}

Done HostDevice::Download(const Buffer& buffer, std::span<std::byte> data) {
  KERNELS_TRY(CheckPresent());
  if (data.size() > buffer.bytes) {
    return DeviceError{DeviceErrorCode::kFailed, "download is larger than its buffer"};
  }
  std::memcpy(data.data(), reinterpret_cast<const void*>(buffer.address), data.size());
  return Success();
}

Done HostDevice::Launch(const ModuleImage& module, std::string_view kernel, LaunchShape shape,
                        std::span<const std::byte> args) {
  if (Has(HostFault::Kind::kVanish)) vanished_ = true;
  KERNELS_TRY(CheckPresent());
  if (module.host == nullptr) {
    return DeviceError{DeviceErrorCode::kNoKernel,
                       "module " + std::string(module.name) + " has no host kernels"};
  }
  const HostKernel* end = module.host->kernels + module.host->count;
  const HostKernel* found = std::find_if(
      module.host->kernels, end, [kernel](const HostKernel& k) { return kernel == k.name; });
  if (found == end || found->args_bytes != args.size()) {
    return DeviceError{DeviceErrorCode::kNoKernel, "module " + std::string(module.name) +
                                                       " has no host kernel " +
                                                       std::string(kernel) + " of these arguments"};
  }
  pending_.push_back({found, shape, {args.begin(), args.end()}});
  return Success();
}

Done HostDevice::Synchronize(Deadline deadline) {
  KERNELS_TRY(CheckPresent());
  const std::vector<Pending> launches = std::exchange(pending_, {});
  if (launches.empty()) return Success();
  const DeviceError late{DeviceErrorCode::kTimeout, "device " + spec_.info.id + ": kernel " +
                                                        launches.front().kernel->name +
                                                        " did not finish in time"};
  if (Has(HostFault::Kind::kHang)) {
    std::this_thread::sleep_until(deadline);
    return late;
  }
  for (const Pending& launch : launches) {
    if (!Has(HostFault::Kind::kSkip) && !Run(launch, deadline)) return late;
    ApplyMemoryFaults();
  }
  return Success();
}

std::uint64_t HostDevice::AluFault(std::uint32_t unit) const {
  for (const HostFault& fault : spec_.faults) {
    if (fault.kind == HostFault::Kind::kCompute && fault.unit == unit) return 1ull << 17;
  }
  return 0;
}

void HostDevice::RunBlock(const Pending& launch, std::uint32_t block) const {
  host_thread.block = block;
  host_thread.block_threads = launch.shape.threads;
  host_thread.grid_threads = launch.shape.blocks * launch.shape.threads;
  host_thread.unit = block % std::max(1u, spec_.info.compute_units);
  host_thread.alu_fault = AluFault(host_thread.unit);
  for (std::uint32_t thread = 0; thread < launch.shape.threads; ++thread) {
    host_thread.thread = thread;
    launch.kernel->call(launch.args.data());
  }
  host_thread = HostThread{};
}

bool HostDevice::Run(const Pending& launch, Deadline deadline) const {
  std::atomic<std::uint32_t> next{0};
  std::atomic<bool> late{false};
  const auto work = [&] {
    for (std::uint32_t block = next++; block < launch.shape.blocks; block = next++) {
      if (std::chrono::steady_clock::now() >= deadline) late = true;
      if (late) return;
      RunBlock(launch, block);
    }
  };
  const std::uint32_t helpers = std::min({std::max(1u, std::thread::hardware_concurrency()),
                                          kMaxPoolThreads, launch.shape.blocks}) -
                                1;
  {
    std::vector<std::jthread> pool;
    for (std::uint32_t i = 0; i < helpers; ++i) pool.emplace_back(work);
    work();
  }
  return !late;
}

void HostDevice::ApplyMemoryFaults() {
  for (const HostFault& fault : spec_.faults) {
    if (fault.kind != HostFault::Kind::kMemory) continue;
    // Bit 8 and above lie in the following bytes of the little-endian word.
    const std::uint64_t place = fault.offset + fault.bit / 8;
    for (const auto& [start, buffer] : buffers_) {
      if (place < start || place >= start + buffer.bytes) continue;
      auto* byte = reinterpret_cast<unsigned char*>(buffer.address) + (place - start);
      const auto mask = static_cast<unsigned char>(1u << (fault.bit % 8));
      *byte = static_cast<unsigned char>(fault.stuck ? *byte | mask : *byte & ~mask);
    }
  }
}

std::optional<std::string> HostDevice::UntestedReason(const Buffer& buffer) const {
  for (const HostFault& fault : spec_.faults) {
    const std::uint64_t place = fault.offset + fault.bit / 8;
    if (fault.kind == HostFault::Kind::kMemory &&
        (place < buffer.offset || place >= buffer.offset + buffer.bytes)) {
      return "the declared memory fault at offset " + std::to_string(fault.offset) +
             " lies outside the tested region of " + std::to_string(buffer.bytes) + " bytes";
    }
  }
  return std::nullopt;
}

}  // namespace bimetal::kernels
