#include "kernels/device/hip/hip_backend.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <utility>

#include "kernels/device/hip/hip_vendor.h"
#include "kernels/device/hip/sysfs_monitor.h"
#include "kernels/device/vendor/vendor_device.h"

namespace bimetal::kernels {

std::string HipUuidText(const hip::HipUuid& uuid) {
  const auto is_zero = [](char c) { return c == 0; };
  const auto is_hex = [](char c) { return std::isxdigit(static_cast<unsigned char>(c)) != 0; };
  if (std::all_of(std::begin(uuid.bytes), std::end(uuid.bytes), is_zero)) return "";
  std::string out = "GPU-";
  if (std::all_of(std::begin(uuid.bytes), std::end(uuid.bytes), is_hex)) {
    return out.append(uuid.bytes, sizeof(uuid.bytes));
  }
  for (const char c : uuid.bytes) {
    std::array<char, 3> hex{};
    std::snprintf(hex.data(), hex.size(), "%02x", static_cast<unsigned char>(c));
    out += hex.data();
  }
  return out;
}

Outcome<std::unique_ptr<Backend>> HipBackend::Load(std::vector<std::string> libraries) {
  if (libraries.empty()) {
    libraries = {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so",
                 "/opt/rocm/lib/libamdhip64.so"};
  }
  KERNELS_TRY_ASSIGN(auto api, hip::OpenRuntime(libraries));
  return std::unique_ptr<Backend>(new HipBackend(std::move(api)));
}

Outcome<DeviceInfo> HipBackend::Describe(int ordinal) const {
  const std::string what = "device " + std::to_string(ordinal) + ": ";
  DeviceInfo info;
  info.vendor = "amd";
  std::array<char, 256> text{};
  if (api_->device_get_name(text.data(), static_cast<int>(text.size()) - 1, ordinal) ==
      hip::kSuccess) {
    info.name = text.data();
  }
  text.fill(0);
  KERNELS_TRY(hip::Check(
      *api_, api_->device_get_pci_bus_id(text.data(), static_cast<int>(text.size()) - 1, ordinal),
      what + "hipDeviceGetPCIBusId"));
  info.pci_address = text.data();
  hip::HipUuid uuid{};
  if (api_->device_get_uuid != nullptr && api_->device_get_uuid(&uuid, ordinal) == hip::kSuccess) {
    info.id = HipUuidText(uuid);
  }
  if (info.id.empty()) info.id = info.pci_address;
  int units = 0;
  std::size_t bytes = 0;
  KERNELS_TRY(hip::Check(
      *api_, api_->device_get_attribute(&units, hip::kAttributeMultiprocessorCount, ordinal),
      what + "multiprocessor count"));
  KERNELS_TRY(
      hip::Check(*api_, api_->device_total_mem(&bytes, ordinal), what + "hipDeviceTotalMem"));
  info.compute_units = static_cast<std::uint32_t>(units);
  info.memory_bytes = bytes;
  info.arch = hip::ArchName(*api_, ordinal);
  return info;
}

Outcome<std::vector<DeviceInfo>> HipBackend::Enumerate() {
  int count = 0;
  KERNELS_TRY(hip::Check(*api_, api_->get_device_count(&count), "hipGetDeviceCount"));
  if (count == 0) return DeviceError{DeviceErrorCode::kNoDevice, "HIP sees no device"};
  std::vector<DeviceInfo> infos;
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    KERNELS_TRY_ASSIGN(DeviceInfo info, Describe(ordinal));
    infos.push_back(std::move(info));
  }
  return infos;
}

Outcome<std::unique_ptr<Device>> HipBackend::Open(std::string_view id) {
  KERNELS_TRY_ASSIGN(const std::vector<DeviceInfo> infos, Enumerate());
  for (std::size_t ordinal = 0; ordinal < infos.size(); ++ordinal) {
    if (MatchesId(infos[ordinal], id)) {
      return VendorDevice<HipVendor>::Open(HipVendor(api_, static_cast<int>(ordinal)),
                                           infos[ordinal], OpenSysfsMonitor(infos[ordinal]));
    }
  }
  return DeviceError{DeviceErrorCode::kNotFound, "no HIP device answers to id " + std::string(id)};
}

}  // namespace bimetal::kernels
