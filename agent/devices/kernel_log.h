#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/devices/source.h"

namespace bimetal::agent {

// One line of the kernel log that tells of trouble with a GPU.
struct KernelEvent {
  Vendor vendor = Vendor::kNvidia;
  std::string pci_address;  // 0000:18:00.0; NVIDIA prints no function: 0 is assumed
  int xid = 0;              // NVIDIA; 0 for AMD
  std::string text;         // the message from the driver's word on, without prefixes
  std::string key;          // unique within this boot: the record's sequence number, or the line
};

// A line in any of the known forms (/dev/kmsg record, dmesg with seconds or dates, syslog, bare).
// Nothing where it tells of no GPU trouble.
std::optional<KernelEvent> ParseKernelLine(std::string_view line);

// The findings of a log, newest event per device and kind, at most 64: XidFatal, XidContained,
// XidLink, XidRecovery, XidApplication; GpuReset, GpuResetFailed, RasUncorrected, RingTimeout,
// BadPagesThreshold. `devices` translate PCI addresses into ids; an address without a device stays.
std::vector<Finding> KernelFindings(std::string_view log, const std::vector<Device>& devices);

}  // namespace bimetal::agent
