#include "core/queue/coverage.h"

#include <algorithm>
#include <numeric>

#include "core/model/saturate.h"

namespace bimetal::core::queue {
namespace {

// What covered jobs hold of each line of each queue.
class CoveredUse {
 public:
  explicit CoveredUse(const QueueTree& tree) : tree_(tree) {
    for (std::size_t i = 0; i < tree.size(); ++i) {
      used_.emplace_back(tree.At(static_cast<int>(i)).quotas.size(), 0);
    }
  }

  bool FitsAt(int queue, const Claim& claim) const {
    const auto line = tree_.LineFor(queue, claim.kind);
    if (!line) return false;
    const std::int64_t guaranteed = tree_.At(queue).quotas[*line].guaranteed;
    return SaturatingAdd(used_[static_cast<std::size_t>(queue)][*line], claim.devices) <=
           guaranteed;
  }

  void Add(const Claim& claim) {
    for (int at = claim.queue; at != kNoQueue; at = tree_.Parent(at)) {
      if (const auto line = tree_.LineFor(at, claim.kind)) {
        auto& used = used_[static_cast<std::size_t>(at)][*line];
        used = SaturatingAdd(used, claim.devices);
      }
    }
  }

 private:
  const QueueTree& tree_;
  std::vector<std::vector<std::int64_t>> used_;  // by queue, by line
};

}  // namespace

std::vector<int> Cover(const QueueTree& tree, const std::vector<Claim>& claims) {
  std::vector<std::size_t> order(claims.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return claims[a].rank < claims[b].rank; });
  std::vector<int> covered(claims.size(), kUncovered);
  // The queue that may cover each claim in the present round.
  std::vector<int> at(claims.size(), kNoQueue);
  for (std::size_t i = 0; i < claims.size(); ++i) at[i] = claims[i].queue;
  CoveredUse use(tree);
  for (int round = 0; round < tree.depth(); ++round) {
    for (const std::size_t i : order) {
      if (covered[i] != kUncovered || at[i] == kNoQueue) continue;
      if (use.FitsAt(at[i], claims[i])) {
        covered[i] = round;
        use.Add(claims[i]);
      } else {
        at[i] = tree.Parent(at[i]);
      }
    }
  }
  return covered;
}

}  // namespace bimetal::core::queue
