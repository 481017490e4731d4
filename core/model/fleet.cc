#include "core/model/fleet.h"

#include <algorithm>

#include "core/model/saturate.h"

namespace bimetal::core {
namespace {

// Nothing asked for fits anywhere, also where others have taken more than there is.
bool FitsOne(std::int64_t need, std::int64_t capacity, std::int64_t used) {
  return need <= 0 || static_cast<__int128>(need) + used <= capacity;
}

bool ToleratesOne(const Toleration& toleration, const Taint& taint) {
  if (!toleration.effect.empty() && toleration.effect != taint.effect) return false;
  if (!toleration.key.empty() && toleration.key != taint.key) return false;
  if (toleration.op == "Exists") return true;
  return (toleration.op.empty() || toleration.op == "Equal") && toleration.value == taint.value;
}

}  // namespace

Resources operator+(const Resources& a, const Resources& b) {
  return Resources{.cpu_milli = SaturatingAdd(a.cpu_milli, b.cpu_milli),
                   .memory_bytes = SaturatingAdd(a.memory_bytes, b.memory_bytes),
                   .pods = SaturatingAdd(a.pods, b.pods)};
}

bool Fits(const Resources& need, const Resources& capacity, const Resources& used) {
  return FitsOne(need.cpu_milli, capacity.cpu_milli, used.cpu_milli) &&
         FitsOne(need.memory_bytes, capacity.memory_bytes, used.memory_bytes) &&
         FitsOne(need.pods, capacity.pods, used.pods);
}

bool Tolerates(const std::vector<Toleration>& tolerations, const Taint& taint) {
  return std::any_of(tolerations.begin(), tolerations.end(),
                     [&](const Toleration& t) { return ToleratesOne(t, taint); });
}

std::int64_t UsableDevices(const Node& node, Vendor vendor) {
  const auto found = node.devices.find(vendor);
  if (found == node.devices.end() || !found->second.offered) return 0;
  const auto& devices = found->second.devices;
  const auto open = std::count_if(devices.begin(), devices.end(), [](const Device& d) {
    return d.open && d.capacity >= kWholeDevice;
  });
  return std::max<std::int64_t>(0, std::min<std::int64_t>(open, *found->second.offered));
}

std::string DeviceClassOf(const Pool& pool, const std::string& model) {
  for (const DeviceClass& one : pool.device_classes) {
    if (std::find(one.models.begin(), one.models.end(), model) != one.models.end()) return one.name;
  }
  return std::string(VendorName(pool.vendor));
}

std::int64_t WholeDevices(MilliDevice held) {
  return held.v <= 0 ? 0 : (held.v - 1) / kWholeDevice.v + 1;
}

}  // namespace bimetal::core
