#pragma once

#include <string>

#include <nlohmann/json.hpp>

// Private to operator/pods.
namespace bimetal::op {

using Json = nlohmann::ordered_json;

// Required node affinity on the node's name, laid over whatever affinity the template has: node
// selector terms are alternatives, so the name goes into each of them.
inline void PinToNode(Json& pod_spec, const std::string& node) {
  const Json field = {{"key", "metadata.name"}, {"operator", "In"}, {"values", {node}}};
  Json& required =
      pod_spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
  Json& terms = required["nodeSelectorTerms"];
  if (!terms.is_array() || terms.empty()) terms = Json::array({Json::object()});
  for (auto& term : terms) term["matchFields"].push_back(field);
}

}  // namespace bimetal::op
