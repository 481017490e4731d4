#include "agent/devices/nvidia/nvml.h"

#include <dlfcn.h>
#include <unistd.h>

#include <initializer_list>
#include <map>
#include <string_view>

namespace bimetal::agent::nvml {
namespace {

// Binds the first of `names` that the library exports.
template <class Function>
void Bind(void* library, std::initializer_list<const char*> names, Function& function) {
  for (const char* name : names) {
    if (void* symbol = dlsym(library, name)) {
      function = reinterpret_cast<Function>(symbol);
      return;
    }
  }
}

Api BindAll(void* library) {
  Api api;
  Bind(library, {"nvmlInit_v2", "nvmlInit"}, api.init);
  Bind(library, {"nvmlShutdown"}, api.shutdown);
  Bind(library, {"nvmlSystemGetDriverVersion"}, api.driver_version);
  Bind(library, {"nvmlSystemGetNVMLVersion"}, api.nvml_version);
  Bind(library, {"nvmlSystemGetCudaDriverVersion_v2", "nvmlSystemGetCudaDriverVersion"},
       api.cuda_version);
  Bind(library, {"nvmlDeviceGetCount_v2", "nvmlDeviceGetCount"}, api.count);
  Bind(library, {"nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex"},
       api.handle_by_index);
  Bind(library, {"nvmlDeviceGetName"}, api.name);
  Bind(library, {"nvmlDeviceGetUUID"}, api.uuid);
  Bind(library, {"nvmlDeviceGetSerial"}, api.serial);
  Bind(library, {"nvmlDeviceGetVbiosVersion"}, api.vbios);
  Bind(library, {"nvmlDeviceGetInforomImageVersion"}, api.inforom_image);
  Bind(library, {"nvmlDeviceGetGspFirmwareVersion"}, api.gsp_firmware);
  Bind(library, {"nvmlDeviceGetMinorNumber"}, api.minor);
  Bind(library, {"nvmlDeviceGetNumGpuCores"}, api.cores);
  Bind(library, {"nvmlDeviceGetCurrPcieLinkGeneration"}, api.link_generation);
  Bind(library, {"nvmlDeviceGetCurrPcieLinkWidth"}, api.link_width);
  Bind(library, {"nvmlDeviceGetMaxPcieLinkGeneration"}, api.max_link_generation);
  Bind(library, {"nvmlDeviceGetMaxPcieLinkWidth"}, api.max_link_width);
  Bind(library, {"nvmlDeviceGetMaxMigDeviceCount"}, api.max_mig_devices);
  Bind(library, {"nvmlDeviceGetMigMode"}, api.mig_mode);
  Bind(library, {"nvmlDeviceGetEccMode"}, api.ecc_mode);
  Bind(library, {"nvmlDeviceGetCudaComputeCapability"}, api.compute_capability);
  Bind(library, {"nvmlDeviceGetPciInfo_v3", "nvmlDeviceGetPciInfo_v2"}, api.pci_info);
  Bind(library, {"nvmlDeviceGetMemoryInfo"}, api.memory_v1);
  Bind(library, {"nvmlDeviceGetMemoryInfo_v2"}, api.memory_v2);
  Bind(library, {"nvmlDeviceGetTotalEccErrors"}, api.total_ecc_errors);
  Bind(library, {"nvmlDeviceGetRemappedRows"}, api.remapped_rows);
  Bind(library, {"nvmlDeviceGetMigDeviceHandleByIndex"}, api.mig_handle);
  Bind(library, {"nvmlDeviceGetAttributes_v2", "nvmlDeviceGetAttributes"}, api.attributes);
  Bind(library, {"nvmlDeviceGetNvLinkState"}, api.nvlink_state);
  Bind(library, {"nvmlDeviceGetNvLinkRemotePciInfo_v2", "nvmlDeviceGetNvLinkRemotePciInfo"},
       api.nvlink_remote_pci);
  Bind(library, {"nvmlDeviceGetRetiredPages"}, api.retired_pages);
  Bind(library, {"nvmlDeviceGetRetiredPagesPendingStatus"}, api.retired_pages_pending);
  Bind(library, {"nvmlDeviceGetTemperature"}, api.temperature);
  Bind(library, {"nvmlDeviceGetClockInfo"}, api.clock);
  Bind(library, {"nvmlDeviceGetUtilizationRates"}, api.utilization);
  Bind(library, {"nvmlDeviceGetFieldValues"}, api.fields);
  Bind(library, {"nvmlDeviceGetGpuFabricInfoV"}, api.fabric);
  // The first form of this call has a smaller struct: not taken.
  Bind(library,
       {"nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2"},
       api.processes);
  Bind(library, {"nvmlDeviceGetPowerUsage"}, api.power);
  Bind(library, {"nvmlDeviceGetEnforcedPowerLimit"}, api.power_limit);
  Bind(library, {"nvmlDeviceGetPcieReplayCounter"}, api.replays);
  Bind(library, {"nvmlDeviceGetTotalEnergyConsumption"}, api.energy);
  Bind(library,
       {"nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"},
       api.clock_reasons);
  api.simulated = dlsym(library, "bimetal_simulated_nvml") != nullptr;
  return api;
}

}  // namespace

Result<Api> Open(const std::vector<std::string>& candidates) {
  std::string refused;
  for (const std::string& path : candidates) {
    const bool by_name = path.find('/') == std::string::npos;
    if (!by_name && access(path.c_str(), F_OK) != 0) continue;
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      const char* why = dlerror();
      if (!by_name) refused = why == nullptr ? path : why;
      continue;
    }
    Api api = BindAll(library);
    api.path = path;
    if (api.init != nullptr && api.count != nullptr && api.handle_by_index != nullptr) return api;
    refused = path + " does not export nvmlInit";
    dlclose(library);
  }
  if (!refused.empty()) return Fail(ErrorCode::kUnsupported, refused);
  return Fail(ErrorCode::kNotFound, "no libnvidia-ml.so.1 found");
}

std::string ReturnText(Return code) {
  static const std::map<Return, std::string_view> kTexts = {
      {1, "not initialised"},
      {2, "invalid argument"},
      {3, "not supported"},
      {4, "no permission"},
      {6, "not found"},
      {7, "buffer too small"},
      {8, "power cable missing"},
      {9, "driver not loaded"},
      {10, "timeout"},
      {11, "interrupt problem"},
      {12, "library not found"},
      {13, "function not found"},
      {14, "corrupted InfoROM"},
      {15, "GPU is lost"},
      {16, "GPU needs a reset"},
      {17, "operating system"},
      {18, "driver and library versions differ"},
      {19, "in use"},
      {20, "out of memory"},
      {21, "no data"},
      {23, "out of resources"},
      {25, "struct version differs"},
      {27, "not ready"},
      {28, "GPU not found"},
      {29, "invalid state"},
      {999, "unknown error"}};
  const auto found = kTexts.find(code);
  const std::string_view text = found == kTexts.end() ? "error" : found->second;
  return std::string(text) + " (" + std::to_string(code) + ")";
}

}  // namespace bimetal::agent::nvml
