#include "kernels/device/cuda/cuda_vendor.h"

namespace bimetal::kernels {
namespace {

std::string Joined(std::span<const std::string_view> archs) {
  std::string out;
  for (const std::string_view arch : archs) out += (out.empty() ? "" : " ") + std::string(arch);
  return out;
}

}  // namespace

Outcome<cuda::CuModule> CudaVendor::LoadModule(const ModuleImage& module, const DeviceInfo& info) {
  if (module.cuda_fatbin.empty()) {
    return DeviceError{DeviceErrorCode::kNoKernel, "this program was built without CUDA kernels"};
  }
  cuda::CuModule handle = nullptr;
  const VendorCall call = Invoke("cuModuleLoadData", api_->module_load_data, &handle,
                                 static_cast<const void*>(module.cuda_fatbin.data()));
  KERNELS_TRY(Check(call.code, "device " + info.id + ": loading kernels " +
                                   std::string(module.name) + " (built for " +
                                   Joined(module.cuda_archs) + ") on " + info.arch));
  return handle;
}

}  // namespace bimetal::kernels
