#include "core/placement/space.h"

#include <algorithm>

#include "core/placement/topology.h"

namespace bimetal::core::placement {

Space SpaceOf(std::vector<const Node*> nodes, const Books& books, Vendor vendor,
              const std::vector<std::string>& topology_keys) {
  std::erase_if(nodes, [](const Node* node) { return !node->ready || node->cordoned; });
  std::sort(nodes.begin(), nodes.end(),
            [](const Node* a, const Node* b) { return a->name < b->name; });
  std::vector<std::int64_t> free;
  free.reserve(nodes.size());
  std::int64_t total = 0, beside_held = 0;
  for (const Node* node : nodes) {
    const std::int64_t here = FreeDevices(*node, books, vendor);
    free.push_back(here);
    total += here;
    if (HeldOn(books, node->name, vendor).v > 0) beside_held += here;
  }
  Space space;
  if (total > 0) space.fragmentation_milli = beside_held * 1000 / total;
  const Topology topology(topology_keys, nodes);
  for (std::size_t level = 0; level <= topology.node_level(); ++level) {
    std::optional<std::size_t> best;
    std::int64_t most = -1;
    for (std::size_t domain = 0; domain < topology.DomainsIn(level); ++domain) {
      std::int64_t here = 0;
      for (const auto node : topology.NodesOf(level, domain)) here += free[node];
      if (here > most) best = domain;
      most = std::max(most, here);
    }
    if (!best) continue;
    space.largest_free.push_back({topology.NameOf(level), topology.DomainName(level, *best), most});
  }
  return space;
}

}  // namespace bimetal::core::placement
