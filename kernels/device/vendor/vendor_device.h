#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "kernels/device/device.h"
#include "kernels/device/vendor/call.h"
#include "kernels/device/vendor/monitor.h"

namespace bimetal::kernels {

// One opened GPU with one stream: the bookkeeping that both vendors share. `Vendor` (CudaVendor,
// HipVendor) is one device's access to its library: types Module, Function, Stream, Event; each
// method makes one call and returns it as VendorCall.
template <class Vendor>
class VendorDevice final : public Device {
 public:
  static Outcome<std::unique_ptr<Device>> Open(Vendor vendor, DeviceInfo info,
                                               std::unique_ptr<Monitor> monitor) {
    auto opened = std::unique_ptr<VendorDevice>(
        new VendorDevice(std::move(vendor), std::move(info), std::move(monitor)));
    KERNELS_TRY(opened->Check(opened->vendor_.Retain()));
    opened->retained_ = true;
    KERNELS_TRY(opened->Enter());
    KERNELS_TRY(opened->Check(opened->vendor_.CreateStream(&opened->stream_)));
    return std::unique_ptr<Device>(std::move(opened));
  }

  ~VendorDevice() override {
    if (!retained_ || !Enter().ok()) return;
    for (const auto& [image, module] : modules_) vendor_.UnloadModule(module);
    if (begin_ != nullptr) vendor_.DestroyEvent(begin_);
    if (end_ != nullptr) vendor_.DestroyEvent(end_);
    if (stream_ != nullptr) vendor_.DestroyStream(stream_);
    vendor_.Release();
  }
  VendorDevice(const VendorDevice&) = delete;
  VendorDevice& operator=(const VendorDevice&) = delete;

  const DeviceInfo& info() const override { return info_; }

  Outcome<MemoryInfo> QueryMemory() override {
    KERNELS_TRY(Enter());
    std::size_t free_bytes = 0;
    std::size_t total_bytes = 0;
    KERNELS_TRY(Check(vendor_.MemoryInfo(&free_bytes, &total_bytes)));
    return MemoryInfo{free_bytes, total_bytes};
  }

  Outcome<Buffer> Allocate(std::uint64_t bytes) override {
    KERNELS_TRY(Enter());
    std::uint64_t address = 0;
    KERNELS_TRY(
        Check(vendor_.Allocate(&address, bytes), " of " + std::to_string(bytes) + " bytes"));
    return Buffer{address, bytes, 0};
  }
  Done Free(const Buffer& buffer) override {
    KERNELS_TRY(Enter());
    return Check(vendor_.Free(buffer.address));
  }
  Done Upload(const Buffer& buffer, std::span<const std::byte> data) override {
    KERNELS_TRY(Enter());
    KERNELS_TRY(Fits(buffer, data.size()));
    return Check(vendor_.Upload(buffer.address, data.data(), data.size()));
  }
  Done Download(const Buffer& buffer, std::span<std::byte> data) override {
    KERNELS_TRY(Enter());
    KERNELS_TRY(Fits(buffer, data.size()));
    return Check(vendor_.Download(data.data(), buffer.address, data.size()));
  }

  Outcome<PinnedBuffer> AllocatePinned(std::uint64_t bytes) override {
    KERNELS_TRY(Enter());
    void* data = nullptr;
    KERNELS_TRY(
        Check(vendor_.AllocatePinned(&data, bytes), " of " + std::to_string(bytes) + " bytes"));
    return PinnedBuffer{static_cast<std::byte*>(data), bytes};
  }
  Done FreePinned(const PinnedBuffer& buffer) override {
    KERNELS_TRY(Enter());
    return Check(vendor_.FreePinned(buffer.data));
  }

  Done QueueUpload(const Buffer& to, const PinnedBuffer& from, std::uint64_t bytes) override {
    KERNELS_TRY(Enter());
    KERNELS_TRY(Fits(to, bytes));
    return Check(vendor_.QueueUpload(to.address, from.data, bytes, stream_));
  }
  Done QueueDownload(const PinnedBuffer& to, const Buffer& from, std::uint64_t bytes) override {
    KERNELS_TRY(Enter());
    KERNELS_TRY(Fits(from, bytes));
    return Check(vendor_.QueueDownload(to.data, from.address, bytes, stream_));
  }
  Done QueueCopy(const Buffer& to, const Buffer& from, std::uint64_t bytes) override {
    KERNELS_TRY(Enter());
    KERNELS_TRY(Fits(to, bytes));
    KERNELS_TRY(Fits(from, bytes));
    return Check(vendor_.QueueCopy(to.address, from.address, bytes, stream_));
  }

  Outcome<bool> CanAccessPeer(Device& peer) override {
    KERNELS_TRY_ASSIGN(VendorDevice * other, Same(peer));
    KERNELS_TRY(Enter());
    int can = 0;
    KERNELS_TRY(Check(vendor_.CanAccessPeer(&can, other->vendor_)));
    return can != 0;
  }
  Done EnablePeer(Device& peer) override {
    KERNELS_TRY_ASSIGN(VendorDevice * other, Same(peer));
    KERNELS_TRY(Enter());
    const VendorCall call = vendor_.EnablePeer(other->vendor_);
    // Enabled by an earlier check of this process.
    return call.code == Vendor::kPeerAlreadyEnabled ? Success() : Check(call);
  }
  Done QueueCopyPeer(Device& peer, const Buffer& to, const Buffer& from,
                     std::uint64_t bytes) override {
    KERNELS_TRY_ASSIGN(VendorDevice * other, Same(peer));
    KERNELS_TRY(Enter());
    KERNELS_TRY(Fits(to, bytes));
    KERNELS_TRY(Fits(from, bytes));
    return Check(vendor_.QueueCopyPeer(to.address, other->vendor_, from.address, bytes, stream_));
  }

  Done Launch(const ModuleImage& module, std::string_view kernel, LaunchShape shape,
              std::span<const std::byte> args) override {
    KERNELS_TRY(Enter());
    KERNELS_TRY_ASSIGN(const Function function, Find(module, std::string(kernel)));
    // The library takes pointers to mutable arguments and copies what they point to.
    std::vector<std::byte> copy(args.begin(), args.end());
    void* params[] = {copy.data()};
    return Check(vendor_.Launch(function, shape, stream_, params), " of " + std::string(kernel));
  }

  // Waits busily at first: a rate of short launches must not measure the sleep.
  Done Synchronize(Deadline deadline) override {
    KERNELS_TRY(Enter());
    const auto busy_until = std::chrono::steady_clock::now() + kBusyWait;
    for (;;) {
      const VendorCall call = vendor_.QueryStream(stream_);
      if (call.code != Vendor::kNotReady) return Check(call);
      const auto now = std::chrono::steady_clock::now();
      if (now >= deadline) {
        wedged_ = true;
        return DeviceError{DeviceErrorCode::kTimeout,
                           "device " + info_.id + ": a kernel did not finish in time"};
      }
      if (now >= busy_until) std::this_thread::sleep_for(kPollInterval);
    }
  }

  Done StartTimer() override {
    KERNELS_TRY(Enter());
    if (begin_ == nullptr) KERNELS_TRY(Check(vendor_.CreateEvent(&begin_)));
    if (end_ == nullptr) KERNELS_TRY(Check(vendor_.CreateEvent(&end_)));
    return Check(vendor_.RecordEvent(begin_, stream_));
  }
  Outcome<double> StopTimer(Deadline deadline) override {
    KERNELS_TRY(Enter());
    KERNELS_TRY(Check(vendor_.RecordEvent(end_, stream_)));
    KERNELS_TRY(Synchronize(deadline));
    float milliseconds = 0;
    KERNELS_TRY(Check(vendor_.ElapsedTime(&milliseconds, begin_, end_)));
    return static_cast<double>(milliseconds) * 1e6;
  }

  Telemetry Sample() override { return monitor_ == nullptr ? Telemetry{} : monitor_->Sample(); }
  std::optional<std::string> UntestedReason(const Buffer&) const override { return std::nullopt; }

 private:
  using Module = typename Vendor::Module;
  using Function = typename Vendor::Function;

  static constexpr auto kBusyWait = std::chrono::milliseconds(2);
  static constexpr auto kPollInterval = std::chrono::microseconds(200);

  VendorDevice(Vendor vendor, DeviceInfo info, std::unique_ptr<Monitor> monitor)
      : vendor_(std::move(vendor)), info_(std::move(info)), monitor_(std::move(monitor)) {}

  Done Check(VendorCall call, const std::string& more = "") const {
    return vendor_.Check(call.code, "device " + info_.id + ": " + call.name + more);
  }
  // Selects the device on the calling thread. Error kTimeout once the device is wedged.
  Done Enter() const {
    if (wedged_) {
      return DeviceError{DeviceErrorCode::kTimeout,
                         "device " + info_.id + " still runs a kernel that missed its deadline"};
    }
    return Check(vendor_.Activate());
  }
  Done Fits(const Buffer& buffer, std::uint64_t bytes) const {
    if (bytes <= buffer.bytes) return Success();
    return DeviceError{DeviceErrorCode::kFailed,
                       "device " + info_.id + ": copy is larger than its buffer"};
  }
  Outcome<VendorDevice*> Same(Device& peer) const {
    if (auto* other = dynamic_cast<VendorDevice*>(&peer)) return other;
    return DeviceError{DeviceErrorCode::kFailed, "device " + info_.id + " and device " +
                                                     peer.info().id + " are of two back ends"};
  }
  Outcome<Function> Find(const ModuleImage& module, const std::string& kernel) {
    const auto known = functions_.find({&module, kernel});
    if (known != functions_.end()) return known->second;
    auto loaded = modules_.find(&module);
    if (loaded == modules_.end()) {
      KERNELS_TRY_ASSIGN(const Module handle, vendor_.LoadModule(module, info_));
      loaded = modules_.emplace(&module, handle).first;
    }
    Function function = nullptr;
    KERNELS_TRY(
        Check(vendor_.GetFunction(&function, loaded->second, kernel.c_str()), " of " + kernel));
    functions_[{&module, kernel}] = function;
    return function;
  }

  Vendor vendor_;
  DeviceInfo info_;
  std::unique_ptr<Monitor> monitor_;
  bool retained_ = false;
  typename Vendor::Stream stream_ = nullptr;
  typename Vendor::Event begin_ = nullptr;
  typename Vendor::Event end_ = nullptr;
  std::map<const ModuleImage*, Module> modules_;
  std::map<std::pair<const ModuleImage*, std::string>, Function> functions_;
  bool wedged_ = false;  // a kernel outlived its deadline: every call that waits would hang
};

}  // namespace bimetal::kernels
