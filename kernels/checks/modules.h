#pragma once

#include "kernels/device/module.h"

namespace bimetal::kernels {

// The embedded kernels of each check; defined in sources that cmake/Kernels.cmake generates.
const ModuleImage& MemoryPatternModule();
const ModuleImage& ComputeChecksumModule();
const ModuleImage& GemmModule();
const ModuleImage& MathModule();
const ModuleImage& AtomicsModule();
const ModuleImage& RatesModule();

}  // namespace bimetal::kernels
