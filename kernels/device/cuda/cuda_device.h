#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "kernels/device/cuda/driver_api.h"
#include "kernels/device/device.h"

namespace bimetal::kernels {

// One NVIDIA device with its primary context and one stream. One thread at a time.
class CudaDevice final : public Device {
 public:
  static Outcome<std::unique_ptr<Device>> Open(std::shared_ptr<const cuda::DriverApi> api,
                                               cuda::CuDevice device, DeviceInfo info);
  ~CudaDevice() override;
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;

  const DeviceInfo& info() const override { return info_; }
  Outcome<MemoryInfo> QueryMemory() override;
  Outcome<Buffer> Allocate(std::uint64_t bytes) override;
  Done Free(const Buffer& buffer) override;
  Done Upload(const Buffer& buffer, std::span<const std::byte> data) override;
  Done Download(const Buffer& buffer, std::span<std::byte> data) override;
  Done Launch(const ModuleImage& module, std::string_view kernel, LaunchShape shape,
              std::span<const std::byte> args) override;
  Done Synchronize(Deadline deadline) override;
  std::optional<std::string> UntestedReason(const Buffer&) const override { return std::nullopt; }

 private:
  CudaDevice(std::shared_ptr<const cuda::DriverApi> api, cuda::CuDevice device, DeviceInfo info)
      : api_(std::move(api)), device_(device), info_(std::move(info)) {}
  Done Check(cuda::CuResult result, std::string_view call) const;
  // Makes the context current on the calling thread. Error kTimeout once the device is wedged.
  Done Enter() const;
  Outcome<cuda::CuFunction> Function(const ModuleImage& module, const std::string& kernel);

  std::shared_ptr<const cuda::DriverApi> api_;
  cuda::CuDevice device_;
  DeviceInfo info_;
  cuda::CuContext context_ = nullptr;
  cuda::CuStream stream_ = nullptr;
  std::map<const ModuleImage*, cuda::CuModule> modules_;
  std::map<std::pair<const ModuleImage*, std::string>, cuda::CuFunction> functions_;
  bool wedged_ = false;  // a kernel outlived its deadline: every call that waits would hang
};

}  // namespace bimetal::kernels
