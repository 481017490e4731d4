#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "agent/devices/pci.h"
#include "agent/devices/source.h"

namespace bimetal::agent {

// A whole AMD GPU as its sysfs folder describes it.
struct AmdCard {
  PciGpu pci;
  std::uint64_t unique_id = 0;        // 0: none (APUs)
  Reading<std::string> compute_mode;  // SPX, DPX, TPX, QPX, CPX
  Device fields;                      // what the folder tells; id and nodes are not set
  Telemetry telemetry;
  std::optional<int> xgmi_links_up;  // of those whose state the driver tells
};

// Reads the folder of `pci`. What may reach the GPU's firmware is read as step "gpu <address>" and
// left out where that step or "vendor" is to be skipped; the card is then not healthy.
AmdCard ReadCard(const RootFiles& files, PciGpu pci, ReadProgress& progress);

// Copies the card's fields into `device`.
void FillFromCard(const AmdCard& card, Device& device);

// How many devices the card's compute mode makes of it; nothing where that is not known.
std::optional<std::size_t> PartitionsInMode(const AmdCard& card);

Reading<std::string> ModelByPciId(std::uint64_t device);
Reading<std::string> ArchitectureByPciId(std::uint64_t device);

// "1002:74a1".
std::string AmdPciId(std::uint64_t device);

// GPU-<16 hex digits>, the form that ROCR_VISIBLE_DEVICES takes.
std::string AmdUniqueName(std::uint64_t unique_id);

}  // namespace bimetal::agent
