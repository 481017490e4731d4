#include "kernels/device/host/host_device.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>
#include <utility>

#include "kernels/device/trace.h"

namespace bimetal::kernels {
namespace {

constexpr std::uint64_t kPage = 4096;

std::uint64_t RoundUp(std::uint64_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

// What a bad link does: one bit differs at the other end.
void Move(std::byte* to, const std::byte* from, std::uint64_t bytes, bool corrupt) {
  std::memcpy(to, from, bytes);
  if (corrupt && bytes > 0) to[bytes / 2] ^= std::byte{0x10};
}

}  // namespace

HostDevice::HostDevice(HostDeviceSpec spec) : spec_(std::move(spec)) {}

HostDevice::~HostDevice() {
  for (const auto& [offset, buffer] : buffers_) {
    munmap(reinterpret_cast<void*>(buffer.address), RoundUp(buffer.bytes));
  }
}

const HostFault* HostDevice::Find(HostFault::Kind kind) const {
  const auto found = std::find_if(spec_.faults.begin(), spec_.faults.end(),
                                  [kind](const HostFault& fault) { return fault.kind == kind; });
  return found == spec_.faults.end() ? nullptr : &*found;
}

Done HostDevice::Enter(const char* call) const {
  const ScopedCall scope(call);
  for (const HostFault& fault : spec_.faults) {
    if (fault.kind == HostFault::Kind::kHang && fault.call == call) HangForever();
  }
  if (wedged_) {
    return DeviceError{DeviceErrorCode::kTimeout, "device " + spec_.info.id +
                                                      " still runs a kernel that missed its "
                                                      "deadline"};
  }
  if (!vanished_) return Success();
  return DeviceError{DeviceErrorCode::kLost, "device " + spec_.info.id + " is gone"};
}

std::uint64_t HostDevice::Limit() const {
  return std::min(spec_.info.memory_bytes, kHostMemoryLimit);
}

Done HostDevice::Fits(const Buffer& buffer, std::uint64_t bytes) const {
  if (bytes <= buffer.bytes) return Success();
  return DeviceError{DeviceErrorCode::kFailed,
                     "device " + spec_.info.id + ": copy is larger than its buffer"};
}

Outcome<MemoryInfo> HostDevice::QueryMemory() {
  KERNELS_TRY(Enter("memory info"));
  std::uint64_t used = 0;
  for (const auto& [offset, buffer] : buffers_) used += RoundUp(buffer.bytes);
  return MemoryInfo{Limit() - std::min(used, Limit()), Limit()};
}

Outcome<Buffer> HostDevice::Allocate(std::uint64_t bytes) {
  KERNELS_TRY(Enter("allocate"));
  const DeviceError full{DeviceErrorCode::kOutOfMemory,
                         "device " + spec_.info.id + ": no room for " + std::to_string(bytes) +
                             " bytes (the host back end holds at most " + std::to_string(Limit()) +
                             " bytes a device)"};
  if (bytes == 0 || bytes > Limit() || Has(HostFault::Kind::kNoMemory)) return full;
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
  KERNELS_TRY(Enter("upload"));
  KERNELS_TRY(Fits(buffer, data.size()));
  Move(reinterpret_cast<std::byte*>(buffer.address), data.data(), data.size(),
       Has(HostFault::Kind::kCorruptHost));
  ApplyMemoryFaults();
  return Success();
}

Done HostDevice::Download(const Buffer& buffer, std::span<std::byte> data) {
  KERNELS_TRY(Enter("download"));
  KERNELS_TRY(Fits(buffer, data.size()));
  // Small records of the checks come whole: their tokens are of other checks' concern.
  std::memcpy(data.data(), reinterpret_cast<const void*>(buffer.address), data.size());
  return Success();
}

Outcome<PinnedBuffer> HostDevice::AllocatePinned(std::uint64_t bytes) {
  KERNELS_TRY(Enter("allocate"));
  if (bytes == 0 || bytes > kHostMemoryLimit) {
    return DeviceError{DeviceErrorCode::kOutOfMemory, "device " + spec_.info.id + ": no room for " +
                                                          std::to_string(bytes) +
                                                          " bytes of pinned memory"};
  }
  auto memory = std::make_unique<std::byte[]>(bytes);
  const PinnedBuffer buffer{memory.get(), bytes};
  pinned_[buffer.data] = std::move(memory);
  return buffer;
}

Done HostDevice::FreePinned(const PinnedBuffer& buffer) {
  pinned_.erase(buffer.data);
  return Success();
}

Done HostDevice::QueueMove(std::byte* to, const std::byte* from, std::uint64_t bytes,
                           HostFault::Kind corrupt) {
  KERNELS_TRY(Enter("copy"));
  const bool bad = Has(corrupt);
  pending_.push_back({nullptr, {}, {}, [=] { Move(to, from, bytes, bad); }});
  return Success();
}

Done HostDevice::QueueUpload(const Buffer& to, const PinnedBuffer& from, std::uint64_t bytes) {
  KERNELS_TRY(Fits(to, bytes));
  return QueueMove(reinterpret_cast<std::byte*>(to.address), from.data, bytes,
                   HostFault::Kind::kCorruptHost);
}

Done HostDevice::QueueDownload(const PinnedBuffer& to, const Buffer& from, std::uint64_t bytes) {
  KERNELS_TRY(Fits(from, bytes));
  return QueueMove(to.data, reinterpret_cast<const std::byte*>(from.address), bytes,
                   HostFault::Kind::kCorruptHost);
}

Done HostDevice::QueueCopy(const Buffer& to, const Buffer& from, std::uint64_t bytes) {
  KERNELS_TRY(Enter("copy"));
  KERNELS_TRY(Fits(to, bytes));
  KERNELS_TRY(Fits(from, bytes));
  pending_.push_back({nullptr, {}, {}, [=] {
                        std::memcpy(reinterpret_cast<void*>(to.address),
                                    reinterpret_cast<const void*>(from.address), bytes);
                      }});
  return Success();
}

Outcome<bool> HostDevice::CanAccessPeer(Device& peer) {
  KERNELS_TRY(Enter("peer"));
  auto* other = dynamic_cast<HostDevice*>(&peer);
  if (other == nullptr) {
    return DeviceError{DeviceErrorCode::kFailed, "device " + spec_.info.id + " and device " +
                                                     peer.info().id + " are of two back ends"};
  }
  return !Has(HostFault::Kind::kLinkDown) && !other->Has(HostFault::Kind::kLinkDown);
}

Done HostDevice::EnablePeer(Device&) { return Enter("peer"); }

Done HostDevice::QueueCopyPeer(Device& peer, const Buffer& to, const Buffer& from,
                               std::uint64_t bytes) {
  KERNELS_TRY(Enter("copy"));
  KERNELS_TRY(Fits(to, bytes));
  KERNELS_TRY(Fits(from, bytes));
  auto* other = dynamic_cast<HostDevice*>(&peer);
  if (other == nullptr) {
    return DeviceError{DeviceErrorCode::kFailed, "device " + spec_.info.id + " and device " +
                                                     peer.info().id + " are of two back ends"};
  }
  KERNELS_TRY(other->Enter("copy"));
  const bool bad = Has(HostFault::Kind::kCorruptPeer) || other->Has(HostFault::Kind::kCorruptPeer);
  pending_.push_back({nullptr, {}, {}, [=] {
                        Move(reinterpret_cast<std::byte*>(to.address),
                             reinterpret_cast<const std::byte*>(from.address), bytes, bad);
                        other->ApplyMemoryFaults();
                      }});
  return Success();
}

Done HostDevice::Launch(const ModuleImage& module, std::string_view kernel, LaunchShape shape,
                        std::span<const std::byte> args) {
  if (Has(HostFault::Kind::kVanish)) vanished_ = true;
  KERNELS_TRY(Enter("launch"));
  loaded_ = true;
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
  pending_.push_back({found, shape, {args.begin(), args.end()}, {}});
  return Success();
}

Done HostDevice::Synchronize(Deadline deadline) {
  KERNELS_TRY(Enter("wait"));
  const std::vector<Pending> queue = std::exchange(pending_, {});
  const auto first = std::find_if(queue.begin(), queue.end(),
                                  [](const Pending& pending) { return pending.kernel != nullptr; });
  const DeviceError late{DeviceErrorCode::kTimeout,
                         "device " + spec_.info.id + ": " +
                             (first == queue.end() ? std::string("a copy")
                                                   : std::string("kernel ") + first->kernel->name) +
                             " did not finish in time"};
  const HostFault* hang = Find(HostFault::Kind::kHang);
  if (hang != nullptr && hang->call.empty() && first != queue.end()) {
    std::this_thread::sleep_until(deadline);
    wedged_ = true;
    return late;
  }
  for (const Pending& pending : queue) {
    if (pending.kernel == nullptr) {
      if (std::chrono::steady_clock::now() >= deadline) return late;
      pending.action();
    } else if (!Has(HostFault::Kind::kSkip) && !Run(pending, deadline)) {
      return late;
    }
    ApplyMemoryFaults();
  }
  return Success();
}

Done HostDevice::StartTimer() {
  KERNELS_TRY(Enter("event"));
  pending_.push_back(
      {nullptr, {}, {}, [this] { timer_begin_ = std::chrono::steady_clock::now(); }});
  return Success();
}

Outcome<double> HostDevice::StopTimer(Deadline deadline) {
  KERNELS_TRY(Enter("event"));
  pending_.push_back({nullptr, {}, {}, [this] { timer_end_ = std::chrono::steady_clock::now(); }});
  KERNELS_TRY(Synchronize(deadline));
  return std::chrono::duration<double, std::nano>(timer_end_ - timer_begin_).count();
}

Telemetry HostDevice::Sample() {
  Telemetry out;
  // The processor's own sensors say nothing about a kernel; a simulated device counts its errors.
  if (spec_.rates.empty()) return out;
  const HostFault* errors = Find(HostFault::Kind::kErrors);
  out.uncorrected_errors = errors != nullptr && loaded_ ? errors->count : 0;
  return out;
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
                                          kHostMaxThreads, launch.shape.blocks}) -
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
