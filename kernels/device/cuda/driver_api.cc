#include "kernels/device/cuda/driver_api.h"

#include "kernels/device/vendor/call.h"

namespace bimetal::kernels::cuda {
namespace {

DeviceErrorCode CodeOf(CuResult result) {
  switch (result) {
    case kErrorOutOfMemory:
      return DeviceErrorCode::kOutOfMemory;
    case kErrorDeviceUnavailable:
      return DeviceErrorCode::kBusy;
    case kErrorNoDevice:
      return DeviceErrorCode::kNoDevice;
    case kErrorInvalidDevice:
      return DeviceErrorCode::kLost;
    case kErrorInvalidImage:
    case kErrorNoBinaryForGpu:
    case kErrorUnsupportedPtxVersion:
      return DeviceErrorCode::kNoKernel;
    case kErrorEccUncorrectable:
    case kErrorNvlinkUncorrectable:
    case kErrorHardwareStack:
      return DeviceErrorCode::kHardwareFault;
    default:
      return DeviceErrorCode::kFailed;
  }
}

Done LoadAll(const Library& library, DriverApi* api) {
  KERNELS_TRY(library.Load("cuInit", &api->init));
  KERNELS_TRY(library.Load("cuGetErrorName", &api->get_error_name));
  KERNELS_TRY(library.Load("cuGetErrorString", &api->get_error_string));
  KERNELS_TRY(library.Load("cuDeviceGetCount", &api->device_get_count));
  KERNELS_TRY(library.Load("cuDeviceGet", &api->device_get));
  KERNELS_TRY(library.Load("cuDeviceGetName", &api->device_get_name));
  // The second version names a MIG slice by its own uuid; the first names its parent.
  if (!library.Load("cuDeviceGetUuid_v2", &api->device_get_uuid).ok()) {
    KERNELS_TRY(library.Load("cuDeviceGetUuid", &api->device_get_uuid));
  }
  KERNELS_TRY(library.Load("cuDeviceGetPCIBusId", &api->device_get_pci_bus_id));
  KERNELS_TRY(library.Load("cuDeviceGetAttribute", &api->device_get_attribute));
  KERNELS_TRY(library.Load("cuDeviceTotalMem_v2", &api->device_total_mem));
  KERNELS_TRY(library.Load("cuDevicePrimaryCtxRetain", &api->primary_ctx_retain));
  KERNELS_TRY(library.Load("cuDevicePrimaryCtxRelease_v2", &api->primary_ctx_release));
  KERNELS_TRY(library.Load("cuCtxSetCurrent", &api->ctx_set_current));
  KERNELS_TRY(library.Load("cuMemGetInfo_v2", &api->mem_get_info));
  KERNELS_TRY(library.Load("cuMemAlloc_v2", &api->mem_alloc));
  KERNELS_TRY(library.Load("cuMemFree_v2", &api->mem_free));
  KERNELS_TRY(library.Load("cuMemcpyHtoD_v2", &api->memcpy_to_device));
  KERNELS_TRY(library.Load("cuMemcpyDtoH_v2", &api->memcpy_to_host));
  KERNELS_TRY(library.Load("cuMemHostAlloc", &api->mem_host_alloc));
  KERNELS_TRY(library.Load("cuMemFreeHost", &api->mem_free_host));
  KERNELS_TRY(library.Load("cuMemcpyHtoDAsync_v2", &api->memcpy_to_device_async));
  KERNELS_TRY(library.Load("cuMemcpyDtoHAsync_v2", &api->memcpy_to_host_async));
  KERNELS_TRY(library.Load("cuMemcpyDtoDAsync_v2", &api->memcpy_device_async));
  KERNELS_TRY(library.Load("cuMemcpyPeerAsync", &api->memcpy_peer_async));
  KERNELS_TRY(library.Load("cuDeviceCanAccessPeer", &api->device_can_access_peer));
  KERNELS_TRY(library.Load("cuCtxEnablePeerAccess", &api->ctx_enable_peer_access));
  KERNELS_TRY(library.Load("cuEventCreate", &api->event_create));
  KERNELS_TRY(library.Load("cuEventRecord", &api->event_record));
  KERNELS_TRY(library.Load("cuEventElapsedTime", &api->event_elapsed_time));
  KERNELS_TRY(library.Load("cuEventDestroy_v2", &api->event_destroy));
  KERNELS_TRY(library.Load("cuModuleLoadData", &api->module_load_data));
  KERNELS_TRY(library.Load("cuModuleUnload", &api->module_unload));
  KERNELS_TRY(library.Load("cuModuleGetFunction", &api->module_get_function));
  KERNELS_TRY(library.Load("cuLaunchKernel", &api->launch_kernel));
  KERNELS_TRY(library.Load("cuStreamCreate", &api->stream_create));
  KERNELS_TRY(library.Load("cuStreamQuery", &api->stream_query));
  return library.Load("cuStreamDestroy_v2", &api->stream_destroy);
}

}  // namespace

Done Check(const DriverApi& api, CuResult result, const std::string& what) {
  if (result == kSuccess) return Success();
  const char* name = nullptr;
  const char* text = nullptr;
  std::string message = what + ": CUDA error " + std::to_string(result);
  if (api.get_error_name(result, &name) == kSuccess && name != nullptr) {
    message += std::string(" (") + name;
    if (api.get_error_string(result, &text) == kSuccess && text != nullptr) {
      message += std::string(", ") + text;
    }
    message += ")";
  }
  return DeviceError{CodeOf(result), message};
}

Outcome<std::shared_ptr<const DriverApi>> OpenDriver(const std::vector<std::string>& names) {
  KERNELS_TRY_ASSIGN(const Library library, Library::Open(names));
  auto api = std::make_shared<DriverApi>();
  KERNELS_TRY(LoadAll(library, api.get()));
  KERNELS_TRY(Check(*api, Invoke("cuInit", api->init, 0u).code, "cuInit"));
  return std::shared_ptr<const DriverApi>(std::move(api));
}

}  // namespace bimetal::kernels::cuda
