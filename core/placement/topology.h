#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/fleet.h"

namespace bimetal::core::placement {

// Where the nodes of a pool stand to each other: levels from the widest to the narrowest, each with
// its domains. The last level is always "node", where every node is a domain of its own. Nodes are
// known by their place in the list that the topology was made from; domains are numbered by the
// values of their labels, so that no order of the input shows. Immutable; thread-safe.
class Topology {
 public:
  using Index = std::uint32_t;
  static constexpr Index kNowhere = UINT32_MAX;

  // `keys` are labels, widest first. Nodes are in one domain of a level where they agree in its
  // label and in those of all wider levels; a node that lacks one of them is in none. Keeps no
  // pointer into `nodes`.
  Topology(const std::vector<std::string>& keys, const std::vector<const Node*>& nodes);

  std::size_t node_level() const { return levels_.size() - 1; }
  const std::string& NameOf(std::size_t level) const { return levels_[level].name; }
  // The level of a key, or of "node"; nullopt: this pool has no such level.
  std::optional<std::size_t> Find(std::string_view level) const;

  std::size_t DomainsIn(std::size_t level) const { return levels_[level].starts.size() - 1; }
  // The nodes of a domain, ascending. `domain` may also be DomainsIn(level): the nodes in none.
  std::span<const Index> NodesOf(std::size_t level, std::size_t domain) const;
  // The domain of a node, or kNowhere.
  Index DomainOf(std::size_t level, std::size_t node) const { return levels_[level].of[node]; }
  // The values of the labels, widest first, joined by "/"; a node's name.
  const std::string& DomainName(std::size_t level, std::size_t domain) const {
    return levels_[level].names[domain];
  }
  // The levels as a sentence part: "a, b, node".
  std::string Names() const;

 private:
  struct Level {
    std::string name;
    std::vector<Index> of;            // by node
    std::vector<Index> nodes;         // by domain, those in none at the end
    std::vector<std::size_t> starts;  // of each domain in `nodes`, and the end of the last
    std::vector<std::string> names;   // by domain
  };
  Level MakeLevel(const std::string& key, const std::vector<const Node*>& nodes) const;
  static Level MakeNodeLevel(const std::vector<const Node*>& nodes);

  std::vector<Level> levels_;
};

}  // namespace bimetal::core::placement
