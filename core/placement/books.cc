#include "core/placement/books.h"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <tuple>
#include <utility>

#include "core/base/hash.h"
#include "core/model/saturate.h"

namespace bimetal::core::placement {
namespace {

// What a pod holds, in an order that decides between contradictory copies of one pod.
auto Claim(const Pod& pod) { return std::tie(pod.node, pod.requests, pod.devices); }

// A pod that is assumed has no uid yet; its name is then unique among live pods.
auto Identity(const Pod& pod) {
  const bool named = pod.uid.value.empty();
  return named ? std::tuple(true, std::string_view(pod.name_space), std::string_view(pod.name))
               : std::tuple(false, std::string_view(pod.uid.value), std::string_view());
}

// Uids and node names begin alike, so they are slow to compare: pods are brought together by a hash
// of them, and told apart by themselves.
struct Hashed {
  std::uint64_t hash = 0;
  const Pod* pod = nullptr;
};

// Each pod once.
std::vector<const Pod*> Distinct(const std::vector<Pod>& pods) {
  std::vector<Hashed> sorted;
  sorted.reserve(pods.size());
  for (const Pod& pod : pods) {
    sorted.push_back({Hash64(pod.uid.value.empty() ? pod.name : pod.uid.value), &pod});
  }
  std::sort(sorted.begin(), sorted.end(), [](const Hashed& a, const Hashed& b) {
    return a.hash != b.hash ? a.hash < b.hash : Identity(*a.pod) < Identity(*b.pod);
  });
  std::vector<const Pod*> out;
  out.reserve(pods.size());
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    const Pod* pod = sorted[i].pod;
    if (i == 0 || sorted[i].hash != sorted[i - 1].hash || Identity(*out.back()) != Identity(*pod)) {
      out.push_back(pod);
    } else if (Claim(*out.back()) < Claim(*pod)) {
      out.back() = pod;
    }
  }
  return out;
}

}  // namespace

Books MakeBooks(const std::vector<Pod>& pods) {
  std::vector<Hashed> by_node;
  by_node.reserve(pods.size());
  for (const Pod* pod : Distinct(pods)) {
    if (!pod->node.value.empty()) by_node.push_back({Hash64(pod->node.value), pod});
  }
  std::sort(by_node.begin(), by_node.end(), [](const Hashed& a, const Hashed& b) {
    return a.hash != b.hash ? a.hash < b.hash : a.pod->node < b.pod->node;
  });
  std::vector<std::pair<const NodeName*, NodeUse>> uses;
  for (const auto& [hash, pod] : by_node) {
    if (uses.empty() || *uses.back().first != pod->node) uses.emplace_back(&pod->node, NodeUse{});
    NodeUse& use = uses.back().second;
    use.used = use.used + pod->requests;
    for (const auto& [vendor, held] : pod->devices) {
      use.held[vendor].v = SaturatingAdd(use.held[vendor].v, held.v);
    }
  }
  std::sort(uses.begin(), uses.end(),
            [](const auto& a, const auto& b) { return *a.first < *b.first; });
  Books books;
  for (auto& [node, use] : uses) books.emplace_hint(books.end(), *node, std::move(use));
  return books;
}

MilliDevice HeldOn(const Books& books, const NodeName& node, Vendor vendor) {
  const auto use = books.find(node);
  if (use == books.end()) return {};
  const auto held = use->second.held.find(vendor);
  return held == use->second.held.end() ? MilliDevice{} : held->second;
}

std::int64_t FreeDevices(const Node& node, const Books& books, Vendor vendor) {
  return std::max<std::int64_t>(
      0, UsableDevices(node, vendor) - WholeDevices(HeldOn(books, node.name, vendor)));
}

}  // namespace bimetal::core::placement
