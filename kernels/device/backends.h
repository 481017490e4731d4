#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernels/device/device.h"

namespace bimetal::kernels {

// Opens the vendor's library. Errors: kNoLibrary, kNoDevice, kFailed. May hang where the vendor's
// driver does: call it on a thread that may be abandoned.
Outcome<std::unique_ptr<Backend>> LoadVendorBackend(BackendKind kind);

// The first vendor back end (CUDA, then HIP) that has devices, else the host's processor as
// HostCpu(). For programs that compute, never for validation.
std::unique_ptr<Backend> LoadAnyBackend(std::string* why_host);

}  // namespace bimetal::kernels
