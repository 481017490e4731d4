#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "agent/devices/device_fields.h"
#include "agent/devices/inventory.h"

namespace bimetal::agent {
namespace {

using Blocks = std::map<std::string, std::string>;

bool IsIncomplete(const SourceReport& report) {
  return std::any_of(report.findings.begin(), report.findings.end(), [](const Finding& finding) {
    return finding.code == "VendorLibraryHung" || finding.code == "VendorLibraryCrashed" ||
           finding.code == "ProbeFailed";
  });
}

template <class T>
void FillGap(Reading<T>& now, const Reading<T>& before) {
  if (!now.known() && before.known()) now = before;
}

// A look without the vendor's library sees fewer blocks; those that it sees must agree.
void FillGap(Reading<Blocks>& now, const Reading<Blocks>& before) {
  if (!before.known()) return;
  const bool agree = std::all_of(now.value.begin(), now.value.end(), [&](const auto& block) {
    const auto old = before.value.find(block.first);
    return old != before.value.end() && old->second == block.second;
  });
  if (!now.known() || agree) now = before;
}

void FillGaps(const Device& before, Device& now) {
  const Reading<bool> healthy = now.healthy;
  VisitReadings([](std::string_view, auto& fresh, const auto& old) { FillGap(fresh, old); }, now,
                before);
  now.healthy = healthy;  // of the last look, never an older one's
  if (now.device_nodes.size() < before.device_nodes.size()) now.device_nodes = before.device_nodes;
}

// True: both are, or are parts of, one GPU: one of them is the other's whole, or they share one.
bool SameSilicon(const Device& a, const Device& b) {
  const std::string& whole_a = a.parent.known() ? a.parent.value : a.id.value;
  const std::string& whole_b = b.parent.known() ? b.parent.value : b.id.value;
  return whole_a == whole_b;
}

}  // namespace

void KeepUnseen(const SourceReport& before, SourceReport& now) {
  if (!IsIncomplete(now)) return;
  now.simulated = now.simulated || before.simulated;
  std::vector<Device> unseen;
  for (const Device& device : before.devices) {
    const auto seen = std::find_if(now.devices.begin(), now.devices.end(),
                                   [&](const Device& other) { return other.id == device.id; });
    if (seen != now.devices.end()) {
      FillGaps(device, *seen);
      continue;
    }
    // A GPU that is cut otherwise now must not be counted whole as well.
    const bool cut_anew =
        std::any_of(now.devices.begin(), now.devices.end(),
                    [&](const Device& other) { return SameSilicon(device, other); });
    if (cut_anew) continue;
    unseen.push_back(device);
    unseen.back().healthy =
        Reading<bool>::Unknown("not seen in the last look, which was cut short");
  }
  now.devices.insert(now.devices.end(), unseen.begin(), unseen.end());
  for (const auto& [name, reading] : before.facts) FillGap(now.facts[name], reading);
}

}  // namespace bimetal::agent
