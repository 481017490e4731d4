#include "kernels/device/cuda/nvml_monitor.h"

#include <utility>

#include "kernels/device/library.h"
#include "kernels/device/vendor/call.h"

namespace bimetal::kernels {
namespace {

using NvmlDevice = struct NvmlDeviceOpaque*;

// The part of NVML's stable ABI that is read here.
struct NvmlApi {
  int (*init)() = nullptr;
  int (*handle_by_uuid)(const char* uuid, NvmlDevice* device) = nullptr;
  int (*clock)(NvmlDevice device, int type, unsigned* mhz) = nullptr;
  int (*power)(NvmlDevice device, unsigned* milliwatts) = nullptr;
  int (*temperature)(NvmlDevice device, int sensor, unsigned* celsius) = nullptr;
  int (*ecc)(NvmlDevice device, int type, int counter, unsigned long long* count) = nullptr;
};

constexpr int kClockSm = 1;
constexpr int kSensorGpu = 0;
constexpr int kEccUncorrected = 1;
constexpr int kEccSinceDriverLoad = 0;

class NvmlMonitor final : public Monitor {
 public:
  NvmlMonitor(NvmlApi api, NvmlDevice device) : api_(api), device_(device) {}

  Telemetry Sample() override {
    Telemetry out;
    unsigned value = 0;
    if (Invoke("nvmlDeviceGetClockInfo", api_.clock, device_, kClockSm, &value).code == 0) {
      out.clock_mhz = value;
    }
    if (Invoke("nvmlDeviceGetPowerUsage", api_.power, device_, &value).code == 0) {
      out.power_watts = value / 1000.0;
    }
    if (Invoke("nvmlDeviceGetTemperature", api_.temperature, device_, kSensorGpu, &value).code ==
        0) {
      out.temperature_celsius = value;
    }
    unsigned long long errors = 0;
    if (Invoke("nvmlDeviceGetTotalEccErrors", api_.ecc, device_, kEccUncorrected,
               kEccSinceDriverLoad, &errors)
            .code == 0) {
      out.uncorrected_errors = errors;
    }
    return out;
  }

 private:
  NvmlApi api_;
  NvmlDevice device_;
};

Done LoadAll(const Library& library, NvmlApi* api) {
  KERNELS_TRY(library.Load("nvmlInit_v2", &api->init));
  KERNELS_TRY(library.Load("nvmlDeviceGetHandleByUUID", &api->handle_by_uuid));
  KERNELS_TRY(library.Load("nvmlDeviceGetClockInfo", &api->clock));
  KERNELS_TRY(library.Load("nvmlDeviceGetPowerUsage", &api->power));
  KERNELS_TRY(library.Load("nvmlDeviceGetTemperature", &api->temperature));
  return library.Load("nvmlDeviceGetTotalEccErrors", &api->ecc);
}

}  // namespace

std::unique_ptr<Monitor> OpenNvmlMonitor(const DeviceInfo& info,
                                         const std::vector<std::string>& libraries) {
  const Outcome<Library> library = Library::Open(libraries);
  if (!library.ok()) return nullptr;
  NvmlApi api;
  if (!LoadAll(library.value(), &api).ok()) return nullptr;
  if (Invoke("nvmlInit", api.init).code != 0) return nullptr;
  // CUDA gives a slice's uuid without saying that it is one.
  for (const std::string& id : {info.id, "MIG-" + info.id.substr(info.id.find('-') + 1)}) {
    NvmlDevice device = nullptr;
    if (Invoke("nvmlDeviceGetHandleByUUID", api.handle_by_uuid, id.c_str(), &device).code == 0) {
      return std::make_unique<NvmlMonitor>(api, device);
    }
  }
  return nullptr;
}

}  // namespace bimetal::kernels
