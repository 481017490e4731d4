#include "core/placement/score.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "core/model/saturate.h"

namespace bimetal::core::placement {
namespace {

constexpr std::int64_t kWhole = kWholeDevice.v;
// Pods with more devices than this are no guide to what one node is asked for.
constexpr std::int64_t kMaxTypicalDevices = 64;
// Absurd amounts must not outgrow the sums.
constexpr std::int64_t kMaxPods = std::int64_t{1} << 40;
constexpr std::int64_t kMaxCpu = std::int64_t{1} << 50;

std::int64_t FloorDivide(std::int64_t a, std::int64_t b) {
  return a >= 0 ? a / b : -((-a + b - 1) / b);
}

std::int64_t Counted(std::int64_t pods) { return std::clamp<std::int64_t>(pods, 0, kMaxPods); }

// Pods that say something about what devices of a node are asked for.
bool IsTypical(const PodShape& shape) {
  return IsSane(shape) && shape.devices > 0 && shape.devices <= kMaxTypicalDevices;
}

}  // namespace

bool MayUse(const PodShape& shape, const DeviceKind& kind) {
  if (shape.devices == 0) return true;
  if (shape.vendor && *shape.vendor != kind.vendor) return false;
  return shape.models.empty() ||
         std::binary_search(shape.models.begin(), shape.models.end(), kind.model);
}

ScoreTables::ScoreTables(const Mix& mix, const std::vector<DeviceKind>& kinds,
                         const ScoreWeights& weights, std::int64_t cpu_per_device)
    : weights_(weights) {
  __int128 milli = 0, cpu = 0, all_cpu = 0;
  for (const auto& [shape, pods] : mix) {
    if (IsSane(shape)) {
      all_cpu += static_cast<__int128>(std::min(shape.need.cpu_milli, kMaxCpu)) * Counted(pods);
    }
    if (!IsTypical(shape)) continue;
    milli += static_cast<__int128>(DevicesOf(shape).v) * Counted(pods);
    cpu += static_cast<__int128>(std::min(shape.need.cpu_milli, kMaxCpu)) * Counted(pods);
  }
  cores_bind_ = all_cpu * kWhole * 20 > milli * cpu_per_device * 19;
  if (milli > 0) cpu_per_device_ = Saturate(cpu * kWhole / milli);
  for (const auto& [shape, pods] : mix) {
    if (!IsTypical(shape)) continue;
    if (milli == 0) continue;  // no pods of any shape
    const __int128 asked = static_cast<__int128>(DevicesOf(shape).v) * Counted(pods);
    Typical typical{.need = {.cpu_milli = shape.need.cpu_milli,
                             .devices = shape.devices,
                             .each = static_cast<std::int32_t>(shape.each.v)},
                    .kinds = {},
                    .weight = Saturate(asked * kOne / milli)};
    for (const DeviceKind& kind : kinds) typical.kinds.push_back(MayUse(shape, kind));
    typical_.push_back(std::move(typical));
  }
  MakeRows(kinds.size());
  MakeClaims();
}

void ScoreTables::MakeRows(std::size_t kinds) {
  std::set<std::int64_t> levels, milli;
  for (const Typical& typical : typical_) {
    levels.insert(typical.need.cpu_milli);
    if (typical.need.each < kWhole) milli.insert(typical.need.each);
    whole_sizes_ = std::max(whole_sizes_, static_cast<std::size_t>(typical.need.devices) + 1);
  }
  levels_.assign(levels.begin(), levels.end());
  classes_ = milli.size() + 1;
  std::uint16_t below = 0;
  for (std::size_t m = 0; m < class_of_.size(); ++m) {
    if (milli.contains(static_cast<std::int64_t>(m))) ++below;
    class_of_[m] = below;
  }
  const std::size_t rows = kinds * (levels_.size() + 1);
  shares_.assign(rows * classes_, 0);
  wholes_.assign(rows * whole_sizes_, 0);
  for (std::size_t row = 0; row < rows; ++row) {
    const std::size_t kind = row / (levels_.size() + 1), level = row % (levels_.size() + 1);
    std::int64_t* shares = &shares_[row * classes_];
    std::int64_t* wholes = &wholes_[row * whole_sizes_];
    for (const Typical& typical : typical_) {
      if (!typical.kinds[kind] || level == 0 || typical.need.cpu_milli > levels_[level - 1]) {
        continue;
      }
      if (typical.need.each < kWhole) {
        shares[class_of_[static_cast<std::size_t>(typical.need.each)]] += typical.weight;
      } else {
        wholes[typical.need.devices] += typical.weight;
      }
    }
    std::partial_sum(shares, shares + classes_, shares);
    std::partial_sum(wholes, wholes + whole_sizes_, wholes);
  }
}

void ScoreTables::MakeClaims() {
  std::map<std::vector<bool>, std::int64_t> demand;
  for (const Typical& typical : typical_) {
    const auto& kinds = typical.kinds;
    if (std::find(kinds.begin(), kinds.end(), false) == kinds.end()) continue;
    demand[kinds] += typical.weight;
  }
  for (const auto& [kinds, weight] : demand) {
    claims_.push_back(Claim{.kinds = kinds, .demand = weight});
  }
}

ScoreTables::Row ScoreTables::RowFor(std::size_t kind, std::int64_t cpu_idle) const {
  const auto level = static_cast<std::size_t>(
      std::upper_bound(levels_.begin(), levels_.end(), cpu_idle) - levels_.begin());
  const std::size_t row = kind * (levels_.size() + 1) + level;
  return Row{.shares = &shares_[row * classes_], .wholes = &wholes_[row * whole_sizes_]};
}

std::int64_t ScoreTables::WholePart(const Row& row, std::int64_t whole) const {
  const auto at = std::min(static_cast<std::size_t>(whole), whole_sizes_ - 1);
  return whole * kWhole * row.wholes[at];
}

// Idle devices beyond what the idle cores can feed at the mix's cores a device.
std::int64_t ScoreTables::Stranded(std::int64_t cpu_idle, std::int64_t idle_milli) const {
  if (cpu_per_device_ == 0) return 0;
  const std::int64_t fed = SaturatingMultiply(cpu_idle, kWhole) / cpu_per_device_;
  return std::max<std::int64_t>(0, idle_milli - fed) * weights_.strand * kOne / 1000;
}

ScoreTables::Sum ScoreTables::SumUp(const Row& row, std::span<const std::int32_t> devices) const {
  Sum sum;
  for (const std::int32_t milli : devices) {
    if (milli == 0) continue;
    sum.idle += milli;
    if (milli == kWhole) ++sum.whole;
    sum.in_shares += SharePart(row, milli);
  }
  return sum;
}

std::int64_t ScoreTables::Waste(const NodeView& node) const {
  const Row row = RowFor(node.kind, node.cpu_idle);
  const Sum sum = SumUp(row, node.idle);
  return sum.idle * kOne - sum.in_shares - WholePart(row, sum.whole) +
         Stranded(node.cpu_idle, sum.idle);
}

// The device on which a share leaves the most usable capacity, of equals the fullest, and what
// usable capacity that adds.
ScoreTables::Choice ScoreTables::DeviceFor(const Row& row, const Sum& sum, std::int32_t share,
                                           std::span<const std::int32_t> devices) const {
  const std::int64_t broken =
      sum.whole > 0 ? WholePart(row, sum.whole - 1) - WholePart(row, sum.whole) : 0;
  Choice best{.usable = std::numeric_limits<std::int64_t>::min(), .device = -1};
  std::int32_t best_idle = 0, last = 0;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const std::int32_t idle = devices[i];
    if (idle < share || idle == last) continue;
    last = idle;
    const std::int64_t usable =
        SharePart(row, idle - share) - SharePart(row, idle) + (idle == kWhole ? broken : 0);
    if (usable < best.usable || (usable == best.usable && idle >= best_idle)) continue;
    best = {.usable = usable, .device = static_cast<int>(i)};
    best_idle = idle;
  }
  return best;
}

ScoreTables::Scored ScoreTables::Score(const NodeView& node, std::int64_t waste_before,
                                       const Need& need) const {
  const std::int64_t cpu_idle = node.cpu_idle - need.cpu_milli;
  const Row row = RowFor(node.kind, cpu_idle);
  const Sum sum = SumUp(row, node.idle);
  std::int64_t usable = sum.in_shares;
  Scored scored;
  if (need.each == kWhole) {  // also no device at all
    usable += WholePart(row, sum.whole - need.devices) - need.devices * SharePart(row, kWhole);
  } else {
    const Choice choice = DeviceFor(row, sum, need.each, node.idle);
    usable += WholePart(row, sum.whole) + choice.usable;
    scored.device = choice.device;
  }
  const std::int64_t idle = sum.idle - need.devices * need.each;
  const std::int64_t waste = idle * kOne - usable + Stranded(cpu_idle, idle);
  const std::int64_t points = std::clamp<std::int64_t>(
      FloorDivide(waste_before - waste, weights_.step * kOne), -kMaxPoints, kMaxPoints);
  scored.score = static_cast<std::int32_t>(points * kPoint);
  if (need.devices == 0) {
    // To where cores are to spare even when all devices are idle again: what is full today is not
    // full for ever. Where cores are what runs out, to where no idle device will miss them.
    const std::int64_t spare =
        cpu_idle - Saturate(static_cast<__int128>(sum.idle) * cpu_per_device_ / kWhole);
    const auto devices = std::max<std::int64_t>(1, static_cast<std::int64_t>(node.idle.size()));
    const std::int64_t order = cores_bind_ ? kWhole - sum.idle / devices : kPoint / 2 + spare / 256;
    scored.score += static_cast<std::int32_t>(std::clamp<std::int64_t>(order, 0, kPoint - 1));
  } else if (cores_bind_) {
    // Of equal nodes the fullest: its cores are the ones that can be spared.
    scored.score +=
        static_cast<std::int32_t>(std::clamp<std::int64_t>(kPoint - 1 - idle / 8, 0, kPoint - 1));
  }
  return scored;
}

}  // namespace bimetal::core::placement
