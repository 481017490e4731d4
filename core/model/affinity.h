#pragma once

#include <string>
#include <vector>

#include "core/model/fleet.h"

namespace bimetal::core {

// One line of a node selector term, as Kubernetes writes it.
struct NodeRequirement {
  std::string key;
  std::string op;  // In | NotIn | Exists | DoesNotExist | Gt | Lt
  std::vector<std::string> values;
  auto operator<=>(const NodeRequirement&) const = default;
};

// What a node must have, all of it: labels, and fields (the API knows metadata.name alone).
struct NodeTerm {
  std::vector<NodeRequirement> labels, fields;
  auto operator<=>(const NodeTerm&) const = default;
};

// Kubernetes' own rule of required node affinity: one of the terms holds for the node. An empty
// term holds for none; a requirement that cannot be read does not hold. No terms: every node. Pure.
bool AffinityAllows(const std::vector<NodeTerm>& terms, const Node& node);

}  // namespace bimetal::core
