#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace bimetal::agent {

// What we take of amdgpu's binary file gpu_metrics. A field is empty where the version has none or
// the driver filled it with ones, its sign for "not supported".
struct GpuMetrics {
  int format = 0;   // 1: discrete GPUs; 2, 3: APUs
  int content = 0;  // 9 of format 1: a list of attributes in place of a structure
  std::optional<std::int64_t> temperature_millicelsius;  // hotspot; of APUs the graphics part's
  std::optional<std::int64_t> memory_temperature_millicelsius;
  std::optional<std::int64_t> power_milliwatts;    // of the socket
  std::optional<std::int64_t> energy_millijoules;  // since the driver was loaded
  std::optional<std::int64_t> activity;            // of the graphics part, in the driver's unit
  std::optional<std::int64_t> graphics_clock_mhz;  // the highest of its parts
  std::optional<std::int64_t> memory_clock_mhz;
  std::optional<std::int64_t> link_width;  // PCIe lanes now
  std::optional<std::int64_t> link_replays;
  std::optional<std::int64_t> partitions;
  // Bits of the driver's one list of throttlers, the same for all GPUs.
  std::optional<std::uint64_t> throttlers;
  std::map<std::string, std::int64_t> throttle_counts;  // by reason, in ms or cycles
  // XGMI links that the driver tells of, and of these, up. Empty where it tells none.
  std::optional<int> xgmi_links;
  std::optional<int> xgmi_links_up;
};

// Reads formats 1.0 to 1.9, 2.0 to 2.4 and 3.0. Errors: kData where the bytes are no whole table
// (shorter or longer than its header says, a size that its version has not, a list that runs out);
// kUnsupported for other versions.
Result<GpuMetrics> ParseGpuMetrics(std::string_view bytes);

// The reasons behind the bits of GpuMetrics::throttlers, as Telemetry names them, sorted.
std::vector<std::string> ThrottleReasons(std::uint64_t throttlers);

}  // namespace bimetal::agent
