#include "kernels/device/hip/hip_vendor.h"

namespace bimetal::kernels {

Outcome<hip::HipModule> HipVendor::LoadModule(const ModuleImage& module, const DeviceInfo& info) {
  if (module.hip_images.empty()) {
    return DeviceError{DeviceErrorCode::kNoKernel, "this program was built without HIP kernels"};
  }
  std::string built;
  for (const HipImage& image : module.hip_images) {
    built += (built.empty() ? "" : " ") + std::string(image.arch);
    if (!info.arch.empty() && info.arch != image.arch) continue;
    hip::HipModule handle = nullptr;
    const VendorCall call = Invoke("hipModuleLoadData", api_->module_load_data, &handle,
                                   static_cast<const void*>(image.bytes.data()));
    const Done loaded =
        Check(call.code, "device " + info.id + ": loading kernels " + std::string(module.name) +
                             " for " + std::string(image.arch));
    if (loaded.ok()) return handle;
    if (!info.arch.empty() || loaded.error().code != DeviceErrorCode::kNoKernel) {
      return loaded.error();
    }
  }
  return DeviceError{DeviceErrorCode::kNoKernel,
                     "device " + info.id + " is " +
                         (info.arch.empty() ? "of an unnamed architecture" : info.arch) +
                         "; kernels " + std::string(module.name) + " were built for " + built};
}

}  // namespace bimetal::kernels
