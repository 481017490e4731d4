#pragma once

#include <map>
#include <set>
#include <string>

#include "api/fleet.pb.h"
#include "core/base/time.h"
#include "core/model/vendor.h"

namespace bimetal::op {

// What condition Priced of a pool says.
struct PoolPricing {
  std::string status;  // True | False
  std::string reason, message;
};

// Whether every model of the pool has a price at `now`, and what of its book asks for a person.
// `books` by name. Pure.
PoolPricing JudgePricing(const api::GPUPool& pool, core::Vendor vendor,
                         const std::set<std::string>& models,
                         const std::map<std::string, api::PriceBook>& books, TimePoint now);

}  // namespace bimetal::op
