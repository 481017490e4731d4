#pragma once

#include "agent/devices/nvidia/nvml_asker.h"
#include "agent/devices/telemetry.h"

namespace bimetal::agent {

// What moves on the GPU that `ask` asks, `memory_used` beside. May block in the driver.
Telemetry ReadNvmlTelemetry(NvmlAsker& ask, const Reading<std::int64_t>& memory_used);

// Of a MIG instance that `ask` asks: its own memory and processes, the rest of its GPU, marked so.
Telemetry InstanceTelemetry(NvmlAsker& ask, const Telemetry& whole,
                            const Reading<std::int64_t>& memory_used);

// The bits of nvmlDeviceGetCurrentClocksEventReasons as Telemetry names them, sorted. Reasons that
// a user chose (application clocks, sync boost, display) and idleness are none.
std::vector<std::string> ClockReasons(std::uint64_t bits);

}  // namespace bimetal::agent
