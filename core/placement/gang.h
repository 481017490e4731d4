#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/model/fleet.h"
#include "core/model/job.h"
#include "core/placement/books.h"

namespace bimetal::core::placement {

struct PodPlacement {
  std::size_t role = 0;  // index into Job::roles
  int index = 0;         // 0 .. replicas-1
  NodeName node;
  auto operator<=>(const PodPlacement&) const = default;
};

// Why a gang has no place now.
enum class Obstacle {
  kNone,
  kNoMatchingDevice,        // no node of the vendor has such devices at all, whatever their state
  kExceedsCapacity,         // not even on an empty, fully validated fleet
  kWaitingForValidation,    // it would fit if shut devices were open
  kUnknownTopology,         // the pool lacks a level that a role names, or its nodes the labels
  kWaitingForDevices,       // devices are held by others
  kWaitingForTopology,      // there is room, but not in one domain, or not evenly spread
  kWaitingForNodeCapacity,  // devices are free but CPU, memory, pod slots, taints or selectors
                            // forbid
};

struct GangResult {
  std::vector<PodPlacement> pods;  // all of the gang, or empty
  Obstacle obstacle = Obstacle::kNone;
  std::int64_t need = 0;     // whole devices
  std::int64_t free = 0;     // free usable devices that match the variant
  std::string unblocked_by;  // the next event that helps, as a sentence part; empty where placed
};

// Places all pods of `job` in `variant` on `nodes` (those of one pool of the variant's vendor), or
// none. Packs: fewest nodes, best fit, ties by node name; indexes of a role run node by node. Nodes
// must be ready, not cordoned, tolerated and selected, and all their open devices must be what the
// variant asks for, because the kubelet picks which ones a pod gets. Roles with a topology:
//   Required   all pods of all roles that require the level, in one domain: the fullest that fits
//   Preferred  in one domain, the fullest that fits; else in the fewest of one wider domain; else
//   in
//              the fewest of the pool; nodes in no domain last
//   Spread     at most the pods divided by the domains, rounded up, in one domain; domains are
//   those
//              where a node may take the role, whoever holds its devices
// `topology_keys` are labels of the nodes, widest level first. Pure; the order of `nodes` does not
// matter.
GangResult PlaceGang(const Job& job, const Variant& variant, const std::vector<Node>& nodes,
                     const Books& books, const std::vector<std::string>& topology_keys = {});

}  // namespace bimetal::core::placement
