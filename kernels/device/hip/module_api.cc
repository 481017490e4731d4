#include "kernels/device/hip/module_api.h"

#include <array>
#include <cctype>
#include <string_view>

#include "kernels/device/vendor/call.h"

namespace bimetal::kernels::hip {
namespace {

DeviceErrorCode CodeOf(HipError result) {
  switch (result) {
    case kErrorOutOfMemory:
      return DeviceErrorCode::kOutOfMemory;
    case kErrorNoDevice:
      return DeviceErrorCode::kNoDevice;
    case kErrorInvalidDevice:
      return DeviceErrorCode::kLost;
    case kErrorInvalidImage:
    case kErrorNoBinaryForGpu:
      return DeviceErrorCode::kNoKernel;
    case kErrorEccNotCorrectable:
      return DeviceErrorCode::kHardwareFault;
    default:
      return DeviceErrorCode::kFailed;
  }
}

Done LoadAll(const Library& library, ModuleApi* api) {
  KERNELS_TRY(library.Load("hipInit", &api->init));
  KERNELS_TRY(library.Load("hipGetErrorName", &api->get_error_name));
  KERNELS_TRY(library.Load("hipGetErrorString", &api->get_error_string));
  KERNELS_TRY(library.Load("hipGetDeviceCount", &api->get_device_count));
  KERNELS_TRY(library.Load("hipSetDevice", &api->set_device));
  KERNELS_TRY(library.Load("hipDeviceGetName", &api->device_get_name));
  (void)library.Load("hipDeviceGetUuid", &api->device_get_uuid);
  KERNELS_TRY(library.Load("hipDeviceGetPCIBusId", &api->device_get_pci_bus_id));
  KERNELS_TRY(library.Load("hipDeviceGetAttribute", &api->device_get_attribute));
  KERNELS_TRY(library.Load("hipDeviceTotalMem", &api->device_total_mem));
  if (!library.Load("hipGetDevicePropertiesR0600", &api->get_device_properties).ok()) {
    (void)library.Load("hipGetDeviceProperties", &api->get_device_properties);
  }
  KERNELS_TRY(library.Load("hipMemGetInfo", &api->mem_get_info));
  KERNELS_TRY(library.Load("hipMalloc", &api->malloc));
  KERNELS_TRY(library.Load("hipFree", &api->free));
  KERNELS_TRY(library.Load("hipMemcpyHtoD", &api->memcpy_to_device));
  KERNELS_TRY(library.Load("hipMemcpyDtoH", &api->memcpy_to_host));
  KERNELS_TRY(library.Load("hipHostMalloc", &api->host_malloc));
  KERNELS_TRY(library.Load("hipHostFree", &api->host_free));
  KERNELS_TRY(library.Load("hipMemcpyHtoDAsync", &api->memcpy_to_device_async));
  KERNELS_TRY(library.Load("hipMemcpyDtoHAsync", &api->memcpy_to_host_async));
  KERNELS_TRY(library.Load("hipMemcpyDtoDAsync", &api->memcpy_device_async));
  KERNELS_TRY(library.Load("hipMemcpyPeerAsync", &api->memcpy_peer_async));
  KERNELS_TRY(library.Load("hipDeviceCanAccessPeer", &api->device_can_access_peer));
  KERNELS_TRY(library.Load("hipDeviceEnablePeerAccess", &api->device_enable_peer_access));
  KERNELS_TRY(library.Load("hipEventCreate", &api->event_create));
  KERNELS_TRY(library.Load("hipEventRecord", &api->event_record));
  KERNELS_TRY(library.Load("hipEventElapsedTime", &api->event_elapsed_time));
  KERNELS_TRY(library.Load("hipEventDestroy", &api->event_destroy));
  KERNELS_TRY(library.Load("hipModuleLoadData", &api->module_load_data));
  KERNELS_TRY(library.Load("hipModuleUnload", &api->module_unload));
  KERNELS_TRY(library.Load("hipModuleGetFunction", &api->module_get_function));
  KERNELS_TRY(library.Load("hipModuleLaunchKernel", &api->module_launch_kernel));
  KERNELS_TRY(library.Load("hipStreamCreateWithFlags", &api->stream_create));
  KERNELS_TRY(library.Load("hipStreamQuery", &api->stream_query));
  return library.Load("hipStreamDestroy", &api->stream_destroy);
}

}  // namespace

Done Check(const ModuleApi& api, HipError result, const std::string& what) {
  if (result == kSuccess) return Success();
  std::string message = what + ": HIP error " + std::to_string(result);
  const char* name = api.get_error_name(result);
  const char* text = api.get_error_string(result);
  if (name != nullptr && text != nullptr) message += std::string(" (") + name + ", " + text + ")";
  return DeviceError{CodeOf(result), message};
}

Outcome<std::shared_ptr<const ModuleApi>> OpenRuntime(const std::vector<std::string>& names) {
  KERNELS_TRY_ASSIGN(const Library library, Library::Open(names));
  auto api = std::make_shared<ModuleApi>();
  KERNELS_TRY(LoadAll(library, api.get()));
  KERNELS_TRY(Check(*api, Invoke("hipInit", api->init, 0u).code, "hipInit"));
  return std::shared_ptr<const ModuleApi>(std::move(api));
}

std::string ArchName(const ModuleApi& api, int device) {
  if (api.get_device_properties == nullptr) return "";
  // The struct's layout moves between releases and its size is below 2 KiB in all of them; what
  // never moves is that it holds the architecture as text, "gfx942:sramecc+:xnack-".
  alignas(16) std::array<char, 16384> properties{};
  if (api.get_device_properties(properties.data(), device) != kSuccess) return "";
  const std::string_view bytes(properties.data(), properties.size());
  const std::size_t start = bytes.find("gfx");
  if (start == std::string_view::npos) return "";
  std::size_t end = start + 3;
  while (end < bytes.size() && std::isalnum(static_cast<unsigned char>(bytes[end]))) ++end;
  return std::string(bytes.substr(start, end - start));
}

}  // namespace bimetal::kernels::hip
