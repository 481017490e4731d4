#include "agent/devices/amd/card_telemetry.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "agent/devices/amd/gpu_metrics.h"
#include "agent/devices/pci.h"

namespace bimetal::agent {
namespace {

using Number = Reading<std::int64_t>;

// The GPU's own hwmon folder; its number is arbitrary. Unknown: there is none.
Reading<std::string> FindHwmon(const RootFiles& files, const std::string& folder) {
  const auto names = files.List(folder + "/hwmon");
  for (const std::string& name : names.value) {
    if (NumberAfter(name, "hwmon")) {
      return Reading<std::string>::Of(folder + "/hwmon/" + name);
    }
  }
  return Reading<std::string>::Unknown("the driver shows no hwmon folder");
}

// A sensor by its label; unknown where none has it.
Number Labelled(const RootFiles& files, const std::string& hwmon, const std::string& prefix,
                const std::string& label) {
  for (int i = 1; i <= 8; ++i) {
    const std::string sensor = hwmon + "/" + prefix + std::to_string(i);
    const auto text = files.Text(sensor + "_label");
    if (text.known() && text.value == label) return files.Number(sensor + "_input");
  }
  return Number::Unknown("no sensor is labelled " + label);
}

Number Divided(Number reading, std::int64_t by) {
  if (reading.known()) reading.value /= by;
  return reading;
}

// `first` where it is known, else what gpu_metrics says, else why neither tells.
void OrMetrics(Number& first, const std::optional<std::int64_t>& metrics) {
  if (!first.known() && metrics) first = Number::Of(*metrics, "by gpu_metrics");
}

void ReadHwmon(const RootFiles& files, const std::string& folder, Telemetry& out) {
  const auto hwmon = FindHwmon(files, folder);
  if (!hwmon.known()) {
    const auto gap = SameGap<std::int64_t>(hwmon);
    out.temperature_millicelsius = out.memory_temperature_millicelsius = gap;
    out.power_milliwatts = out.power_cap_milliwatts = gap;
    out.graphics_clock_mhz = out.memory_clock_mhz = gap;
    return;
  }
  out.temperature_millicelsius = Labelled(files, hwmon.value, "temp", "junction");
  // Of APUs only the edge is told.
  if (out.temperature_millicelsius.state == Known::kUnknown) {
    out.temperature_millicelsius = Labelled(files, hwmon.value, "temp", "edge");
  }
  out.memory_temperature_millicelsius = Labelled(files, hwmon.value, "temp", "mem");
  auto power = files.Number(hwmon.value + "/power1_input");
  if (!power.known()) {
    power = files.Number(hwmon.value + "/power1_average");
    if (power.known()) power.why = "averaged by the driver";
  }
  out.power_milliwatts = Divided(power, 1000);
  out.power_cap_milliwatts = Divided(files.Number(hwmon.value + "/power1_cap"), 1000);
  out.graphics_clock_mhz = Divided(Labelled(files, hwmon.value, "freq", "sclk"), 1'000'000);
  out.memory_clock_mhz = Divided(Labelled(files, hwmon.value, "freq", "mclk"), 1'000'000);
}

void TakeThrottle(const GpuMetrics& metrics, Telemetry& out) {
  if (metrics.throttlers) {
    out.throttle = Reading<std::vector<std::string>>::Of(ThrottleReasons(*metrics.throttlers));
  } else {
    out.throttle = Reading<std::vector<std::string>>::Unknown(
        metrics.throttle_counts.empty() ? "this version of gpu_metrics does not tell"
                                        : "only counters are told; known from the second look on");
  }
  if (!metrics.throttle_counts.empty()) {
    out.throttle_counts = Reading<std::map<std::string, std::int64_t>>::Of(metrics.throttle_counts);
  } else {
    out.throttle_counts = Reading<std::map<std::string, std::int64_t>>::Unknown(
        "this version of gpu_metrics has none");
  }
}

void ReadMetrics(const RootFiles& files, const std::string& folder, CardTelemetry& card) {
  Telemetry& out = card.telemetry;
  const auto bytes = files.Bytes(folder + "/gpu_metrics");
  const auto parsed = bytes.known() ? ParseGpuMetrics(bytes.value)
                                    : Result<GpuMetrics>(Fail(ErrorCode::kNotFound, bytes.why));
  if (!parsed) {
    const bool unknown =
        bytes.state == Known::kUnknown || parsed.error().code == ErrorCode::kUnsupported;
    const Number gap =
        unknown ? Number::Unknown(parsed.error().message) : Number::Failed(parsed.error().message);
    out.energy_millijoules = gap;
    out.throttle = SameGap<std::vector<std::string>>(gap);
    out.throttle_counts = SameGap<std::map<std::string, std::int64_t>>(gap);
    return;
  }
  OrMetrics(out.temperature_millicelsius, parsed->temperature_millicelsius);
  OrMetrics(out.memory_temperature_millicelsius, parsed->memory_temperature_millicelsius);
  OrMetrics(out.power_milliwatts, parsed->power_milliwatts);
  OrMetrics(out.graphics_clock_mhz, parsed->graphics_clock_mhz);
  OrMetrics(out.memory_clock_mhz, parsed->memory_clock_mhz);
  OrMetrics(out.link_replays, parsed->link_replays);
  out.energy_millijoules = parsed->energy_millijoules
                               ? Number::Of(*parsed->energy_millijoules)
                               : Number::Unknown("gpu_metrics counts no energy");
  TakeThrottle(*parsed, out);
  card.xgmi_links_up = parsed->xgmi_links_up;
}

void SetAll(Telemetry& out, const std::string& why) {
  VisitTelemetry([&](std::string_view,
                     auto& reading) { reading = std::decay_t<decltype(reading)>::Unknown(why); },
                 out);
}

}  // namespace

bool IsAsleep(const RootFiles& files, const std::string& folder) {
  const auto status = files.Text(folder + "/power/runtime_status");
  return status.known() && (status.value == "suspended" || status.value == "suspending");
}

CardTelemetry ReadCardTelemetry(const RootFiles& files, const std::string& folder) {
  CardTelemetry card;
  Telemetry& out = card.telemetry;
  if (IsAsleep(files, folder)) {
    SetAll(out, "the GPU sleeps and is not woken for this");
    return card;
  }
  out.utilization_percent = files.Number(folder + "/gpu_busy_percent");
  out.memory_used_bytes = files.Number(folder + "/mem_info_vram_used");
  out.link_replays = files.Number(folder + "/pcie_replay_count");
  ReadHwmon(files, folder, out);
  ReadMetrics(files, folder, card);
  out.fabric = Reading<std::string>::Unknown("AMD GPUs have none");
  out.recovery_action = Reading<std::string>::Unknown("amdgpu does not tell");
  return card;
}

Reading<std::vector<GpuProcess>> ReadKfdProcesses(const RootFiles& files, std::uint64_t gpu_id) {
  using Processes = std::vector<GpuProcess>;
  const std::string folder = "sys/class/kfd/kfd/proc";
  const auto pids = files.List(folder);
  if (!pids.known()) return SameGap<Processes>(pids);
  Processes out;
  for (const std::string& name : pids.value) {
    const auto pid = ParseUnsigned(name);
    if (!pid || *pid > static_cast<std::uint64_t>(INT32_MAX)) continue;
    const auto bytes = files.Number(folder + "/" + name + "/vram_" + std::to_string(gpu_id));
    // A process that ends while we look has no file any more; one that never used this GPU neither.
    if (bytes.state == Known::kUnknown) continue;
    out.push_back({static_cast<std::int64_t>(*pid), bytes.known() ? bytes.value : -1});
  }
  std::sort(out.begin(), out.end());
  return Reading<Processes>::Of(std::move(out));
}

}  // namespace bimetal::agent
