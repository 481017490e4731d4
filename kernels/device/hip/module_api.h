#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "kernels/device/library.h"
#include "kernels/device/outcome.h"

namespace bimetal::kernels::hip {

// The part of AMD's HIP ABI that this program calls, declared here so that no ROCm is needed to
// build it. Attribute and error numbers are the same in ROCm 5, 6 and 7; the layout of
// hipDeviceProp_t is not, so it is read as bytes only (see ArchName).
using HipError = int;
using HipDevicePtr = void*;
using HipModule = struct HipModuleOpaque*;
using HipFunction = struct HipFunctionOpaque*;
using HipStream = struct HipStreamOpaque*;
using HipEvent = struct HipEventOpaque*;
struct HipUuid {
  char bytes[16];
};

inline constexpr HipError kSuccess = 0;
inline constexpr HipError kErrorOutOfMemory = 2;
inline constexpr HipError kErrorNoDevice = 100;
inline constexpr HipError kErrorInvalidDevice = 101;
inline constexpr HipError kErrorInvalidImage = 200;
inline constexpr HipError kErrorNoBinaryForGpu = 209;
inline constexpr HipError kErrorEccNotCorrectable = 214;
inline constexpr HipError kErrorNotReady = 600;
inline constexpr HipError kErrorPeerAccessAlreadyEnabled = 704;

inline constexpr int kAttributeMultiprocessorCount = 63;
inline constexpr unsigned kStreamNonBlocking = 1;
inline constexpr unsigned kHostMallocPortable = 1;

// Pointers into libamdhip64.so. Immutable once loaded; the functions themselves are thread-safe.
struct ModuleApi {
  HipError (*init)(unsigned flags) = nullptr;
  const char* (*get_error_name)(HipError error) = nullptr;
  const char* (*get_error_string)(HipError error) = nullptr;
  HipError (*get_device_count)(int* count) = nullptr;
  HipError (*set_device)(int device) = nullptr;
  HipError (*device_get_name)(char* name, int len, int device) = nullptr;
  HipError (*device_get_uuid)(HipUuid* uuid, int device) = nullptr;  // null in old libraries
  HipError (*device_get_pci_bus_id)(char* id, int len, int device) = nullptr;
  HipError (*device_get_attribute)(int* value, int attribute, int device) = nullptr;
  HipError (*device_total_mem)(std::size_t* bytes, int device) = nullptr;
  HipError (*get_device_properties)(void* properties, int device) = nullptr;  // may be null
  HipError (*mem_get_info)(std::size_t* free, std::size_t* total) = nullptr;
  HipError (*malloc)(HipDevicePtr* address, std::size_t bytes) = nullptr;
  HipError (*free)(HipDevicePtr address) = nullptr;
  HipError (*memcpy_to_device)(HipDevicePtr to, void* from, std::size_t bytes) = nullptr;
  HipError (*memcpy_to_host)(void* to, HipDevicePtr from, std::size_t bytes) = nullptr;
  HipError (*host_malloc)(void** data, std::size_t bytes, unsigned flags) = nullptr;
  HipError (*host_free)(void* data) = nullptr;
  HipError (*memcpy_to_device_async)(HipDevicePtr to, void* from, std::size_t bytes,
                                     HipStream stream) = nullptr;
  HipError (*memcpy_to_host_async)(void* to, HipDevicePtr from, std::size_t bytes,
                                   HipStream stream) = nullptr;
  HipError (*memcpy_device_async)(HipDevicePtr to, HipDevicePtr from, std::size_t bytes,
                                  HipStream stream) = nullptr;
  HipError (*memcpy_peer_async)(void* to, int to_device, const void* from, int from_device,
                                std::size_t bytes, HipStream stream) = nullptr;
  HipError (*device_can_access_peer)(int* can, int device, int peer) = nullptr;
  HipError (*device_enable_peer_access)(int peer, unsigned flags) = nullptr;
  HipError (*event_create)(HipEvent* event) = nullptr;
  HipError (*event_record)(HipEvent event, HipStream stream) = nullptr;
  HipError (*event_elapsed_time)(float* milliseconds, HipEvent begin, HipEvent end) = nullptr;
  HipError (*event_destroy)(HipEvent event) = nullptr;
  HipError (*module_load_data)(HipModule* module, const void* image) = nullptr;
  HipError (*module_unload)(HipModule module) = nullptr;
  HipError (*module_get_function)(HipFunction* function, HipModule module,
                                  const char* name) = nullptr;
  HipError (*module_launch_kernel)(HipFunction function, unsigned grid_x, unsigned grid_y,
                                   unsigned grid_z, unsigned block_x, unsigned block_y,
                                   unsigned block_z, unsigned shared_bytes, HipStream stream,
                                   void** params, void** extra) = nullptr;
  HipError (*stream_create)(HipStream* stream, unsigned flags) = nullptr;
  HipError (*stream_query)(HipStream stream) = nullptr;
  HipError (*stream_destroy)(HipStream stream) = nullptr;
};

// Opens the library (first of `names`), finds every function and calls hipInit. Errors: kNoLibrary,
// kNoDevice, kFailed.
Outcome<std::shared_ptr<const ModuleApi>> OpenRuntime(const std::vector<std::string>& names);

// HIP's answer as an outcome; `what` says which call on which device.
Done Check(const ModuleApi& api, HipError result, const std::string& what);

// "gfx942" of a device, without its feature suffix; empty where the library does not tell.
std::string ArchName(const ModuleApi& api, int device);

}  // namespace bimetal::kernels::hip
