#pragma once

#include <string>

#include "agent/devices/inventory.h"

namespace bimetal::agent {

// What a validation result of `vendor`'s devices holds for, as canonical text: kernel, driver,
// runtime, and per device id (sorted) model, architecture, firmware, partition mode and link. Not
// in it: temperature, load, counters, uptime, link speed of the moment, index, card number, order.
// What is not known is "?", so that learning or losing a fact is a change. Empty where the node has
// no device of the vendor.
std::string FingerprintText(const Inventory& inventory, Vendor vendor);

// The first 16 hex digits of the text's SHA-256; empty for an empty text, and matches nothing then.
std::string Fingerprint(const Inventory& inventory, Vendor vendor);

}  // namespace bimetal::agent
