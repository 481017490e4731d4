#pragma once

#include <optional>
#include <string>

#include "agent/devices/root_files.h"
#include "agent/devices/telemetry.h"

namespace bimetal::agent {

// What moves on one AMD GPU, and the state of its XGMI links, which the same file tells.
struct CardTelemetry {
  Telemetry telemetry;
  std::optional<int> xgmi_links_up;  // of those whose state the driver tells
};

// Reads hwmon, gpu_metrics and the load files under the GPU's sysfs folder. Each field by itself:
// hwmon first, gpu_metrics where hwmon does not tell. A GPU that sleeps is not woken: all unknown.
CardTelemetry ReadCardTelemetry(const RootFiles& files, const std::string& folder);

// True where the GPU's runtime power management has put it to sleep; most reads would wake it.
bool IsAsleep(const RootFiles& files, const std::string& folder);

// The processes that have GPU `gpu_id` (of KFD) open, by /sys/class/kfd/kfd/proc.
Reading<std::vector<GpuProcess>> ReadKfdProcesses(const RootFiles& files, std::uint64_t gpu_id);

}  // namespace bimetal::agent
