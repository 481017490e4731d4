// Facts of single devices, from the inventory: gfx.support, throttle.thermal, throttle.power_cap,
// throttle.power_brake, recovery, fabric; of the node: amd.integrated_only.
#include <algorithm>

#include "agent/diagnosis/collect.h"
#include "agent/diagnosis/support_tables.h"

namespace bimetal::agent {
namespace {

constexpr std::int64_t kWarmMillicelsius = 70'000;

void CollectGfx(const Look& look, Observations& seen) {
  const auto rocm = seen.Get("rocm").value;
  const std::string version = rocm.known() && rocm.value != "none" ? rocm.value : std::string();
  std::size_t devices = 0;
  std::size_t integrated = 0;
  for (const Device& device : look.inventory.devices) {
    if (device.vendor != Vendor::kAmd || !device.architecture.known()) continue;
    const std::string& gfx = device.architecture.value;
    ++devices;
    integrated += IsIntegratedGfx(gfx) ? 1 : 0;
    const std::string support = GfxSupport(gfx, version);
    if (support.empty()) continue;
    seen.SetFor(device.id.value, "gfx.support", support,
                gfx + " is " + support + " by " +
                    (version.empty() ? "every ROCm release of the table" : "ROCm " + version));
  }
  if (devices == 0) return;
  seen.Set("amd.integrated_only", integrated == devices ? "yes" : "no",
           "all " + std::to_string(devices) + " AMD device(s) are part of the processor");
}

bool Has(const std::vector<std::string>& reasons, std::initializer_list<const char*> any) {
  return std::any_of(any.begin(), any.end(), [&](const char* reason) {
    return std::find(reasons.begin(), reasons.end(), reason) != reasons.end();
  });
}

void CollectTelemetry(const Look& look, const std::string& id, const Telemetry& telemetry,
                      Observations& seen) {
  if (telemetry.throttle.known()) {
    const auto& reasons = telemetry.throttle.value;
    std::string evidence = "clocks are lowered:";
    for (const std::string& reason : reasons) evidence += " " + reason;
    const auto set = [&](const std::string& fact, std::initializer_list<const char*> any) {
      seen.SetFor(id, fact, Has(reasons, any) ? "yes" : "no", evidence);
    };
    // Some drivers claim it of a GPU that is not even warm.
    const auto& heat = telemetry.temperature_millicelsius;
    if (heat.known() && heat.value < kWarmMillicelsius) {
      seen.SetFor(id, "throttle.thermal", "no");
    } else {
      set("throttle.thermal", {"thermal", "hardware-thermal"});
    }
    if (look.options.fleeting) set("throttle.power_cap", {"power-cap"});
    set("throttle.power_brake", {"power-brake"});
  }
  if (telemetry.recovery_action.known()) {
    seen.SetFor(id, "recovery", telemetry.recovery_action.value,
                "the driver's recovery action is '" + telemetry.recovery_action.value + "'");
  }
  if (telemetry.fabric.known()) {
    seen.SetFor(id, "fabric", telemetry.fabric.value,
                "the fabric state is '" + telemetry.fabric.value + "'");
  }
}

}  // namespace

void CollectDevices(const Look& look, Observations& seen) {
  CollectGfx(look, seen);
  for (const auto& [id, telemetry] : look.inventory.telemetry) {
    CollectTelemetry(look, id, telemetry, seen);
  }
}

}  // namespace bimetal::agent
