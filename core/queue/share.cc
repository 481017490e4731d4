#include "core/queue/share.h"

#include <algorithm>
#include <array>
#include <limits>

#include "core/model/saturate.h"

namespace bimetal::core::queue {
namespace {

constexpr int kOneBits = 30;
constexpr std::int64_t kOne = std::int64_t{1} << kOneBits;

// 2^(-1/2), 2^(-1/4), ... 2^(-1/2^16) in units of 2^-30.
constexpr std::array<std::int64_t, 16> kRoots = {
    759250125,  902905651,  984625594,  1028218693, 1050733751, 1062175491, 1067942999, 1070838486,
    1072289173, 1073015252, 1073378477, 1073560135, 1073650976, 1073696399, 1073719111, 1073730468};

// 2^(-age/half_life) in units of 2^-30.
std::int64_t Weight(std::int64_t age, std::int64_t half_life) {
  if (age <= 0) return kOne;
  const std::int64_t halvings = age / half_life;
  if (halvings >= kOneBits) return 0;
  std::int64_t weight = kOne >> halvings;
  // The binary digits of the fraction, the highest first.
  __int128 rest = age % half_life;
  for (const std::int64_t root : kRoots) {
    rest *= 2;
    if (rest < half_life) continue;
    rest -= half_life;
    weight = (weight * root) >> kOneBits;
  }
  return weight;
}

// half_life / ln 2: how many milliseconds of the past a use that never changed is worth.
std::int64_t Memory(Millis half_life) {
  return Saturate(static_cast<__int128>(half_life.v) * 1'442'695 / 1'000'000);
}

}  // namespace

std::int64_t DecayedUse(const PastUse& use, TimePoint now, Millis half_life) {
  if (half_life.v <= 0 || use.devices <= 0 || use.from >= use.to || use.from >= now) return 0;
  const std::int64_t end_age =
      std::max<std::int64_t>(0, Saturate(static_cast<__int128>(now.ms) - use.to.ms));
  const std::int64_t begin_age = Saturate(static_cast<__int128>(now.ms) - use.from.ms);
  const __int128 fraction = Weight(end_age, half_life.v) - Weight(begin_age, half_life.v);
  const __int128 per_device = fraction * Memory(half_life) >> kOneBits;
  return Saturate(per_device * use.devices);
}

bool operator<(const Share& a, const Share& b) {
  if ((a.weight <= 0) != (b.weight <= 0)) return b.weight <= 0;
  if (a.weight <= 0) return a.value < b.value;
  return static_cast<__int128>(a.value) * b.weight < static_cast<__int128>(b.value) * a.weight;
}

Shares::Shares(const QueueTree& tree, const std::vector<PastUse>& past, TimePoint now)
    : tree_(tree), groups_(tree.size() + 1), past_(tree.size(), 0), own_past_(tree.size(), 0) {
  for (int parent = kNoQueue; parent < static_cast<int>(tree.size()); ++parent) {
    Group& group = groups_[static_cast<std::size_t>(parent + 1)];
    for (const int child : tree.Children(parent)) {
      const auto& fair = tree.At(child).fair_share;
      if (!fair) continue;
      group.on = true;
      group.half_life = std::max(group.half_life, fair->half_life);
    }
  }
  for (const PastUse& use : past) {
    const int own = tree.Find(use.queue);
    if (own == kNoQueue) continue;
    auto& direct = own_past_[static_cast<std::size_t>(own)];
    direct = SaturatingAdd(direct, DecayedUse(use, now, GroupOf(own).half_life));
    for (int at = own; at != kNoQueue; at = tree.Parent(at)) {
      auto& sum = past_[static_cast<std::size_t>(at)];
      sum = SaturatingAdd(sum, DecayedUse(use, now, GroupOf(tree.Parent(at)).half_life));
    }
  }
}

const Shares::Group& Shares::GroupOf(int parent) const {
  return groups_[static_cast<std::size_t>(parent + 1)];
}

std::int64_t Shares::Value(std::int64_t past, std::int64_t devices, const Group& group) const {
  if (group.half_life.v <= 0) return devices;
  return SaturatingAdd(past, SaturatingMultiply(devices, Memory(group.half_life)));
}

Share Shares::Of(int queue) const {
  const auto& fair = tree_.At(queue).fair_share;
  return Share{.value = Value(past_[static_cast<std::size_t>(queue)], tree_.UsedInAll(queue),
                              GroupOf(tree_.Parent(queue))),
               .weight = fair ? fair->weight : 1};
}

Share Shares::OfOwnJobs(int queue) const {
  std::int64_t own = tree_.UsedInAll(queue);
  for (const int child : tree_.Children(queue)) own = SaturatingAdd(own, -tree_.UsedInAll(child));
  return Share{.value = Value(own_past_[static_cast<std::size_t>(queue)], own, GroupOf(queue)),
               .weight = 1};
}

}  // namespace bimetal::core::queue
