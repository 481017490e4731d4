#pragma once

#include "kernels/checks/check.h"

namespace bimetal::kernels {

// Fills device memory with patterns and reads them back: own address, walking one and zero, moving
// inversions, seeded random. Every bit of every tested word is read as 0 and as 1. Pass: no word
// differed and every thread proved that it ran. Value: bytes tested.
CheckResult RunMemoryPattern(Device& device, const CheckRequest& request);

}  // namespace bimetal::kernels
