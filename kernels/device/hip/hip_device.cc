#include "kernels/device/hip/hip_device.h"

#include <chrono>
#include <thread>
#include <vector>

namespace bimetal::kernels {
namespace {

constexpr auto kPollInterval = std::chrono::microseconds(200);

}  // namespace

Outcome<std::unique_ptr<Device>> HipDevice::Open(std::shared_ptr<const hip::ModuleApi> api,
                                                 int ordinal, DeviceInfo info) {
  auto opened = std::unique_ptr<HipDevice>(new HipDevice(std::move(api), ordinal, std::move(info)));
  KERNELS_TRY(opened->Enter());
  KERNELS_TRY(opened->Check(opened->api_->stream_create(&opened->stream_, hip::kStreamNonBlocking),
                            "hipStreamCreate"));
  return std::unique_ptr<Device>(std::move(opened));
}

HipDevice::~HipDevice() {
  if (stream_ == nullptr || !Enter().ok()) return;
  for (const auto& [image, module] : modules_) api_->module_unload(module);
  api_->stream_destroy(stream_);
}

Done HipDevice::Check(hip::HipError result, std::string_view call) const {
  return hip::Check(*api_, result, "device " + info_.id + ": " + std::string(call));
}

Done HipDevice::Enter() const {
  if (wedged_) {
    return DeviceError{DeviceErrorCode::kTimeout,
                       "device " + info_.id + " still runs a kernel that missed its deadline"};
  }
  return Check(api_->set_device(ordinal_), "hipSetDevice");
}

Outcome<MemoryInfo> HipDevice::QueryMemory() {
  KERNELS_TRY(Enter());
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  KERNELS_TRY(Check(api_->mem_get_info(&free_bytes, &total_bytes), "hipMemGetInfo"));
  return MemoryInfo{free_bytes, total_bytes};
}

Outcome<Buffer> HipDevice::Allocate(std::uint64_t bytes) {
  KERNELS_TRY(Enter());
  hip::HipDevicePtr address = nullptr;
  KERNELS_TRY(
      Check(api_->malloc(&address, bytes), "hipMalloc of " + std::to_string(bytes) + " bytes"));
  return Buffer{reinterpret_cast<std::uint64_t>(address), bytes, 0};
}

Done HipDevice::Free(const Buffer& buffer) {
  KERNELS_TRY(Enter());
  return Check(api_->free(reinterpret_cast<hip::HipDevicePtr>(buffer.address)), "hipFree");
}

Done HipDevice::Upload(const Buffer& buffer, std::span<const std::byte> data) {
  KERNELS_TRY(Enter());
  // HIP's source pointer lacks the const that it honours.
  return Check(api_->memcpy_to_device(reinterpret_cast<hip::HipDevicePtr>(buffer.address),
                                      const_cast<std::byte*>(data.data()), data.size()),
               "hipMemcpyHtoD");
}

Done HipDevice::Download(const Buffer& buffer, std::span<std::byte> data) {
  KERNELS_TRY(Enter());
  return Check(api_->memcpy_to_host(
                   data.data(), reinterpret_cast<hip::HipDevicePtr>(buffer.address), data.size()),
               "hipMemcpyDtoH");
}

// The image of the device's own architecture; where the library does not name it, the first image
// that loads (a code object of another architecture is refused).
Outcome<hip::HipModule> HipDevice::LoadModule(const ModuleImage& module) const {
  if (module.hip_images.empty()) {
    return DeviceError{DeviceErrorCode::kNoKernel, "this program was built without HIP kernels"};
  }
  std::string built;
  for (const HipImage& image : module.hip_images) {
    built += (built.empty() ? "" : " ") + std::string(image.arch);
    if (!info_.arch.empty() && info_.arch != image.arch) continue;
    hip::HipModule handle = nullptr;
    const Done loaded =
        Check(api_->module_load_data(&handle, image.bytes.data()),
              "loading kernels " + std::string(module.name) + " for " + std::string(image.arch));
    if (loaded.ok()) return handle;
    if (!info_.arch.empty() || loaded.error().code != DeviceErrorCode::kNoKernel) {
      return loaded.error();
    }
  }
  return DeviceError{DeviceErrorCode::kNoKernel,
                     "device " + info_.id + " is " +
                         (info_.arch.empty() ? "of an unnamed architecture" : info_.arch) +
                         "; kernels " + std::string(module.name) + " were built for " + built};
}

Outcome<hip::HipFunction> HipDevice::Function(const ModuleImage& module,
                                              const std::string& kernel) {
  const auto known = functions_.find({&module, kernel});
  if (known != functions_.end()) return known->second;
  auto loaded = modules_.find(&module);
  if (loaded == modules_.end()) {
    KERNELS_TRY_ASSIGN(const hip::HipModule handle, LoadModule(module));
    loaded = modules_.emplace(&module, handle).first;
  }
  hip::HipFunction function = nullptr;
  KERNELS_TRY(Check(api_->module_get_function(&function, loaded->second, kernel.c_str()),
                    "finding kernel " + kernel));
  functions_[{&module, kernel}] = function;
  return function;
}

Done HipDevice::Launch(const ModuleImage& module, std::string_view kernel, LaunchShape shape,
                       std::span<const std::byte> args) {
  KERNELS_TRY(Enter());
  KERNELS_TRY_ASSIGN(const hip::HipFunction function, Function(module, std::string(kernel)));
  std::vector<std::byte> copy(args.begin(), args.end());
  void* params[] = {copy.data()};
  return Check(api_->module_launch_kernel(function, shape.blocks, 1, 1, shape.threads, 1, 1, 0,
                                          stream_, params, nullptr),
               "launching " + std::string(kernel));
}

Done HipDevice::Synchronize(Deadline deadline) {
  KERNELS_TRY(Enter());
  for (;;) {
    const hip::HipError result = api_->stream_query(stream_);
    if (result != hip::kErrorNotReady) return Check(result, "waiting for a kernel");
    if (std::chrono::steady_clock::now() >= deadline) {
      wedged_ = true;
      return DeviceError{DeviceErrorCode::kTimeout,
                         "device " + info_.id + ": a kernel did not finish in time"};
    }
    std::this_thread::sleep_for(kPollInterval);
  }
}

}  // namespace bimetal::kernels
