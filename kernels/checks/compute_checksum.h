#pragma once

#include "kernels/checks/check.h"

namespace bimetal::kernels {

// Runs a chain of 64-bit integer operations in every thread, with a seed of its own, so that every
// compute unit works; compares each result exactly with the host's and repeats bit-identically.
// Pass: every unit ran, every value was right each time. Value: units that ran.
CheckResult RunComputeChecksum(Device& device, const CheckRequest& request);

}  // namespace bimetal::kernels
