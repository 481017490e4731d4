#include "core/placement/topology.h"

#include <algorithm>
#include <map>
#include <utility>

namespace bimetal::core::placement {

Topology::Topology(const std::vector<std::string>& keys, const std::vector<const Node*>& nodes) {
  levels_.reserve(keys.size() + 1);
  for (const std::string& key : keys) levels_.push_back(MakeLevel(key, nodes));
  levels_.push_back(MakeNodeLevel(nodes));
}

Topology::Level Topology::MakeNodeLevel(const std::vector<const Node*>& nodes) {
  Level level;
  level.name = std::string(kNodeLevel);
  const std::size_t count = nodes.size();
  level.of.reserve(count);
  level.starts.reserve(count + 1);
  level.names.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    level.of.push_back(static_cast<Index>(i));
    level.starts.push_back(i);
    level.names.push_back(nodes[i]->name.value);
  }
  level.nodes = level.of;
  level.starts.push_back(count);
  return level;
}

Topology::Level Topology::MakeLevel(const std::string& key,
                                    const std::vector<const Node*>& nodes) const {
  Level level;
  level.name = key;
  level.of.assign(nodes.size(), kNowhere);
  // Outer domains are numbered by their values already, so this order is by all values.
  std::map<std::pair<Index, std::string_view>, std::vector<Index>> domains;
  std::vector<Index> nowhere;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const Index outer = levels_.empty() ? 0 : levels_.back().of[i];
    const auto label = nodes[i]->labels.find(key);
    if (outer == kNowhere || label == nodes[i]->labels.end()) {
      nowhere.push_back(static_cast<Index>(i));
    } else {
      domains[{outer, label->second}].push_back(static_cast<Index>(i));
    }
  }
  level.nodes.reserve(nodes.size());
  for (const auto& [path, members] : domains) {
    const std::string outer = levels_.empty() ? "" : levels_.back().names[path.first] + "/";
    for (const Index node : members) level.of[node] = static_cast<Index>(level.names.size());
    level.names.push_back(outer + std::string(path.second));
    level.starts.push_back(level.nodes.size());
    level.nodes.insert(level.nodes.end(), members.begin(), members.end());
  }
  level.starts.push_back(level.nodes.size());
  level.nodes.insert(level.nodes.end(), nowhere.begin(), nowhere.end());
  return level;
}

std::optional<std::size_t> Topology::Find(std::string_view level) const {
  const auto found = std::find_if(levels_.begin(), levels_.end(),
                                  [&](const Level& one) { return one.name == level; });
  if (found == levels_.end()) return std::nullopt;
  return static_cast<std::size_t>(found - levels_.begin());
}

std::span<const Topology::Index> Topology::NodesOf(std::size_t level, std::size_t domain) const {
  const Level& one = levels_[level];
  const std::size_t begin = one.starts[domain];
  const std::size_t end =
      domain + 1 < one.starts.size() ? one.starts[domain + 1] : one.nodes.size();
  return std::span(one.nodes).subspan(begin, end - begin);
}

std::string Topology::Names() const {
  std::string text;
  for (const Level& level : levels_) text += (text.empty() ? "" : ", ") + level.name;
  return text;
}

}  // namespace bimetal::core::placement
