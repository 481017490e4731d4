#include "core/queue/coverage.h"

#include <algorithm>
#include <utility>

#include "core/model/saturate.h"

namespace bimetal::core::queue {
namespace {

int RootOf(const QueueTree& tree, int queue) {
  while (tree.Parent(queue) != kNoQueue) queue = tree.Parent(queue);
  return queue;
}

}  // namespace

// Gives out what is guaranteed to the claims of one root, in the order of their ranks.
class Coverage::Rounds {
 public:
  Rounds(const Coverage& all, std::vector<const Claim*> claims)
      : tree_(all.tree_),
        first_line_(all.first_line_),
        claims_(std::move(claims)),
        used_(first_line_.back(), 0),
        covered_(claims_.size(), kUncovered) {
    for (const Claim* claim : claims_) at_.push_back(claim->queue);
  }

  // Until the claim `last` is covered, or to the end where there is none.
  std::vector<int> Run(const Claim* last) {
    for (int round = 0; round < tree_.depth(); ++round) {
      for (std::size_t i = 0; i < claims_.size(); ++i) {
        if (covered_[i] != kUncovered || at_[i] == kNoQueue) continue;
        if (!FitsAt(at_[i], *claims_[i])) {
          at_[i] = tree_.Parent(at_[i]);
          continue;
        }
        covered_[i] = round;
        if (claims_[i] == last) return covered_;
        Add(*claims_[i]);
      }
    }
    return covered_;
  }

 private:
  std::int64_t& UsedOf(int queue, std::size_t line) {
    return used_[first_line_[static_cast<std::size_t>(queue)] + line];
  }
  bool FitsAt(int queue, const Claim& claim) {
    const auto line = tree_.LineFor(queue, claim.kind);
    return line && SaturatingAdd(UsedOf(queue, *line), claim.devices) <=
                       tree_.At(queue).quotas[*line].guaranteed;
  }
  void Add(const Claim& claim) {
    for (int at = claim.queue; at != kNoQueue; at = tree_.Parent(at)) {
      const auto line = tree_.LineFor(at, claim.kind);
      if (line) UsedOf(at, *line) = SaturatingAdd(UsedOf(at, *line), claim.devices);
    }
  }

  const QueueTree& tree_;
  const std::vector<std::size_t>& first_line_;
  std::vector<const Claim*> claims_;
  std::vector<std::int64_t> used_;  // by covered claims, of each line of each queue
  std::vector<int> covered_;
  std::vector<int> at_;  // the queue that may cover each claim in the present round
};

Coverage::Coverage(const QueueTree& tree, std::vector<Claim> claims)
    : tree_(tree), claims_(std::move(claims)), rounds_(claims_.size(), kUncovered) {
  first_line_.push_back(0);
  for (std::size_t i = 0; i < tree.size(); ++i) {
    first_line_.push_back(first_line_.back() + tree.At(static_cast<int>(i)).quotas.size());
  }
  for (const Claim& claim : claims_) by_root_[RootOf(tree, claim.queue)].push_back(&claim);
  for (auto& [root, members] : by_root_) {
    std::sort(members.begin(), members.end(),
              [](const Claim* a, const Claim* b) { return a->rank < b->rank; });
    const std::vector<int> covered = Rounds(*this, members).Run(nullptr);
    for (std::size_t i = 0; i < members.size(); ++i) {
      rounds_[static_cast<std::size_t>(members[i] - claims_.data())] = covered[i];
    }
  }
}

int Coverage::RoundWith(const Claim& claim) const {
  std::vector<const Claim*> members;
  if (const auto known = by_root_.find(RootOf(tree_, claim.queue)); known != by_root_.end()) {
    members = known->second;
  }
  // Behind those of its own rank, as if it had been the last to be named.
  const auto place =
      std::upper_bound(members.begin(), members.end(), &claim,
                       [](const Claim* a, const Claim* b) { return a->rank < b->rank; });
  const auto index = static_cast<std::size_t>(place - members.begin());
  members.insert(place, &claim);
  return Rounds(*this, std::move(members)).Run(&claim)[index];
}

}  // namespace bimetal::core::queue
