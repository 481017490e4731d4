#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "core/queue/cycle.h"

namespace bimetal::core::queue {

// What the jobs of a cycle may take: which variants, in which order (spec.selection), and which
// models at the prices of a pool (maxPricePerHour). Keeps a pointer to the snapshot. Loop thread
// only.
class Choice {
 public:
  explicit Choice(const Snapshot& snapshot);

  // The variants that the job may start as, in the order in which to try them. `possible[i]`:
  // variant i could start some day; empty: all could.
  std::vector<std::size_t> Order(const Job& job, const std::vector<bool>& possible) const;

  // The job as it may be placed in `pool` as `variant`: without the models that cost more there
  // than the variant pays, or have no price. nullptr: none is left. Stays as long as this does.
  const Job* In(const PoolName& pool, const Job& job, std::size_t variant);

  // The lowest price in `pool` of a model that the variant takes; nullopt: none has a price.
  std::optional<std::int64_t> LowestPrice(const PoolName& pool, const Variant& variant) const;

 private:
  std::map<PoolName, const std::vector<order::DevicePrice>*> by_pool_;
  std::vector<order::DevicePrice> all_;
  std::map<std::tuple<PoolName, Uid, std::size_t>, std::optional<Job>> narrowed_;
};

// True where the order of the job's variants, or which of them it may take, hangs on prices. Pure.
bool AsksForPrices(const Job& job);

}  // namespace bimetal::core::queue
