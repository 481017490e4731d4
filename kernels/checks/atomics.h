#pragma once

#include "kernels/checks/check.h"

namespace bimetal::kernels {

// Add, min, max, exchange and compare-and-swap of 32 and 64 bits: all threads of the device meet in
// one cell and those of each block in one of their own; every cell must hold what the host computes
// (of exchanges: no value is lost or doubled). Value: compute units that ran.
CheckResult RunAtomics(Device& device, const CheckRequest& request);

}  // namespace bimetal::kernels
