#include "core/placement/books.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

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

// Finds what was seen before under equal keys, by a hash of them. Keys begin alike (uids, names of
// nodes), so comparing them in a sorted order is slow.
class Seen {
 public:
  explicit Seen(std::size_t most) : slots_(std::bit_ceil(2 * most + 1), kNone) {}

  // The place of an equal key, or `next`, which is remembered, where there is none. `is_same(i)`:
  // what was remembered as `i` has the key.
  template <class IsSame>
  std::size_t FindOr(std::size_t hash, std::size_t next, IsSame is_same) {
    const std::size_t mask = slots_.size() - 1;
    for (std::size_t at = hash & mask;; at = (at + 1) & mask) {
      if (slots_[at] == kNone) return slots_[at] = next;
      if (is_same(slots_[at])) return slots_[at];
    }
  }

 private:
  static constexpr std::size_t kNone = ~std::size_t{0};
  std::vector<std::size_t> slots_;
};

// Each pod once.
std::vector<const Pod*> Distinct(const std::vector<Pod>& pods) {
  constexpr std::hash<std::string_view> kHash;
  std::vector<const Pod*> out;
  out.reserve(pods.size());
  Seen seen(pods.size());
  for (const Pod& pod : pods) {
    const std::string& key = pod.uid.value.empty() ? pod.name : pod.uid.value;
    const std::size_t at = seen.FindOr(kHash(key), out.size(), [&](std::size_t i) {
      return Identity(*out[i]) == Identity(pod);
    });
    if (at == out.size()) {
      out.push_back(&pod);
    } else if (Claim(*out[at]) < Claim(pod)) {
      out[at] = &pod;
    }
  }
  return out;
}

}  // namespace

Books MakeBooks(const std::vector<Pod>& pods) {
  constexpr std::hash<std::string_view> kHash;
  std::vector<std::pair<const NodeName*, NodeUse>> uses;
  Seen seen(pods.size());
  for (const Pod* pod : Distinct(pods)) {
    if (pod->node.value.empty()) continue;
    const std::size_t at = seen.FindOr(kHash(pod->node.value), uses.size(), [&](std::size_t i) {
      return *uses[i].first == pod->node;
    });
    if (at == uses.size()) uses.emplace_back(&pod->node, NodeUse{});
    NodeUse& use = uses[at].second;
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
