#include "kernels/device/cuda/cuda_device.h"

#include <chrono>
#include <thread>
#include <vector>

namespace bimetal::kernels {
namespace {

constexpr auto kPollInterval = std::chrono::microseconds(200);

std::string Joined(std::span<const std::string_view> archs) {
  std::string out;
  for (const std::string_view arch : archs) out += (out.empty() ? "" : " ") + std::string(arch);
  return out;
}

}  // namespace

Outcome<std::unique_ptr<Device>> CudaDevice::Open(std::shared_ptr<const cuda::DriverApi> api,
                                                  cuda::CuDevice device, DeviceInfo info) {
  auto opened =
      std::unique_ptr<CudaDevice>(new CudaDevice(std::move(api), device, std::move(info)));
  KERNELS_TRY(opened->Check(opened->api_->primary_ctx_retain(&opened->context_, device),
                            "cuDevicePrimaryCtxRetain"));
  KERNELS_TRY(opened->Enter());
  KERNELS_TRY(opened->Check(opened->api_->stream_create(&opened->stream_, cuda::kStreamNonBlocking),
                            "cuStreamCreate"));
  return std::unique_ptr<Device>(std::move(opened));
}

CudaDevice::~CudaDevice() {
  if (context_ == nullptr || !Enter().ok()) return;
  for (const auto& [image, module] : modules_) api_->module_unload(module);
  if (stream_ != nullptr) api_->stream_destroy(stream_);
  api_->ctx_set_current(nullptr);
  api_->primary_ctx_release(device_);
}

Done CudaDevice::Check(cuda::CuResult result, std::string_view call) const {
  return cuda::Check(*api_, result, "device " + info_.id + ": " + std::string(call));
}

Done CudaDevice::Enter() const {
  if (wedged_) {
    return DeviceError{DeviceErrorCode::kTimeout,
                       "device " + info_.id + " still runs a kernel that missed its deadline"};
  }
  return Check(api_->ctx_set_current(context_), "cuCtxSetCurrent");
}

Outcome<MemoryInfo> CudaDevice::QueryMemory() {
  KERNELS_TRY(Enter());
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  KERNELS_TRY(Check(api_->mem_get_info(&free_bytes, &total_bytes), "cuMemGetInfo"));
  return MemoryInfo{free_bytes, total_bytes};
}

Outcome<Buffer> CudaDevice::Allocate(std::uint64_t bytes) {
  KERNELS_TRY(Enter());
  cuda::CuDevicePtr address = 0;
  KERNELS_TRY(
      Check(api_->mem_alloc(&address, bytes), "cuMemAlloc of " + std::to_string(bytes) + " bytes"));
  return Buffer{address, bytes, 0};
}

Done CudaDevice::Free(const Buffer& buffer) {
  KERNELS_TRY(Enter());
  return Check(api_->mem_free(buffer.address), "cuMemFree");
}

Done CudaDevice::Upload(const Buffer& buffer, std::span<const std::byte> data) {
  KERNELS_TRY(Enter());
  return Check(api_->memcpy_to_device(buffer.address, data.data(), data.size()), "cuMemcpyHtoD");
}

Done CudaDevice::Download(const Buffer& buffer, std::span<std::byte> data) {
  KERNELS_TRY(Enter());
  return Check(api_->memcpy_to_host(data.data(), buffer.address, data.size()), "cuMemcpyDtoH");
}

Outcome<cuda::CuFunction> CudaDevice::Function(const ModuleImage& module,
                                               const std::string& kernel) {
  const auto known = functions_.find({&module, kernel});
  if (known != functions_.end()) return known->second;
  if (module.cuda_fatbin.empty()) {
    return DeviceError{DeviceErrorCode::kNoKernel, "this program was built without CUDA kernels"};
  }
  auto loaded = modules_.find(&module);
  if (loaded == modules_.end()) {
    cuda::CuModule handle = nullptr;
    KERNELS_TRY(Check(api_->module_load_data(&handle, module.cuda_fatbin.data()),
                      "loading kernels " + std::string(module.name) + " (built for " +
                          Joined(module.cuda_archs) + ") on " + info_.arch));
    loaded = modules_.emplace(&module, handle).first;
  }
  cuda::CuFunction function = nullptr;
  KERNELS_TRY(Check(api_->module_get_function(&function, loaded->second, kernel.c_str()),
                    "finding kernel " + kernel));
  functions_[{&module, kernel}] = function;
  return function;
}

Done CudaDevice::Launch(const ModuleImage& module, std::string_view kernel, LaunchShape shape,
                        std::span<const std::byte> args) {
  KERNELS_TRY(Enter());
  KERNELS_TRY_ASSIGN(const cuda::CuFunction function, Function(module, std::string(kernel)));
  // The driver takes pointers to mutable arguments and copies what they point to.
  std::vector<std::byte> copy(args.begin(), args.end());
  void* params[] = {copy.data()};
  return Check(api_->launch_kernel(function, shape.blocks, 1, 1, shape.threads, 1, 1, 0, stream_,
                                   params, nullptr),
               "launching " + std::string(kernel));
}

Done CudaDevice::Synchronize(Deadline deadline) {
  KERNELS_TRY(Enter());
  for (;;) {
    const cuda::CuResult result = api_->stream_query(stream_);
    if (result != cuda::kErrorNotReady) return Check(result, "waiting for a kernel");
    if (std::chrono::steady_clock::now() >= deadline) {
      wedged_ = true;
      return DeviceError{DeviceErrorCode::kTimeout,
                         "device " + info_.id + ": a kernel did not finish in time"};
    }
    std::this_thread::sleep_for(kPollInterval);
  }
}

}  // namespace bimetal::kernels
