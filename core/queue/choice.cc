#include "core/queue/choice.h"

#include <algorithm>

namespace bimetal::core::queue {
namespace {

bool Takes(const Variant& variant, const order::DevicePrice& price) {
  return price.vendor == variant.vendor &&
         (variant.models.empty() || std::find(variant.models.begin(), variant.models.end(),
                                              price.model) != variant.models.end());
}

}  // namespace

Choice::Choice(const Snapshot& snapshot) {
  for (const PoolPrices& pool : snapshot.prices) {
    by_pool_[pool.pool] = &pool.prices;
    all_.insert(all_.end(), pool.prices.begin(), pool.prices.end());
  }
}

std::vector<std::size_t> Choice::Order(const Job& job, const std::vector<bool>& possible) const {
  return order::VariantOrder(job, all_, possible);
}

const Job* Choice::In(const PoolName& pool, const Job& job, std::size_t variant) {
  const auto& most = job.variants[variant].max_nano_per_hour;
  if (!most) return &job;
  const auto [known, added] = narrowed_.try_emplace({pool, job.uid, variant});
  if (added) {
    std::vector<std::string> models;
    if (const auto prices = by_pool_.find(pool); prices != by_pool_.end()) {
      for (const order::DevicePrice& price : *prices->second) {
        if (Takes(job.variants[variant], price) && price.nano_per_hour <= *most) {
          models.push_back(price.model);
        }
      }
    }
    if (!models.empty()) {
      known->second = job;
      known->second->variants[variant].models = std::move(models);
    }
  }
  return known->second ? &*known->second : nullptr;
}

std::optional<std::int64_t> Choice::LowestPrice(const PoolName& pool,
                                                const Variant& variant) const {
  std::optional<std::int64_t> lowest;
  const auto prices = by_pool_.find(pool);
  if (prices == by_pool_.end()) return lowest;
  for (const order::DevicePrice& price : *prices->second) {
    if (!Takes(variant, price)) continue;
    lowest = std::min(price.nano_per_hour, lowest.value_or(price.nano_per_hour));
  }
  return lowest;
}

bool AsksForPrices(const Job& job) {
  return job.selection == SelectionPolicy::kLowestCost ||
         job.selection == SelectionPolicy::kBestValue ||
         std::any_of(job.variants.begin(), job.variants.end(),
                     [](const Variant& v) { return v.max_nano_per_hour.has_value(); });
}

}  // namespace bimetal::core::queue
