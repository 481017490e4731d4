#include "kernels/run/select.h"

#include <algorithm>
#include <utility>

#include "kernels/device/backends.h"
#include "kernels/device/host/host_backend.h"
#include "kernels/machine/machine.h"

namespace bimetal::kernels {
namespace {

struct Found {
  std::unique_ptr<Backend> backend;
  std::vector<DeviceInfo> devices;
};

Outcome<Found> EnumerateAll(Outcome<std::unique_ptr<Backend>> loaded) {
  if (!loaded.ok()) return loaded.error();
  KERNELS_TRY_ASSIGN(std::vector<DeviceInfo> devices, loaded.value()->Enumerate());
  return Found{std::move(loaded.value()), std::move(devices)};
}

Outcome<Found> FindHost(const RunOptions& options) {
  std::vector<HostDeviceSpec> specs;
  if (options.machine.empty()) {
    specs.push_back(HostCpu());
  } else {
    KERNELS_TRY_ASSIGN(specs, ReadMachine(options.machine));
  }
  return EnumerateAll(std::unique_ptr<Backend>(std::make_unique<HostBackend>(std::move(specs))));
}

// Without a vendor, the one whose devices answer. The host never stands in for a vendor.
Outcome<Found> FindAnyVendor() {
  Outcome<Found> cuda = EnumerateAll(LoadVendorBackend(BackendKind::kCuda));
  Outcome<Found> hip = EnumerateAll(LoadVendorBackend(BackendKind::kHip));
  if (cuda.ok() && hip.ok()) {
    return DeviceError{DeviceErrorCode::kFailed,
                       "devices of both vendors answer: name one with --vendor"};
  }
  if (cuda.ok()) return cuda;
  if (hip.ok()) return hip;
  return DeviceError{cuda.error().code,
                     "nvidia: " + cuda.error().message + "; amd: " + hip.error().message};
}

Outcome<Found> FindBackend(const RunOptions& options) {
  if (options.backend == BackendKind::kHost || !options.machine.empty()) return FindHost(options);
  if (options.backend) return EnumerateAll(LoadVendorBackend(*options.backend));
  if (options.vendor == "nvidia") return EnumerateAll(LoadVendorBackend(BackendKind::kCuda));
  if (options.vendor == "amd") return EnumerateAll(LoadVendorBackend(BackendKind::kHip));
  return FindAnyVendor();
}

}  // namespace

Outcome<Selection> SelectDevices(const RunOptions& options) {
  KERNELS_TRY_ASSIGN(Found found, FindBackend(options));
  if (!options.vendor.empty()) {
    std::erase_if(found.devices,
                  [&](const DeviceInfo& info) { return info.vendor != options.vendor; });
    if (found.devices.empty()) {
      return DeviceError{DeviceErrorCode::kNoDevice, "no device of vendor " + options.vendor};
    }
  }
  Selection selection{std::move(found.backend), options.vendor, {}, {}};
  if (options.devices.empty()) selection.present = found.devices;
  for (const std::string& id : options.devices) {
    const auto match = std::find_if(found.devices.begin(), found.devices.end(),
                                    [&](const DeviceInfo& info) { return MatchesId(info, id); });
    if (match == found.devices.end()) {
      selection.absent.push_back(id);
      continue;
    }
    const bool twice = std::any_of(selection.present.begin(), selection.present.end(),
                                   [&](const DeviceInfo& info) { return info.id == match->id; });
    if (!twice) selection.present.push_back(*match);
  }
  for (const DeviceInfo& info : selection.present) {
    if (selection.vendor.empty()) selection.vendor = info.vendor;
    if (selection.vendor != info.vendor) {
      return DeviceError{DeviceErrorCode::kFailed,
                         "the machine holds devices of several vendors: name one with --vendor"};
    }
  }
  return selection;
}

}  // namespace bimetal::kernels
