#pragma once

#include <string>

#include "agent/devices/root_files.h"

namespace bimetal::agent {

// Version of NVIDIA's container toolkit on the machine, by files alone: the name of its library
// libnvidia-container.so.<version>, which is released with it under one number, in the places where
// packages and NVIDIA's operator put it; else Debian's list of packages. Unknown: none is seen.
Reading<std::string> ReadToolkitVersion(const RootFiles& files);

}  // namespace bimetal::agent
