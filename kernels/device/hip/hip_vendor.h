#pragma once

#include <memory>
#include <string>
#include <utility>

#include "kernels/device/device.h"
#include "kernels/device/hip/module_api.h"
#include "kernels/device/vendor/call.h"

namespace bimetal::kernels {

// One AMD device (a GCD, or a partition), for VendorDevice.
class HipVendor {
 public:
  using Module = hip::HipModule;
  using Function = hip::HipFunction;
  using Stream = hip::HipStream;
  using Event = hip::HipEvent;
  static constexpr int kNotReady = hip::kErrorNotReady;
  static constexpr int kPeerAlreadyEnabled = hip::kErrorPeerAccessAlreadyEnabled;

  HipVendor(std::shared_ptr<const hip::ModuleApi> api, int ordinal)
      : api_(std::move(api)), ordinal_(ordinal) {}

  Done Check(int code, const std::string& what) const { return hip::Check(*api_, code, what); }

  VendorCall Retain() { return Activate(); }
  void Release() {}
  VendorCall Activate() const { return Invoke("hipSetDevice", api_->set_device, ordinal_); }
  VendorCall CreateStream(Stream* stream) {
    return Invoke("hipStreamCreate", api_->stream_create, stream, hip::kStreamNonBlocking);
  }
  VendorCall QueryStream(Stream stream) {
    return Invoke("hipStreamQuery", api_->stream_query, stream);
  }
  VendorCall DestroyStream(Stream stream) {
    return Invoke("hipStreamDestroy", api_->stream_destroy, stream);
  }
  VendorCall MemoryInfo(std::size_t* free_bytes, std::size_t* total_bytes) {
    return Invoke("hipMemGetInfo", api_->mem_get_info, free_bytes, total_bytes);
  }
  VendorCall Allocate(std::uint64_t* address, std::uint64_t bytes) {
    hip::HipDevicePtr pointer = nullptr;
    const VendorCall call = Invoke("hipMalloc", api_->malloc, &pointer, bytes);
    *address = reinterpret_cast<std::uint64_t>(pointer);
    return call;
  }
  VendorCall Free(std::uint64_t address) { return Invoke("hipFree", api_->free, Pointer(address)); }
  VendorCall AllocatePinned(void** data, std::uint64_t bytes) {
    return Invoke("hipHostMalloc", api_->host_malloc, data, bytes, hip::kHostMallocPortable);
  }
  VendorCall FreePinned(void* data) { return Invoke("hipHostFree", api_->host_free, data); }
  // HIP's source pointers lack the const that it honours.
  VendorCall Upload(std::uint64_t to, const void* from, std::uint64_t bytes) {
    return Invoke("hipMemcpyHtoD", api_->memcpy_to_device, Pointer(to), const_cast<void*>(from),
                  bytes);
  }
  VendorCall Download(void* to, std::uint64_t from, std::uint64_t bytes) {
    return Invoke("hipMemcpyDtoH", api_->memcpy_to_host, to, Pointer(from), bytes);
  }
  VendorCall QueueUpload(std::uint64_t to, const void* from, std::uint64_t bytes, Stream stream) {
    return Invoke("hipMemcpyHtoDAsync", api_->memcpy_to_device_async, Pointer(to),
                  const_cast<void*>(from), bytes, stream);
  }
  VendorCall QueueDownload(void* to, std::uint64_t from, std::uint64_t bytes, Stream stream) {
    return Invoke("hipMemcpyDtoHAsync", api_->memcpy_to_host_async, to, Pointer(from), bytes,
                  stream);
  }
  VendorCall QueueCopy(std::uint64_t to, std::uint64_t from, std::uint64_t bytes, Stream stream) {
    return Invoke("hipMemcpyDtoDAsync", api_->memcpy_device_async, Pointer(to), Pointer(from),
                  bytes, stream);
  }
  VendorCall CanAccessPeer(int* can, const HipVendor& peer) {
    return Invoke("hipDeviceCanAccessPeer", api_->device_can_access_peer, can, ordinal_,
                  peer.ordinal_);
  }
  VendorCall EnablePeer(const HipVendor& peer) {
    return Invoke("hipDeviceEnablePeerAccess", api_->device_enable_peer_access, peer.ordinal_, 0u);
  }
  VendorCall QueueCopyPeer(std::uint64_t to, const HipVendor& peer, std::uint64_t from,
                           std::uint64_t bytes, Stream stream) {
    return Invoke("hipMemcpyPeerAsync", api_->memcpy_peer_async, Pointer(to), peer.ordinal_,
                  static_cast<const void*>(Pointer(from)), ordinal_, bytes, stream);
  }
  VendorCall CreateEvent(Event* event) {
    return Invoke("hipEventCreate", api_->event_create, event);
  }
  VendorCall RecordEvent(Event event, Stream stream) {
    return Invoke("hipEventRecord", api_->event_record, event, stream);
  }
  VendorCall ElapsedTime(float* milliseconds, Event begin, Event end) {
    return Invoke("hipEventElapsedTime", api_->event_elapsed_time, milliseconds, begin, end);
  }
  VendorCall DestroyEvent(Event event) {
    return Invoke("hipEventDestroy", api_->event_destroy, event);
  }
  // The image of the device's own architecture; where the library does not name it, the first image
  // that loads (a code object of another architecture is refused). Error kNoKernel where none fits.
  Outcome<Module> LoadModule(const ModuleImage& module, const DeviceInfo& info);
  VendorCall UnloadModule(Module module) {
    return Invoke("hipModuleUnload", api_->module_unload, module);
  }
  VendorCall GetFunction(Function* function, Module module, const char* name) {
    return Invoke("hipModuleGetFunction", api_->module_get_function, function, module, name);
  }
  VendorCall Launch(Function function, LaunchShape shape, Stream stream, void** params) {
    return Invoke("hipModuleLaunchKernel", api_->module_launch_kernel, function, shape.blocks, 1u,
                  1u, shape.threads, 1u, 1u, 0u, stream, params, static_cast<void**>(nullptr));
  }

 private:
  static hip::HipDevicePtr Pointer(std::uint64_t address) {
    return reinterpret_cast<hip::HipDevicePtr>(address);
  }

  std::shared_ptr<const hip::ModuleApi> api_;
  int ordinal_;
};

}  // namespace bimetal::kernels
