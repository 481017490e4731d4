#pragma once

#include <memory>
#include <string>
#include <utility>

#include "kernels/device/cuda/driver_api.h"
#include "kernels/device/device.h"
#include "kernels/device/vendor/call.h"

namespace bimetal::kernels {

// One NVIDIA device with its primary context, for VendorDevice.
class CudaVendor {
 public:
  using Module = cuda::CuModule;
  using Function = cuda::CuFunction;
  using Stream = cuda::CuStream;
  using Event = cuda::CuEvent;
  static constexpr int kNotReady = cuda::kErrorNotReady;
  static constexpr int kPeerAlreadyEnabled = cuda::kErrorPeerAccessAlreadyEnabled;

  CudaVendor(std::shared_ptr<const cuda::DriverApi> api, cuda::CuDevice device)
      : api_(std::move(api)), device_(device) {}

  Done Check(int code, const std::string& what) const { return cuda::Check(*api_, code, what); }

  VendorCall Retain() {
    return Invoke("cuDevicePrimaryCtxRetain", api_->primary_ctx_retain, &context_, device_);
  }
  void Release() {
    Invoke("cuCtxSetCurrent", api_->ctx_set_current, cuda::CuContext{nullptr});
    Invoke("cuDevicePrimaryCtxRelease", api_->primary_ctx_release, device_);
  }
  VendorCall Activate() const { return Invoke("cuCtxSetCurrent", api_->ctx_set_current, context_); }
  VendorCall CreateStream(Stream* stream) {
    return Invoke("cuStreamCreate", api_->stream_create, stream, cuda::kStreamNonBlocking);
  }
  VendorCall QueryStream(Stream stream) {
    return Invoke("cuStreamQuery", api_->stream_query, stream);
  }
  VendorCall DestroyStream(Stream stream) {
    return Invoke("cuStreamDestroy", api_->stream_destroy, stream);
  }
  VendorCall MemoryInfo(std::size_t* free_bytes, std::size_t* total_bytes) {
    return Invoke("cuMemGetInfo", api_->mem_get_info, free_bytes, total_bytes);
  }
  VendorCall Allocate(std::uint64_t* address, std::uint64_t bytes) {
    cuda::CuDevicePtr pointer = 0;
    const VendorCall call = Invoke("cuMemAlloc", api_->mem_alloc, &pointer, bytes);
    *address = pointer;
    return call;
  }
  VendorCall Free(std::uint64_t address) {
    return Invoke("cuMemFree", api_->mem_free, cuda::CuDevicePtr{address});
  }
  VendorCall AllocatePinned(void** data, std::uint64_t bytes) {
    // Portable: copies of other devices may use it too.
    return Invoke("cuMemHostAlloc", api_->mem_host_alloc, data, bytes, cuda::kHostAllocPortable);
  }
  VendorCall FreePinned(void* data) { return Invoke("cuMemFreeHost", api_->mem_free_host, data); }
  VendorCall Upload(std::uint64_t to, const void* from, std::uint64_t bytes) {
    return Invoke("cuMemcpyHtoD", api_->memcpy_to_device, cuda::CuDevicePtr{to}, from, bytes);
  }
  VendorCall Download(void* to, std::uint64_t from, std::uint64_t bytes) {
    return Invoke("cuMemcpyDtoH", api_->memcpy_to_host, to, cuda::CuDevicePtr{from}, bytes);
  }
  VendorCall QueueUpload(std::uint64_t to, const void* from, std::uint64_t bytes, Stream stream) {
    return Invoke("cuMemcpyHtoDAsync", api_->memcpy_to_device_async, cuda::CuDevicePtr{to}, from,
                  bytes, stream);
  }
  VendorCall QueueDownload(void* to, std::uint64_t from, std::uint64_t bytes, Stream stream) {
    return Invoke("cuMemcpyDtoHAsync", api_->memcpy_to_host_async, to, cuda::CuDevicePtr{from},
                  bytes, stream);
  }
  VendorCall QueueCopy(std::uint64_t to, std::uint64_t from, std::uint64_t bytes, Stream stream) {
    return Invoke("cuMemcpyDtoDAsync", api_->memcpy_device_async, cuda::CuDevicePtr{to},
                  cuda::CuDevicePtr{from}, bytes, stream);
  }
  VendorCall CanAccessPeer(int* can, const CudaVendor& peer) {
    return Invoke("cuDeviceCanAccessPeer", api_->device_can_access_peer, can, device_,
                  peer.device_);
  }
  VendorCall EnablePeer(const CudaVendor& peer) {
    return Invoke("cuCtxEnablePeerAccess", api_->ctx_enable_peer_access, peer.context_, 0u);
  }
  VendorCall QueueCopyPeer(std::uint64_t to, const CudaVendor& peer, std::uint64_t from,
                           std::uint64_t bytes, Stream stream) {
    return Invoke("cuMemcpyPeerAsync", api_->memcpy_peer_async, cuda::CuDevicePtr{to},
                  peer.context_, cuda::CuDevicePtr{from}, context_, bytes, stream);
  }
  VendorCall CreateEvent(Event* event) {
    return Invoke("cuEventCreate", api_->event_create, event, 0u);
  }
  VendorCall RecordEvent(Event event, Stream stream) {
    return Invoke("cuEventRecord", api_->event_record, event, stream);
  }
  VendorCall ElapsedTime(float* milliseconds, Event begin, Event end) {
    return Invoke("cuEventElapsedTime", api_->event_elapsed_time, milliseconds, begin, end);
  }
  VendorCall DestroyEvent(Event event) {
    return Invoke("cuEventDestroy", api_->event_destroy, event);
  }
  // Error kNoKernel where the program carries none for this device.
  Outcome<Module> LoadModule(const ModuleImage& module, const DeviceInfo& info);
  VendorCall UnloadModule(Module module) {
    return Invoke("cuModuleUnload", api_->module_unload, module);
  }
  VendorCall GetFunction(Function* function, Module module, const char* name) {
    return Invoke("cuModuleGetFunction", api_->module_get_function, function, module, name);
  }
  VendorCall Launch(Function function, LaunchShape shape, Stream stream, void** params) {
    return Invoke("cuLaunchKernel", api_->launch_kernel, function, shape.blocks, 1u, 1u,
                  shape.threads, 1u, 1u, 0u, stream, params, static_cast<void**>(nullptr));
  }

 private:
  std::shared_ptr<const cuda::DriverApi> api_;
  cuda::CuDevice device_;
  cuda::CuContext context_ = nullptr;
};

}  // namespace bimetal::kernels
