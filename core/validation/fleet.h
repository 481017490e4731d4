#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/validation/floors.h"
#include "core/validation/rates.h"

namespace bimetal::core::validation {

// Whose rates are comparable.
struct FleetKey {
  std::string model;
  std::string partition;  // whole devices: empty
  std::string driver;     // empty: whatever the driver
  std::string check;
  auto operator<=>(const FleetKey&) const = default;
};
FleetKey KeyFor(const DeviceFacts& device, std::string check);

// The median over one node's devices of one key, as its last complete run measured it.
struct NodeRate {
  FleetKey key;
  std::string node;
  Milli median;
  int devices = 0;
};

inline constexpr int kFleetMinDevices = 5;
inline constexpr int kFleetMinNodes = 3;

struct FleetMedian {
  Milli value;
  int devices = 0;
  int nodes = 0;
};
using FleetMedians = std::map<FleetKey, FleetMedian>;

// The median of the nodes' medians by key, of keys with at least kFleetMinDevices devices on
// kFleetMinNodes nodes. One node weighs one, however many devices or entries it has (its entries
// are taken together), so that fewer than half of the nodes cannot move it beyond the others'
// range. Entries without devices or with no positive rate are left out.
FleetMedians MediansOf(const std::vector<NodeRate>& rates);

}  // namespace bimetal::core::validation
