// The kernel log: single records, a whole log.
#include "agent/devices/kernel_log.h"

#include "tests/fuzz/fuzz.h"

BIMETAL_FUZZ(text) {
  agent::Device device;
  device.id.value = "GPU-1";
  device.pci_address = agent::Reading<std::string>::Of("0000:18:00.0");
  if (const auto event = agent::ParseKernelLine(text)) Require(event->xid >= 0);
  Require(agent::KernelFindings(text, {device}).size() <= 64);
}
