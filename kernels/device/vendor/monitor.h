#pragma once

#include "kernels/device/device.h"

namespace bimetal::kernels {

// Reads clock, power, temperature and error counters of one device, beside the library that runs
// kernels. One thread at a time.
class Monitor {
 public:
  virtual ~Monitor() = default;
  // What cannot be read is absent.
  virtual Telemetry Sample() = 0;
};

}  // namespace bimetal::kernels
