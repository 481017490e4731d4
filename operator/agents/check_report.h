#pragma once

#include "api/agent.pb.h"
#include "core/base/result.h"

namespace bimetal::op {

// Bounds of one report.
inline constexpr int kMaxDevices = 256;
inline constexpr int kMaxRuns = 16;
inline constexpr int kMaxVerdicts = 4096;
inline constexpr int kMaxFindings = 256;
inline constexpr int kMaxFirmware = 64;

// Whether a report is one that the operator can take at face value: complete, bounded, printable.
// No devices at all is legal. Error kInvalid names the field:
// "inventory.devices[3].id: "GPU-1" is also the id of devices[0]".
Status CheckReport(const api::ReportNodeRequest& request);

}  // namespace bimetal::op
