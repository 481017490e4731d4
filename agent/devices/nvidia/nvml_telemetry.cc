#include "agent/devices/nvidia/nvml_telemetry.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace bimetal::agent {
namespace {

using Number = Reading<std::int64_t>;

Number Celsius(Number reading) {
  if (reading.known()) reading.value *= 1000;
  return reading;
}

Number Temperature(NvmlAsker& ask) {
  constexpr int kGpu = 0;
  unsigned value = 0;
  if (ask.api().temperature == nullptr) return NvmlAsker::Missing<std::int64_t>();
  const auto code = ask.api().temperature(ask.handle(), kGpu, &value);
  return code == nvml::kSuccess ? Number::Of(value) : ask.Answer<std::int64_t>(code);
}

Number Clock(NvmlAsker& ask, int type) {
  unsigned value = 0;
  if (ask.api().clock == nullptr) return NvmlAsker::Missing<std::int64_t>();
  const auto code = ask.api().clock(ask.handle(), type, &value);
  return code == nvml::kSuccess ? Number::Of(value) : ask.Answer<std::int64_t>(code);
}

Number Load(NvmlAsker& ask) {
  nvml::Utilization value{};
  if (ask.api().utilization == nullptr) return NvmlAsker::Missing<std::int64_t>();
  const auto code = ask.api().utilization(ask.handle(), &value);
  return code == nvml::kSuccess ? Number::Of(value.gpu) : ask.Answer<std::int64_t>(code);
}

Reading<std::string> Fabric(NvmlAsker& ask) {
  nvml::FabricInfo info{};
  info.version = nvml::kFabricInfoVersion;
  if (ask.api().fabric == nullptr) return NvmlAsker::Missing<std::string>();
  const auto code = ask.api().fabric(ask.handle(), &info);
  if (code != nvml::kSuccess) return ask.Answer<std::string>(code);
  switch (info.state) {
    case 1:
      return Reading<std::string>::Of("not started");
    case 2:
      return Reading<std::string>::Of("in progress");
    case 3:
      // It ended; how is in `status`.
      return Reading<std::string>::Of(
          info.status == nvml::kSuccess ? "completed" : "failed: " + nvml::ReturnText(info.status));
    default:
      return Reading<std::string>::Unknown("the GPU is on no fabric");
  }
}

Reading<std::string> RecoveryAction(NvmlAsker& ask) {
  const Number action = ask.Field(nvml::kFieldRecoveryAction);
  if (!action.known()) return SameGap<std::string>(action);
  constexpr std::array<const char*, 6> kActions = {
      "none", "reset", "reboot", "drain peer-to-peer", "drain and reset", "restart IMEX"};
  if (action.value < 0 || action.value >= static_cast<std::int64_t>(kActions.size())) {
    return Reading<std::string>::Of("action " + std::to_string(action.value));
  }
  return Reading<std::string>::Of(kActions[static_cast<std::size_t>(action.value)]);
}

Reading<std::vector<GpuProcess>> Processes(NvmlAsker& ask) {
  using Processes = std::vector<GpuProcess>;
  if (ask.api().processes == nullptr) return NvmlAsker::Missing<Processes>();
  std::vector<nvml::ProcessInfo> infos(256);
  auto count = static_cast<unsigned>(infos.size());
  const auto code = ask.api().processes(ask.handle(), &count, infos.data());
  if (code != nvml::kSuccess) return ask.Answer<Processes>(code);
  Processes out;
  for (std::size_t i = 0; i < count && i < infos.size(); ++i) {
    const std::uint64_t bytes = infos[i].used_bytes;
    out.push_back({infos[i].pid, bytes > static_cast<std::uint64_t>(INT64_MAX)
                                     ? -1
                                     : static_cast<std::int64_t>(bytes)});
  }
  std::sort(out.begin(), out.end());
  return Reading<Processes>::Of(std::move(out));
}

}  // namespace

Telemetry ReadNvmlTelemetry(NvmlAsker& ask, const Reading<std::int64_t>& memory_used) {
  constexpr int kGraphics = 0;
  constexpr int kMemory = 2;
  Telemetry out;
  out.temperature_millicelsius = Celsius(Temperature(ask));
  out.memory_temperature_millicelsius = Celsius(ask.Field(nvml::kFieldMemoryTemperature));
  out.power_milliwatts = ask.Unsigned(ask.api().power);
  out.power_cap_milliwatts = ask.Unsigned(ask.api().power_limit);
  out.energy_millijoules = ask.Long(ask.api().energy);
  out.graphics_clock_mhz = Clock(ask, kGraphics);
  out.memory_clock_mhz = Clock(ask, kMemory);
  out.utilization_percent = Load(ask);
  out.memory_used_bytes = memory_used;
  out.corrected_errors = ask.EccErrors(0);
  out.link_replays = ask.Unsigned(ask.api().replays);
  const Number reasons = ask.Long(ask.api().clock_reasons);
  out.throttle = reasons.known() ? Reading<std::vector<std::string>>::Of(
                                       ClockReasons(static_cast<std::uint64_t>(reasons.value)))
                                 : SameGap<std::vector<std::string>>(reasons);
  out.throttle_counts = Reading<std::map<std::string, std::int64_t>>::Unknown(
      "the reasons of the moment are asked for");
  out.fabric = Fabric(ask);
  out.recovery_action = RecoveryAction(ask);
  out.processes = Processes(ask);
  return out;
}

Telemetry InstanceTelemetry(NvmlAsker& ask, const Telemetry& whole,
                            const Reading<std::int64_t>& memory_used) {
  Telemetry out = whole;
  VisitTelemetry(
      [](std::string_view, auto& reading) {
        if (reading.known()) reading.why = "of the whole GPU";
      },
      out);
  out.memory_used_bytes = memory_used;
  out.utilization_percent = Number::Unknown("the library does not tell it of an instance");
  out.processes = Processes(ask);
  return out;
}

std::vector<std::string> ClockReasons(std::uint64_t bits) {
  std::vector<std::string> out;
  // Sorted by name.
  if ((bits & 0x08) != 0) out.emplace_back("hardware-slowdown");
  if ((bits & 0x40) != 0) out.emplace_back("hardware-thermal");
  if ((bits & 0x80) != 0) out.emplace_back("power-brake");
  if ((bits & 0x04) != 0) out.emplace_back("power-cap");
  if ((bits & 0x20) != 0) out.emplace_back("thermal");
  return out;
}

}  // namespace bimetal::agent
