// A libcuda.so.1 over the host-compiled kernels.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "kernels/device/cuda/driver_api.h"
#include "tests/unit/kernels/device/fake_gpu.h"

namespace kernels = bimetal::kernels;
namespace cuda = bimetal::kernels::cuda;
using cuda::CuResult;

namespace {

std::chrono::steady_clock::time_point Never() {
  return std::chrono::steady_clock::now() + std::chrono::hours(1);
}

// A library that does not let its process end.
struct AtExit {
  ~AtExit() {
    if (std::getenv("FAKE_CUDA_HANGS_AT_EXIT") != nullptr) std::this_thread::sleep_until(Never());
  }
} at_exit;

}  // namespace

extern "C" {

CuResult cuInit(unsigned) {
  // As a driver does on a sick GPU.
  if (std::getenv("FAKE_CUDA_HANGS") != nullptr) std::this_thread::sleep_until(Never());
  if (std::getenv("FAKE_CUDA_CRASHES") != nullptr) std::abort();
  return fake_state.devices == 0 ? cuda::kErrorNoDevice : 0;
}
CuResult cuGetErrorName(CuResult, const char** text) { return *text = "FAKE_ERROR", 0; }
CuResult cuGetErrorString(CuResult, const char** text) { return *text = "fake error", 0; }
CuResult cuDeviceGetCount(int* count) { return *count = fake_state.devices, 0; }
CuResult cuDeviceGet(int* device, int ordinal) { return *device = ordinal + 100, 0; }
CuResult cuDeviceGetName(char* name, int len, int) {
  std::snprintf(name, static_cast<std::size_t>(len), "Fake H200");
  return 0;
}
CuResult cuDeviceGetUuid_v2(cuda::CuUuid* uuid, int device) {
  std::memset(uuid->bytes, device, sizeof(uuid->bytes));
  return 0;
}
CuResult cuDeviceGetPCIBusId(char* id, int len, int device) {
  std::snprintf(id, static_cast<std::size_t>(len), "0000:%02X:00.0", device);
  return 0;
}
CuResult cuDeviceGetAttribute(int* value, int attribute, int) {
  *value = attribute == cuda::kAttributeMultiprocessorCount
               ? fake_state.units + fake_state.idle_units
               : 9;
  if (attribute == cuda::kAttributeComputeCapabilityMinor) *value = 0;
  return 0;
}
CuResult cuDeviceTotalMem_v2(std::size_t* bytes, int) { return *bytes = 8u << 20, 0; }
CuResult cuDevicePrimaryCtxRetain(cuda::CuContext* context, int device) {
  *context = reinterpret_cast<cuda::CuContext>(static_cast<std::size_t>(device));
  return 0;
}
CuResult cuDevicePrimaryCtxRelease_v2(int) { return 0; }
CuResult cuCtxSetCurrent(cuda::CuContext) { return 0; }
CuResult cuMemGetInfo_v2(std::size_t* free_bytes, std::size_t* total) {
  *free_bytes = fake_state.free_bytes;
  *total = 8u << 20;
  return 0;
}
CuResult cuMemAlloc_v2(cuda::CuDevicePtr* address, std::size_t bytes) {
  if (fake_state.alloc_error != 0) return fake_state.alloc_error;
  *address = reinterpret_cast<cuda::CuDevicePtr>(bimetal::fake::Allocate(bytes));
  return 0;
}
CuResult cuMemFree_v2(cuda::CuDevicePtr address) {
  bimetal::fake::Release(reinterpret_cast<void*>(address));
  return 0;
}
CuResult cuMemcpyHtoD_v2(cuda::CuDevicePtr to, const void* from, std::size_t bytes) {
  std::memcpy(reinterpret_cast<void*>(to), from, bytes);
  return 0;
}
CuResult cuMemcpyDtoH_v2(void* to, cuda::CuDevicePtr from, std::size_t bytes) {
  std::memcpy(to, reinterpret_cast<const void*>(from), bytes);
  return 0;
}
CuResult cuMemHostAlloc(void** data, std::size_t bytes, unsigned) {
  return *data = bimetal::fake::Allocate(bytes), 0;
}
CuResult cuMemFreeHost(void* data) { return bimetal::fake::Release(data), 0; }
CuResult cuMemcpyHtoDAsync_v2(cuda::CuDevicePtr to, const void* from, std::size_t bytes,
                              cuda::CuStream) {
  bimetal::fake::Move(reinterpret_cast<void*>(to), from, bytes, fake_state.corrupt_host);
  return 0;
}
CuResult cuMemcpyDtoHAsync_v2(void* to, cuda::CuDevicePtr from, std::size_t bytes, cuda::CuStream) {
  bimetal::fake::Move(to, reinterpret_cast<const void*>(from), bytes, fake_state.corrupt_host);
  return 0;
}
CuResult cuMemcpyDtoDAsync_v2(cuda::CuDevicePtr to, cuda::CuDevicePtr from, std::size_t bytes,
                              cuda::CuStream) {
  bimetal::fake::Move(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes,
                      false);
  return 0;
}
CuResult cuMemcpyPeerAsync(cuda::CuDevicePtr to, cuda::CuContext, cuda::CuDevicePtr from,
                           cuda::CuContext, std::size_t bytes, cuda::CuStream) {
  bimetal::fake::Move(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes,
                      fake_state.corrupt_peer);
  return 0;
}
CuResult cuDeviceCanAccessPeer(int* can, int, int) {
  return *can = fake_state.peers_reachable ? 1 : 0, 0;
}
CuResult cuCtxEnablePeerAccess(cuda::CuContext, unsigned) {
  return fake_state.peer_enabled_before ? cuda::kErrorPeerAccessAlreadyEnabled : 0;
}
CuResult cuEventCreate(cuda::CuEvent* event, unsigned) {
  return *event = reinterpret_cast<cuda::CuEvent>(&fake_state), 0;
}
CuResult cuEventRecord(cuda::CuEvent, cuda::CuStream) { return 0; }
CuResult cuEventElapsedTime(float* milliseconds, cuda::CuEvent, cuda::CuEvent) {
  return *milliseconds = fake_state.event_milliseconds, 0;
}
CuResult cuEventDestroy_v2(cuda::CuEvent) { return 0; }
CuResult cuModuleLoadData(cuda::CuModule* module, const void* image) {
  if (fake_state.load_error != 0) return fake_state.load_error;
  for (const kernels::ModuleImage* known : bimetal::fake::Modules()) {
    const auto bytes = known->cuda_fatbin;
    if (bytes.empty() || !bimetal::fake::IsSameImage(image, bytes)) continue;
    *module = reinterpret_cast<cuda::CuModule>(const_cast<kernels::ModuleImage*>(known));
    return 0;
  }
  return 200;  // invalid image
}
CuResult cuModuleUnload(cuda::CuModule) { return 0; }
CuResult cuModuleGetFunction(cuda::CuFunction* function, cuda::CuModule module, const char* name) {
  const auto* kernel =
      bimetal::fake::FindKernel(*reinterpret_cast<const kernels::ModuleImage*>(module), name);
  *function = reinterpret_cast<cuda::CuFunction>(const_cast<kernels::HostKernel*>(kernel));
  return kernel == nullptr ? 500 : 0;  // not found
}
CuResult cuLaunchKernel(cuda::CuFunction function, unsigned grid, unsigned, unsigned,
                        unsigned block, unsigned, unsigned, unsigned, cuda::CuStream, void** params,
                        void**) {
  if (fake_state.stalled) return 0;
  bimetal::fake::RunKernel(*reinterpret_cast<const kernels::HostKernel*>(function), grid, block,
                           params[0]);
  return 0;
}
CuResult cuStreamCreate(cuda::CuStream* stream, unsigned) {
  *stream = reinterpret_cast<cuda::CuStream>(&fake_state);
  return 0;
}
CuResult cuStreamQuery(cuda::CuStream) {
  return fake_state.stalled ? cuda::kErrorNotReady : fake_state.wait_error;
}
CuResult cuStreamDestroy_v2(cuda::CuStream) { return 0; }

}  // extern "C"
