#include "core/queue/trial.h"

#include <algorithm>
#include <set>

namespace bimetal::core::queue {
namespace {

// The search for one way.
class Trial {
 public:
  Trial(Space& space, const Job& job, std::size_t variant, Lane& lane, int queue,
        const std::vector<Tenant*>& candidates)
      : space_(space),
        job_(job),
        variant_(job.variants[variant]),
        variant_index_(variant),
        lane_(lane),
        queue_(queue),
        candidates_(candidates),
        need_(DevicesNeeded(job, variant_)) {}

  std::optional<Way> Run() {
    std::size_t low = 0, high = candidates_.size();
    ReleaseHead(high);
    if (!Try()) {
      ReleaseHead(0);
      return std::nullopt;
    }
    // Fewer gone is never better, so the shortest head is found by halving.
    while (low < high) {
      const std::size_t middle = low + (high - low) / 2;
      ReleaseHead(middle);
      if (Try()) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    ReleaseHead(high);
    Way way;
    way.lane = &lane_;
    way.variant = variant_index_;
    way.pods = pods_;
    PutBackTheNeedless(high, &way);
    ReleaseHead(0);
    return way;
  }

 private:
  // The first `count` candidates are gone, the others are there.
  void ReleaseHead(std::size_t count) {
    for (; gone_ < count; ++gone_) space_.Release(*candidates_[gone_]);
    for (; gone_ > count; --gone_) space_.Restore(*candidates_[gone_ - 1]);
  }

  // Remembers the place of the last success.
  bool Try() {
    if (space_.Shortage(queue_, lane_.kind, need_)) return false;
    auto pods = space_.Search(lane_, job_, variant_);
    if (!pods) return false;
    pods_ = std::move(*pods);
    return true;
  }

  void PutBackTheNeedless(std::size_t count, Way* way) {
    lane_.board.Book(job_, variant_, pods_);
    std::set<NodeName> nodes;
    for (const auto& pod : pods_) nodes.insert(pod.node);
    for (std::size_t i = count; i-- > 0;) {
      Tenant& tenant = *candidates_[i];
      space_.Restore(tenant);
      const bool in_the_way =
          std::any_of(tenant.spots.begin(), tenant.spots.end(), [&](const Tenant::Spot& spot) {
            return nodes.contains(spot.place.node) && lane_.board.IsOverbooked(spot.place.node);
          });
      if (in_the_way || space_.Shortage(queue_, lane_.kind, need_, need_)) {
        space_.Release(tenant);
        way->leavers.push_back(&tenant);
      }
    }
    for (const auto& pod : pods_) {
      lane_.board.Shift(pod.node, -variant_.devices_per_pod,
                        Resources{} - job_.roles[pod.role].requests);
    }
    std::reverse(way->leavers.begin(), way->leavers.end());
    for (Tenant* tenant : way->leavers) space_.Restore(*tenant);
    gone_ = 0;  // everybody is back
  }

  Space& space_;
  const Job& job_;
  const Variant& variant_;
  std::size_t variant_index_;
  Lane& lane_;
  int queue_;
  const std::vector<Tenant*>& candidates_;
  std::int64_t need_;
  std::size_t gone_ = 0;
  std::vector<placement::PodPlacement> pods_;
};

}  // namespace

std::optional<Way> FindWay(Space& space, const Job& job, std::size_t variant, Lane& lane, int queue,
                           const std::vector<Tenant*>& candidates) {
  return Trial(space, job, variant, lane, queue, candidates).Run();
}

}  // namespace bimetal::core::queue
