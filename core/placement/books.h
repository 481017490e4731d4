#pragma once

#include <map>
#include <vector>

#include "core/model/fleet.h"

namespace bimetal::core::placement {

struct NodeUse {
  Resources used;
  std::map<Vendor, MilliDevice> held;
  auto operator<=>(const NodeUse&) const = default;
};

// What is held where: a function of the live pods and of placements that are assumed but not seen
// yet. Never kept up by hand; recounted from its inputs (design I2).
using Books = std::map<NodeName, NodeUse>;

// Sums `pods` by node; pods on no node hold nothing. The order of `pods` does not matter; a pod
// given twice (same uid; namespace and name where it has no uid yet) counts once.
Books MakeBooks(const std::vector<Pod>& pods);

// What pods hold of `vendor`'s devices on `node`.
MilliDevice HeldOn(const Books& books, const NodeName& node, Vendor vendor);

// Whole devices of `vendor` that are usable and not held on `node`, never negative.
std::int64_t FreeDevices(const Node& node, const Books& books, Vendor vendor);

}  // namespace bimetal::core::placement
