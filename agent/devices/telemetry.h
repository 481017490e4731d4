#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "agent/devices/reading.h"

namespace bimetal::agent {

// A process that has the device open, by the host's process id.
struct GpuProcess {
  std::int64_t pid = 0;
  std::int64_t memory_bytes = -1;  // -1: not told

  auto operator<=>(const GpuProcess&) const = default;
};

// What moves by itself on a device: of one moment, part of no identity and no fingerprint. Of a
// partition the readings are the whole GPU's where `why` says so. A plain value.
struct Telemetry {
  Reading<std::int64_t> temperature_millicelsius;  // of the hottest spot that is told
  Reading<std::int64_t> memory_temperature_millicelsius;
  Reading<std::int64_t> power_milliwatts;
  Reading<std::int64_t> power_cap_milliwatts;
  Reading<std::int64_t> energy_millijoules;  // since the driver was loaded
  Reading<std::int64_t> graphics_clock_mhz;
  Reading<std::int64_t> memory_clock_mhz;
  Reading<std::int64_t> utilization_percent;
  Reading<std::int64_t> memory_used_bytes;
  Reading<std::int64_t> corrected_errors;  // since the driver was loaded
  Reading<std::int64_t> link_replays;      // PCIe, since the driver was loaded
  // Why the clocks are lowered now, sorted: power-cap, thermal, hardware-thermal, power-brake,
  // hardware-slowdown, current, other. Known and empty: for no reason.
  Reading<std::vector<std::string>> throttle;
  // Counters that grow while the device is throttled, by reason, in the driver's own unit.
  Reading<std::map<std::string, std::int64_t>> throttle_counts;
  Reading<std::string> fabric;                 // NVSwitch: completed, in progress, not started
  Reading<std::string> recovery_action;        // that the driver asks for: none, reset, reboot, ...
  Reading<std::vector<GpuProcess>> processes;  // sorted

  bool operator==(const Telemetry&) const = default;
};

// Calls `visit(name, reading...)` for every Reading, with the same field of each of `all`. The one
// list of fields; names are those of the probe's report.
template <class Visit, class... All>
void VisitTelemetry(Visit&& visit, All&... all) {
  visit("temperature", all.temperature_millicelsius...);
  visit("memory_temperature", all.memory_temperature_millicelsius...);
  visit("power", all.power_milliwatts...);
  visit("power_cap", all.power_cap_milliwatts...);
  visit("energy", all.energy_millijoules...);
  visit("graphics_clock", all.graphics_clock_mhz...);
  visit("memory_clock", all.memory_clock_mhz...);
  visit("utilization", all.utilization_percent...);
  visit("memory_used", all.memory_used_bytes...);
  visit("corrected_errors", all.corrected_errors...);
  visit("link_replays", all.link_replays...);
  visit("throttle", all.throttle...);
  visit("throttle_counts", all.throttle_counts...);
  visit("fabric", all.fabric...);
  visit("recovery_action", all.recovery_action...);
  visit("processes", all.processes...);
}

// Where the driver counts throttling and does not tell its present reasons: those whose counter
// grew since `before` are the present ones. Leaves `now` as it is where its reasons are known, or
// where one of the two has no counters.
void ThrottleFromCounts(const Telemetry& before, Telemetry& now);

}  // namespace bimetal::agent
