// amdgpu's binary table of sensors.
#include "agent/devices/amd/gpu_metrics.h"

#include "tests/fuzz/fuzz.h"

BIMETAL_FUZZ(text) {
  const auto metrics = agent::ParseGpuMetrics(text);
  if (metrics && metrics->throttlers) agent::ThrottleReasons(*metrics->throttlers);
}
