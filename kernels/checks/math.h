#pragma once

#include "kernels/checks/check.h"

namespace bimetal::kernels {

// exp2, log2, sin, cos, rsqrt, rcp and sqrt of the special-function units, and fp32 and fp64
// division and square root, over a seeded grid on every compute unit. All copies of a point,
// whichever unit computed them and however often, are bit-identical, and within the bound of their
// function (math.cc) of a reference in double. Value: compute units that ran.
CheckResult RunMath(Device& device, const CheckRequest& request);

}  // namespace bimetal::kernels
