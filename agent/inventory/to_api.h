#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "agent/devices/inventory.h"
#include "agent/kubelet/plugin_device.h"
#include "api/agent.pb.h"

namespace bimetal::agent {

// Bounds that the operator puts on one report (operator/agents/check_report.h).
inline constexpr int kMaxReportedDevices = 256;
inline constexpr int kMaxReportedFindings = 64;
inline constexpr int kMaxReportedFirmware = 64;
inline constexpr int kMaxReportedLinks = 64;
inline constexpr int kMaxReportedUnread = 64;
inline constexpr std::size_t kMaxFingerprintText = 16UL * 1024UL;

// The present fingerprint of each vendor that has devices here, by the vendor's name.
std::map<std::string, std::string> FingerprintsOf(const Inventory& inventory);

// What the operator is told. A field that is not known stays empty and says why in `unread`; health
// that is not known is HEALTH_UNKNOWN. in_use is left out: the kubelet knows it, not the machine.
// Findings beyond the bound are dropped, the gravest come first.
api::Inventory ToApi(const Inventory& inventory);

// The devices of `vendor` as the kubelet is offered them. Open are those that are seen healthy now
// and that either the order opens under the present fingerprint, or any where it says Observe. A
// null order opens nothing.
std::vector<PluginDevice> OfferedDevices(const Inventory& inventory, Vendor vendor,
                                         const api::VendorOrder* order);

}  // namespace bimetal::agent
