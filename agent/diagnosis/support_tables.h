#pragma once

#include <string>
#include <string_view>

namespace bimetal::agent {

// What ROCm `version` (such as "6.4.1") says of an architecture (data/gfx_support.csv): supported,
// deprecated or unsupported; empty where the table does not judge. An empty version asks whether
// any release at all supports it. Thread-safe.
std::string GfxSupport(std::string_view gfx, std::string_view version);

// True: the architecture is that of a processor's own GPU.
bool IsIntegratedGfx(std::string_view gfx);

// The newest runtime (CUDA, ROCm) that a kernel driver of that version supports
// (data/driver_runtime.csv); empty where the table does not know the driver. Thread-safe.
std::string NewestRuntime(std::string_view vendor, std::string_view driver);

// The tables as compiled in.
std::string_view GfxSupportCsv();
std::string_view DriverRuntimeCsv();

}  // namespace bimetal::agent
