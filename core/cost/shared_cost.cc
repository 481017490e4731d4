#include "core/cost/shared_cost.h"

#include <algorithm>

#include "core/cost/rates.h"
#include "core/cost/ratio.h"
#include "core/model/saturate.h"

namespace bimetal::core::cost {

NanoCurrency OverheadCost(const PriceBook& book, TimePoint begin, TimePoint end) {
  NanoCurrency sum;
  for (const Overhead& one : book.overheads) {
    const TimePoint from = std::max(begin, one.from);
    const TimePoint to = std::min(end, one.to.value_or(end));
    if (to <= from) continue;
    const std::int64_t ms = Saturate(static_cast<__int128>(to.ms) - from.ms);
    sum.v = SaturatingAdd(sum.v, MultiplyDivide(one.per_month.v, ms, kMsPerMonth));
  }
  return sum;
}

std::optional<std::vector<NanoCurrency>> DealOverhead(NanoCurrency overhead,
                                                      const std::vector<NanoCurrency>& costs) {
  std::vector<std::int64_t> weights;
  for (const NanoCurrency cost : costs) weights.push_back(std::max<std::int64_t>(0, cost.v));
  if (std::all_of(weights.begin(), weights.end(), [](std::int64_t w) { return w == 0; })) {
    return std::nullopt;
  }
  std::vector<NanoCurrency> parts;
  for (const std::int64_t part : ApportionByWeight(overhead.v, weights)) parts.push_back({part});
  return parts;
}

NanoCurrency BillingDifference(NanoCurrency per_hour, std::int64_t used_ms,
                               std::int64_t billing_ms) {
  if (billing_ms <= 0 || used_ms % billing_ms == 0) return NanoCurrency{0};
  return NanoCurrency{MultiplyDivide(per_hour.v, billing_ms - used_ms % billing_ms, kMsPerHour)};
}

}  // namespace bimetal::core::cost
