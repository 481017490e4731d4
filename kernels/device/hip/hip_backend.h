#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/device/device.h"
#include "kernels/device/hip/module_api.h"

namespace bimetal::kernels {

// AMD devices through the HIP module API of libamdhip64.so, opened at run time.
class HipBackend final : public Backend {
 public:
  // `libraries`: names to try; empty: the sonames of ROCm 7, 6 and 5, then /opt/rocm. Errors:
  // kNoLibrary, kNoDevice, kFailed (hipInit).
  static Outcome<std::unique_ptr<Backend>> Load(std::vector<std::string> libraries = {});

  BackendKind kind() const override { return BackendKind::kHip; }
  Outcome<std::vector<DeviceInfo>> Enumerate() override;
  Outcome<std::unique_ptr<Device>> Open(std::string_view id) override;

 private:
  explicit HipBackend(std::shared_ptr<const hip::ModuleApi> api) : api_(std::move(api)) {}
  Outcome<DeviceInfo> Describe(int ordinal) const;

  std::shared_ptr<const hip::ModuleApi> api_;
};

// The id in a HIP uuid: "GPU-" and the 16 hex digits of the device's unique id, which HIP stores as
// text; 32 hex digits where the bytes are no text; empty where all are zero.
std::string HipUuidText(const hip::HipUuid& uuid);

}  // namespace bimetal::kernels
