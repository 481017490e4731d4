// A libamdhip64.so.6 over the host-compiled kernels.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "kernels/device/hip/module_api.h"
#include "tests/unit/kernels/device/fake_gpu.h"

namespace kernels = bimetal::kernels;
namespace hip = bimetal::kernels::hip;
using hip::HipError;

extern "C" {

HipError hipInit(unsigned) { return fake_state.devices == 0 ? hip::kErrorNoDevice : 0; }
const char* hipGetErrorName(HipError) { return "hipErrorFake"; }
const char* hipGetErrorString(HipError) { return "fake error"; }
HipError hipGetDeviceCount(int* count) { return *count = fake_state.devices, 0; }
HipError hipSetDevice(int) { return 0; }
HipError hipDeviceGetName(char* name, int len, int) {
  std::snprintf(name, static_cast<std::size_t>(len), "Fake MI300X");
  return 0;
}
HipError hipDeviceGetUuid(hip::HipUuid* uuid, int device) {
  std::memcpy(uuid->bytes, "5a1b2c3d4e5f6071", sizeof(uuid->bytes));
  uuid->bytes[15] = static_cast<char>('0' + device);
  return 0;
}
HipError hipDeviceGetPCIBusId(char* id, int len, int device) {
  std::snprintf(id, static_cast<std::size_t>(len), "0000:%02x:00.0", device + 5);
  return 0;
}
HipError hipDeviceGetAttribute(int* value, int, int) {
  return *value = fake_state.units + fake_state.idle_units, 0;
}
HipError hipDeviceTotalMem(std::size_t* bytes, int) { return *bytes = 8u << 20, 0; }
HipError hipGetDevicePropertiesR0600(void* properties, int) {
  // As ROCm 6 lays it out: the name at 0, the architecture at 1160.
  auto* bytes = static_cast<char*>(properties);
  std::strcpy(bytes, "Fake MI300X");
  if (fake_state.tells_arch) std::sprintf(bytes + 1160, "%s:sramecc+:xnack-", fake_state.arch);
  return 0;
}
HipError hipMemGetInfo(std::size_t* free_bytes, std::size_t* total) {
  *free_bytes = fake_state.free_bytes;
  *total = 8u << 20;
  return 0;
}
HipError hipMalloc(void** address, std::size_t bytes) {
  if (fake_state.alloc_error != 0) return fake_state.alloc_error;
  return *address = bimetal::fake::Allocate(bytes), 0;
}
HipError hipFree(void* address) { return bimetal::fake::Release(address), 0; }
HipError hipMemcpyHtoD(void* to, void* from, std::size_t bytes) {
  return std::memcpy(to, from, bytes), 0;
}
HipError hipMemcpyDtoH(void* to, void* from, std::size_t bytes) {
  return std::memcpy(to, from, bytes), 0;
}
HipError hipHostMalloc(void** data, std::size_t bytes, unsigned) {
  return *data = bimetal::fake::Allocate(bytes), 0;
}
HipError hipHostFree(void* data) { return bimetal::fake::Release(data), 0; }
HipError hipMemcpyHtoDAsync(void* to, void* from, std::size_t bytes, hip::HipStream) {
  return bimetal::fake::Move(to, from, bytes, fake_state.corrupt_host), 0;
}
HipError hipMemcpyDtoHAsync(void* to, void* from, std::size_t bytes, hip::HipStream) {
  return bimetal::fake::Move(to, from, bytes, fake_state.corrupt_host), 0;
}
HipError hipMemcpyDtoDAsync(void* to, void* from, std::size_t bytes, hip::HipStream) {
  return bimetal::fake::Move(to, from, bytes, false), 0;
}
HipError hipMemcpyPeerAsync(void* to, int, const void* from, int, std::size_t bytes,
                            hip::HipStream) {
  return bimetal::fake::Move(to, from, bytes, fake_state.corrupt_peer), 0;
}
HipError hipDeviceCanAccessPeer(int* can, int, int) {
  return *can = fake_state.peers_reachable ? 1 : 0, 0;
}
HipError hipDeviceEnablePeerAccess(int, unsigned) {
  return fake_state.peer_enabled_before ? hip::kErrorPeerAccessAlreadyEnabled : 0;
}
HipError hipEventCreate(hip::HipEvent* event) {
  return *event = reinterpret_cast<hip::HipEvent>(&fake_state), 0;
}
HipError hipEventRecord(hip::HipEvent, hip::HipStream) { return 0; }
HipError hipEventElapsedTime(float* milliseconds, hip::HipEvent, hip::HipEvent) {
  return *milliseconds = fake_state.event_milliseconds, 0;
}
HipError hipEventDestroy(hip::HipEvent) { return 0; }
HipError hipModuleLoadData(hip::HipModule* module, const void* image) {
  if (fake_state.load_error != 0) return fake_state.load_error;
  for (const kernels::ModuleImage* known : bimetal::fake::Modules()) {
    for (const kernels::HipImage& code : known->hip_images) {
      if (code.arch != fake_state.arch) continue;
      if (!bimetal::fake::IsSameImage(image, code.bytes)) continue;
      *module = reinterpret_cast<hip::HipModule>(const_cast<kernels::ModuleImage*>(known));
      return 0;
    }
  }
  return hip::kErrorNoBinaryForGpu;
}
HipError hipModuleUnload(hip::HipModule) { return 0; }
HipError hipModuleGetFunction(hip::HipFunction* function, hip::HipModule module, const char* name) {
  const auto* kernel =
      bimetal::fake::FindKernel(*reinterpret_cast<const kernels::ModuleImage*>(module), name);
  *function = reinterpret_cast<hip::HipFunction>(const_cast<kernels::HostKernel*>(kernel));
  return kernel == nullptr ? 500 : 0;  // not found
}
HipError hipModuleLaunchKernel(hip::HipFunction function, unsigned grid, unsigned, unsigned,
                               unsigned block, unsigned, unsigned, unsigned, hip::HipStream,
                               void** params, void**) {
  if (fake_state.stalled) return 0;
  bimetal::fake::RunKernel(*reinterpret_cast<const kernels::HostKernel*>(function), grid, block,
                           params[0]);
  return 0;
}
HipError hipStreamCreateWithFlags(hip::HipStream* stream, unsigned) {
  *stream = reinterpret_cast<hip::HipStream>(&fake_state);
  return 0;
}
HipError hipStreamQuery(hip::HipStream) {
  return fake_state.stalled ? hip::kErrorNotReady : fake_state.wait_error;
}
HipError hipStreamDestroy(hip::HipStream) { return 0; }

}  // extern "C"
