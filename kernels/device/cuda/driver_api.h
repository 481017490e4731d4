#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "kernels/device/library.h"
#include "kernels/device/outcome.h"

namespace bimetal::kernels::cuda {

// The part of NVIDIA's driver ABI that this program calls, declared here so that neither the
// toolkit nor a driver is needed to build it. Names and types follow cuda.h, whose ABI is stable.
using CuResult = int;
using CuDevice = int;
using CuDevicePtr = unsigned long long;
using CuContext = struct CuContextOpaque*;
using CuModule = struct CuModuleOpaque*;
using CuFunction = struct CuFunctionOpaque*;
using CuStream = struct CuStreamOpaque*;
using CuEvent = struct CuEventOpaque*;
struct CuUuid {
  unsigned char bytes[16];
};

inline constexpr CuResult kSuccess = 0;
inline constexpr CuResult kErrorOutOfMemory = 2;
inline constexpr CuResult kErrorDeviceUnavailable = 46;
inline constexpr CuResult kErrorNoDevice = 100;
inline constexpr CuResult kErrorInvalidDevice = 101;
inline constexpr CuResult kErrorInvalidImage = 200;
inline constexpr CuResult kErrorNoBinaryForGpu = 209;
inline constexpr CuResult kErrorEccUncorrectable = 214;
inline constexpr CuResult kErrorNvlinkUncorrectable = 220;
inline constexpr CuResult kErrorUnsupportedPtxVersion = 222;
inline constexpr CuResult kErrorNotReady = 600;
inline constexpr CuResult kErrorPeerAccessAlreadyEnabled = 704;
inline constexpr CuResult kErrorHardwareStack = 714;

inline constexpr int kAttributeMultiprocessorCount = 16;
inline constexpr int kAttributeComputeCapabilityMajor = 75;
inline constexpr int kAttributeComputeCapabilityMinor = 76;
inline constexpr unsigned kStreamNonBlocking = 1;
inline constexpr unsigned kHostAllocPortable = 1;

// Pointers into libcuda.so.1. Immutable once loaded; the functions themselves are thread-safe.
struct DriverApi {
  CuResult (*init)(unsigned flags) = nullptr;
  CuResult (*get_error_name)(CuResult error, const char** text) = nullptr;
  CuResult (*get_error_string)(CuResult error, const char** text) = nullptr;
  CuResult (*device_get_count)(int* count) = nullptr;
  CuResult (*device_get)(CuDevice* device, int ordinal) = nullptr;
  CuResult (*device_get_name)(char* name, int len, CuDevice device) = nullptr;
  CuResult (*device_get_uuid)(CuUuid* uuid, CuDevice device) = nullptr;
  CuResult (*device_get_pci_bus_id)(char* id, int len, CuDevice device) = nullptr;
  CuResult (*device_get_attribute)(int* value, int attribute, CuDevice device) = nullptr;
  CuResult (*device_total_mem)(std::size_t* bytes, CuDevice device) = nullptr;
  CuResult (*primary_ctx_retain)(CuContext* context, CuDevice device) = nullptr;
  CuResult (*primary_ctx_release)(CuDevice device) = nullptr;
  CuResult (*ctx_set_current)(CuContext context) = nullptr;
  CuResult (*mem_get_info)(std::size_t* free, std::size_t* total) = nullptr;
  CuResult (*mem_alloc)(CuDevicePtr* address, std::size_t bytes) = nullptr;
  CuResult (*mem_free)(CuDevicePtr address) = nullptr;
  CuResult (*memcpy_to_device)(CuDevicePtr to, const void* from, std::size_t bytes) = nullptr;
  CuResult (*memcpy_to_host)(void* to, CuDevicePtr from, std::size_t bytes) = nullptr;
  CuResult (*mem_host_alloc)(void** data, std::size_t bytes, unsigned flags) = nullptr;
  CuResult (*mem_free_host)(void* data) = nullptr;
  CuResult (*memcpy_to_device_async)(CuDevicePtr to, const void* from, std::size_t bytes,
                                     CuStream stream) = nullptr;
  CuResult (*memcpy_to_host_async)(void* to, CuDevicePtr from, std::size_t bytes,
                                   CuStream stream) = nullptr;
  CuResult (*memcpy_device_async)(CuDevicePtr to, CuDevicePtr from, std::size_t bytes,
                                  CuStream stream) = nullptr;
  CuResult (*memcpy_peer_async)(CuDevicePtr to, CuContext to_context, CuDevicePtr from,
                                CuContext from_context, std::size_t bytes,
                                CuStream stream) = nullptr;
  CuResult (*device_can_access_peer)(int* can, CuDevice device, CuDevice peer) = nullptr;
  CuResult (*ctx_enable_peer_access)(CuContext peer, unsigned flags) = nullptr;
  CuResult (*event_create)(CuEvent* event, unsigned flags) = nullptr;
  CuResult (*event_record)(CuEvent event, CuStream stream) = nullptr;
  CuResult (*event_elapsed_time)(float* milliseconds, CuEvent begin, CuEvent end) = nullptr;
  CuResult (*event_destroy)(CuEvent event) = nullptr;
  CuResult (*module_load_data)(CuModule* module, const void* image) = nullptr;
  CuResult (*module_unload)(CuModule module) = nullptr;
  CuResult (*module_get_function)(CuFunction* function, CuModule module,
                                  const char* name) = nullptr;
  CuResult (*launch_kernel)(CuFunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                            unsigned block_x, unsigned block_y, unsigned block_z,
                            unsigned shared_bytes, CuStream stream, void** params,
                            void** extra) = nullptr;
  CuResult (*stream_create)(CuStream* stream, unsigned flags) = nullptr;
  CuResult (*stream_query)(CuStream stream) = nullptr;
  CuResult (*stream_destroy)(CuStream stream) = nullptr;
};

// Opens the library (first of `names`), finds every function and calls cuInit. Errors: kNoLibrary,
// kNoDevice, kFailed.
Outcome<std::shared_ptr<const DriverApi>> OpenDriver(const std::vector<std::string>& names);

// The driver's answer as an outcome; `what` says which call on which device.
Done Check(const DriverApi& api, CuResult result, const std::string& what);

}  // namespace bimetal::kernels::cuda
