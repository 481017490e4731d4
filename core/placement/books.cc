#include "core/placement/books.h"

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>

#include "core/model/saturate.h"

namespace bimetal::core::placement {
namespace {

// A pod that is assumed has no uid yet; its name is then unique among live pods.
std::pair<std::string, std::string> Identity(const Pod& pod) {
  return pod.uid.value.empty() ? std::pair(pod.name_space, "/" + pod.name)
                               : std::pair(std::string(), pod.uid.value);
}

// What a pod holds, in an order that decides between contradictory copies of one pod.
auto Claim(const Pod& pod) { return std::tie(pod.node, pod.requests, pod.devices); }

}  // namespace

Books MakeBooks(const std::vector<Pod>& pods) {
  std::map<std::pair<std::string, std::string>, const Pod*> live;
  for (const Pod& pod : pods) {
    const auto [at, added] = live.emplace(Identity(pod), &pod);
    if (!added && Claim(*at->second) < Claim(pod)) at->second = &pod;
  }
  Books books;
  for (const auto& [identity, pod] : live) {
    if (pod->node.value.empty()) continue;
    NodeUse& use = books[pod->node];
    use.used = use.used + pod->requests;
    for (const auto& [vendor, held] : pod->devices) {
      use.held[vendor].v = SaturatingAdd(use.held[vendor].v, held.v);
    }
  }
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
