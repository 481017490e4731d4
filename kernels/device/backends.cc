#include "kernels/device/backends.h"

#include "kernels/device/cuda/cuda_backend.h"
#include "kernels/device/hip/hip_backend.h"
#include "kernels/device/host/host_backend.h"

namespace bimetal::kernels {

Outcome<std::unique_ptr<Backend>> LoadVendorBackend(BackendKind kind) {
  switch (kind) {
    case BackendKind::kCuda:
      return CudaBackend::Load();
    case BackendKind::kHip:
      return HipBackend::Load();
    case BackendKind::kHost:
      break;
  }
  return DeviceError{DeviceErrorCode::kFailed, "the host is no vendor's back end"};
}

std::unique_ptr<Backend> LoadAnyBackend(std::string* why_host) {
  why_host->clear();
  for (const BackendKind kind : {BackendKind::kCuda, BackendKind::kHip}) {
    auto loaded = LoadVendorBackend(kind);
    if (loaded.ok()) {
      const auto devices = loaded.value()->Enumerate();
      if (devices.ok()) return std::move(loaded.value());
      *why_host += (why_host->empty() ? "" : "; ") + devices.error().message;
    } else {
      *why_host += (why_host->empty() ? "" : "; ") + loaded.error().message;
    }
  }
  return std::make_unique<HostBackend>(std::vector<HostDeviceSpec>{HostCpu()});
}

}  // namespace bimetal::kernels
