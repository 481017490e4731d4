#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <string_view>
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

// What is kept for a device that a complete look showed: fields that say what it is. How it fares
// (health, error counts) is never an older look's.
bool SaysWhatItIs(std::string_view field) {
  constexpr std::array<std::string_view, 6> kFares = {"healthy",      "uncorrected_errors",
                                                      "retired_rows", "rows_pending",
                                                      "rows_failed",  "link_generation"};
  return std::find(kFares.begin(), kFares.end(), field) == kFares.end();
}

template <class T>
void KeepLast(Reading<T>& now, const Reading<T>& before, bool sick) {
  if (now.known() || !before.known()) return;
  if (now.state == Known::kUnknown && !sick) return;  // it is not supported any more: a change
  const std::string why = std::string(kLastRead) + now.why;
  now = before;
  now.why = why;
}

void KeepLast(Reading<Blocks>& now, const Reading<Blocks>& before, bool sick) {
  if (now.state == Known::kError || (sick && !now.known())) {
    KeepLast<Blocks>(now, before, sick);
  } else if (sick) {
    FillGap(now, before);
  }
}

// A device that fails to answer, or is seen sick, is no other configuration.
void KeepConfiguration(const SourceReport& before, SourceReport& now) {
  for (Device& device : now.devices) {
    const auto old = std::find_if(before.devices.begin(), before.devices.end(),
                                  [&](const Device& other) { return other.id == device.id; });
    if (old == before.devices.end()) continue;
    const bool sick = device.healthy.known() && !device.healthy.value;
    VisitReadings(
        [&](std::string_view name, auto& fresh, const auto& last) {
          if (SaysWhatItIs(name)) KeepLast(fresh, last, sick);
        },
        device, *old);
    if (sick && device.device_nodes.size() < old->device_nodes.size()) {
      device.device_nodes = old->device_nodes;
    }
  }
}

// True: both are, or are parts of, one GPU: one of them is the other's whole, or they share one.
bool SameSilicon(const Device& a, const Device& b) {
  const std::string& whole_a = a.parent.known() ? a.parent.value : a.id.value;
  const std::string& whole_b = b.parent.known() ? b.parent.value : b.id.value;
  return whole_a == whole_b;
}

}  // namespace

void KeepUnseen(const SourceReport& before, SourceReport& now) {
  if (!IsIncomplete(now)) return KeepConfiguration(before, now);
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
