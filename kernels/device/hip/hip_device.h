#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "kernels/device/device.h"
#include "kernels/device/hip/module_api.h"

namespace bimetal::kernels {

// One AMD device (a GCD, or a partition) with one stream. One thread at a time.
class HipDevice final : public Device {
 public:
  static Outcome<std::unique_ptr<Device>> Open(std::shared_ptr<const hip::ModuleApi> api,
                                               int ordinal, DeviceInfo info);
  ~HipDevice() override;
  HipDevice(const HipDevice&) = delete;
  HipDevice& operator=(const HipDevice&) = delete;

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
  HipDevice(std::shared_ptr<const hip::ModuleApi> api, int ordinal, DeviceInfo info)
      : api_(std::move(api)), ordinal_(ordinal), info_(std::move(info)) {}
  Done Check(hip::HipError result, std::string_view call) const;
  // Selects the device on the calling thread. Error kTimeout once the device is wedged.
  Done Enter() const;
  Outcome<hip::HipModule> LoadModule(const ModuleImage& module) const;
  Outcome<hip::HipFunction> Function(const ModuleImage& module, const std::string& kernel);

  std::shared_ptr<const hip::ModuleApi> api_;
  int ordinal_;
  DeviceInfo info_;
  hip::HipStream stream_ = nullptr;
  std::map<const ModuleImage*, hip::HipModule> modules_;
  std::map<std::pair<const ModuleImage*, std::string>, hip::HipFunction> functions_;
  bool wedged_ = false;  // a kernel outlived its deadline: every call that waits would hang
};

}  // namespace bimetal::kernels
