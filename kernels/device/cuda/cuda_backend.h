#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/device/cuda/driver_api.h"
#include "kernels/device/device.h"

namespace bimetal::kernels {

// NVIDIA devices through the CUDA driver API of libcuda.so.1, opened at run time.
class CudaBackend final : public Backend {
 public:
  // `libraries`: names to try, for tests. Errors: kNoLibrary, kNoDevice, kFailed (cuInit).
  static Outcome<std::unique_ptr<Backend>> Load(const std::vector<std::string>& libraries = {
                                                    "libcuda.so.1"});

  BackendKind kind() const override { return BackendKind::kCuda; }
  Outcome<std::vector<DeviceInfo>> Enumerate() override;
  Outcome<std::unique_ptr<Device>> Open(std::string_view id) override;

 private:
  explicit CudaBackend(std::shared_ptr<const cuda::DriverApi> api) : api_(std::move(api)) {}
  Outcome<DeviceInfo> Describe(int ordinal) const;

  std::shared_ptr<const cuda::DriverApi> api_;
};

}  // namespace bimetal::kernels
