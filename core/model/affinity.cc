#include "core/model/affinity.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>

namespace bimetal::core {
namespace {

std::optional<std::int64_t> Integer(const std::string& text) {
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  return error == std::errc{} && at == end ? std::optional(value) : std::nullopt;
}

// `present`: nullptr where the node has no such label or field.
bool Holds(const NodeRequirement& requirement, const std::string* present) {
  const auto& values = requirement.values;
  const bool listed =
      present != nullptr && std::find(values.begin(), values.end(), *present) != values.end();
  if (requirement.op == "In") return listed;
  if (requirement.op == "NotIn") return !listed;
  if (requirement.op == "Exists") return present != nullptr;
  if (requirement.op == "DoesNotExist") return present == nullptr;
  if (requirement.op != "Gt" && requirement.op != "Lt") return false;
  if (present == nullptr || values.size() != 1) return false;
  const auto have = Integer(*present), bound = Integer(values.front());
  if (!have || !bound) return false;
  return requirement.op == "Gt" ? *have > *bound : *have < *bound;
}

bool HoldsFor(const NodeTerm& term, const Node& node) {
  if (term.labels.empty() && term.fields.empty()) return false;
  const auto label_holds = [&](const NodeRequirement& requirement) {
    const auto label = node.labels.find(requirement.key);
    return Holds(requirement, label == node.labels.end() ? nullptr : &label->second);
  };
  const auto field_holds = [&](const NodeRequirement& requirement) {
    return requirement.key == "metadata.name" && Holds(requirement, &node.name.value);
  };
  return std::all_of(term.labels.begin(), term.labels.end(), label_holds) &&
         std::all_of(term.fields.begin(), term.fields.end(), field_holds);
}

}  // namespace

bool AffinityAllows(const std::vector<NodeTerm>& terms, const Node& node) {
  return terms.empty() || std::any_of(terms.begin(), terms.end(),
                                      [&](const NodeTerm& term) { return HoldsFor(term, node); });
}

}  // namespace bimetal::core
