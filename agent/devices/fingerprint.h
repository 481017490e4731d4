#pragma once

#include <string>

#include "agent/devices/inventory.h"

namespace bimetal::agent {

// What a validation result of `vendor`'s devices depends on, as canonical text: kernel, driver and
// its flavour, runtime, container toolkit (NVIDIA), number of GPUs, and each sort of device with
// how many there are of it: model, PCI id, architecture, firmware, partition mode, ECC, link and
// number of direct links. Not in it: ids, serial numbers, addresses, index and order, temperature,
// load, clocks, counters, uptime, link speed of the moment, who uses a device. Equal nodes have
// equal texts. What is not known is "?", so that learning or losing a fact is a change. Empty where
// the node has no device of the vendor.
std::string FingerprintText(const Inventory& inventory, Vendor vendor);

// The first 16 hex digits of the text's SHA-256; empty for an empty text, and matches nothing then.
std::string Fingerprint(const Inventory& inventory, Vendor vendor);

}  // namespace bimetal::agent
