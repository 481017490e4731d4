#include "kernels/device/cuda/cuda_backend.h"

#include <array>
#include <cstdio>
#include <utility>

#include "kernels/device/cuda/cuda_vendor.h"
#include "kernels/device/cuda/nvml_monitor.h"
#include "kernels/device/vendor/vendor_device.h"

namespace bimetal::kernels {
namespace {

std::string UuidText(const cuda::CuUuid& uuid) {
  std::string out = "GPU-";
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) out += '-';
    std::array<char, 3> hex{};
    std::snprintf(hex.data(), hex.size(), "%02x", uuid.bytes[i]);
    out += hex.data();
  }
  return out;
}

}  // namespace

Outcome<std::unique_ptr<Backend>> CudaBackend::Load(const std::vector<std::string>& libraries) {
  KERNELS_TRY_ASSIGN(auto api, cuda::OpenDriver(libraries));
  return std::unique_ptr<Backend>(new CudaBackend(std::move(api)));
}

Outcome<DeviceInfo> CudaBackend::Describe(int ordinal) const {
  const std::string what = "device " + std::to_string(ordinal) + ": ";
  cuda::CuDevice device = 0;
  KERNELS_TRY(cuda::Check(*api_, api_->device_get(&device, ordinal), what + "cuDeviceGet"));
  DeviceInfo info;
  info.vendor = "nvidia";
  std::array<char, 256> text{};
  if (api_->device_get_name(text.data(), static_cast<int>(text.size()) - 1, device) ==
      cuda::kSuccess) {
    info.name = text.data();
  }
  text.fill(0);
  KERNELS_TRY(cuda::Check(
      *api_, api_->device_get_pci_bus_id(text.data(), static_cast<int>(text.size()) - 1, device),
      what + "cuDeviceGetPCIBusId"));
  info.pci_address = text.data();
  cuda::CuUuid uuid{};
  KERNELS_TRY(cuda::Check(*api_, api_->device_get_uuid(&uuid, device), what + "cuDeviceGetUuid"));
  info.id = UuidText(uuid);
  int units = 0;
  int major = 0;
  int minor = 0;
  std::size_t bytes = 0;
  KERNELS_TRY(cuda::Check(
      *api_, api_->device_get_attribute(&units, cuda::kAttributeMultiprocessorCount, device),
      what + "multiprocessor count"));
  KERNELS_TRY(cuda::Check(
      *api_, api_->device_get_attribute(&major, cuda::kAttributeComputeCapabilityMajor, device),
      what + "compute capability"));
  KERNELS_TRY(cuda::Check(
      *api_, api_->device_get_attribute(&minor, cuda::kAttributeComputeCapabilityMinor, device),
      what + "compute capability"));
  KERNELS_TRY(
      cuda::Check(*api_, api_->device_total_mem(&bytes, device), what + "cuDeviceTotalMem"));
  info.compute_units = static_cast<std::uint32_t>(units);
  info.arch = "sm_" + std::to_string(major) + std::to_string(minor);
  info.memory_bytes = bytes;
  return info;
}

Outcome<std::vector<DeviceInfo>> CudaBackend::Enumerate() {
  int count = 0;
  KERNELS_TRY(cuda::Check(*api_, api_->device_get_count(&count), "cuDeviceGetCount"));
  if (count == 0) return DeviceError{DeviceErrorCode::kNoDevice, "CUDA sees no device"};
  std::vector<DeviceInfo> infos;
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    KERNELS_TRY_ASSIGN(DeviceInfo info, Describe(ordinal));
    infos.push_back(std::move(info));
  }
  return infos;
}

Outcome<std::unique_ptr<Device>> CudaBackend::Open(std::string_view id) {
  KERNELS_TRY_ASSIGN(const std::vector<DeviceInfo> infos, Enumerate());
  for (std::size_t ordinal = 0; ordinal < infos.size(); ++ordinal) {
    if (!MatchesId(infos[ordinal], id)) continue;
    cuda::CuDevice device = 0;
    KERNELS_TRY(cuda::Check(*api_, api_->device_get(&device, static_cast<int>(ordinal)),
                            "device " + std::string(id) + ": cuDeviceGet"));
    return VendorDevice<CudaVendor>::Open(CudaVendor(api_, device), infos[ordinal],
                                          OpenNvmlMonitor(infos[ordinal]));
  }
  return DeviceError{DeviceErrorCode::kNotFound, "no CUDA device answers to id " + std::string(id)};
}

}  // namespace bimetal::kernels
