#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/base/ids.h"
#include "core/base/time.h"
#include "core/cost/price_book.h"

// Cost that no job made alone (notes: cost model 3.1 and 3.4).
namespace bimetal::core::cost {

// What the book's overheads come to in [begin, end): cost of a month x time / 730.5 hours, each
// rounded once.
NanoCurrency OverheadCost(const PriceBook& book, TimePoint begin, TimePoint end);

// Deals `overhead` out by what each cost, so that the parts add up to it exactly (see
// ApportionByWeight). nullopt where nobody cost anything: it stays with the fleet.
std::optional<std::vector<NanoCurrency>> DealOverhead(NanoCurrency overhead,
                                                      const std::vector<NanoCurrency>& costs);

// What a provider who rounds up to `billing_ms` bills beyond `used_ms` of one device: shared cost,
// never a job's. 0 where it does not round. REQUIRES: used_ms >= 0.
NanoCurrency BillingDifference(NanoCurrency per_hour, std::int64_t used_ms,
                               std::int64_t billing_ms);

}  // namespace bimetal::core::cost
