#pragma once

#include "kernels/checks/check.h"

namespace bimetal::kernels {

// Rates of one device, each with its data verified exactly. Wrong data: Fail; else NoProfile with a
// distribution in GB/s (10^9 bytes) or microseconds.
CheckResult RunHbmCopy(Device& device, const CheckRequest& request);
CheckResult RunHbmScale(Device& device, const CheckRequest& request);
CheckResult RunHbmAdd(Device& device, const CheckRequest& request);
CheckResult RunHbmTriad(Device& device, const CheckRequest& request);
CheckResult RunHbmDot(Device& device, const CheckRequest& request);
// Over PCIe, from and to pinned host memory.
CheckResult RunHostToDevice(Device& device, const CheckRequest& request);
CheckResult RunDeviceToHost(Device& device, const CheckRequest& request);
// Device time of one launch in a batch of dependent empty ones.
CheckResult RunLaunchLatency(Device& device, const CheckRequest& request);

// Each device to each of its peers (the neighbours in a ring where there are many), one after the
// other, data verified at the far end. A device's samples are those of its slowest peer; the
// evidence names the rate to each.
std::vector<CheckResult> RunPeerToPeer(std::span<const NodeDevice> devices,
                                       const CheckRequest& request);
// All-reduce of known words around a ring of all devices over peer memory, compared exactly; bus
// bandwidth 2 (n - 1) / n x bytes / time.
std::vector<CheckResult> RunCollective(std::span<const NodeDevice> devices,
                                       const CheckRequest& request);

// Sustained arithmetic with a trace of clock, power and temperature; every result compared exactly;
// error counters read before and after. Pass, or Fail where a value differed or a counter rose.
CheckResult RunStress(Device& device, const CheckRequest& request);

// What the program sees of a device. Pass.
CheckResult RunInventory(Device& device, const CheckRequest& request);

}  // namespace bimetal::kernels
