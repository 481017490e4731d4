#include "core/queue/order/select.h"

#include <algorithm>
#include <limits>
#include <set>
#include <string>
#include <utility>

#include "core/cost/rates.h"
#include "core/model/saturate.h"

namespace bimetal::core::queue::order {
namespace {

bool IsAffordable(const Candidate& one) {
  return !one.max_nano_per_hour ||
         (one.nano_per_hour && *one.nano_per_hour <= *one.max_nano_per_hour);
}

// Compares what the same work costs; a missing price is the dearest. `scaled`: throughputs count.
class Cost {
 public:
  explicit Cost(bool scaled) : scaled_(scaled) {}

  bool Less(const Candidate& a, const Candidate& b) const {
    if (!a.nano_per_hour || !b.nano_per_hour) {
      return a.nano_per_hour.has_value() && !b.nano_per_hour.has_value();
    }
    return Hourly(a) * Speed(b) < Hourly(b) * Speed(a);
  }

 private:
  // Prices are bounded by 9.2e18, devices by 2^20 and speeds by 2^30: the product of all three
  // fits 128 bits.
  static __int128 Hourly(const Candidate& one) {
    return static_cast<__int128>(*one.nano_per_hour) *
           std::clamp<std::int64_t>(one.devices, 1, std::int64_t{1} << 20);
  }
  __int128 Speed(const Candidate& one) const {
    return scaled_ ? std::clamp<std::int64_t>(*one.throughput_milli, 1, std::int64_t{1} << 30) : 1;
  }

  bool scaled_;
};

}  // namespace

std::vector<std::size_t> StartOrder(SelectionPolicy policy,
                                    const std::vector<Candidate>& candidates) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (candidates[i].possible && IsAffordable(candidates[i])) order.push_back(i);
  }
  const bool scaled = std::all_of(order.begin(), order.end(), [&](std::size_t i) {
    return candidates[i].throughput_milli && *candidates[i].throughput_milli > 0;
  });
  const Cost cost(scaled);
  const auto cheaper = [&](std::size_t a, std::size_t b) {
    return cost.Less(candidates[a], candidates[b]);
  };
  switch (policy) {
    case SelectionPolicy::kInOrder:
      break;
    case SelectionPolicy::kEarliestStart:
      if (!scaled) break;
      std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return *candidates[a].throughput_milli > *candidates[b].throughput_milli;
      });
      break;
    case SelectionPolicy::kLowestCost:
    case SelectionPolicy::kBestValue:
      std::stable_sort(order.begin(), order.end(), cheaper);
      if (policy == SelectionPolicy::kLowestCost && !order.empty()) {
        std::erase_if(order,
                      [&, least = order.front()](std::size_t i) { return cheaper(least, i); });
      }
      break;
  }
  return order;
}

bool WorthWaiting(const Candidate& here, const Candidate& there, TimePoint now, TimePoint start,
                  std::optional<Millis> work) {
  if (!work || !here.throughput_milli || !there.throughput_milli) return false;
  const auto run_here = RunTime(*work, *here.throughput_milli);
  const auto run_there = RunTime(*work, *there.throughput_milli);
  if (!run_here || !run_there) return false;
  return static_cast<__int128>(start.ms) + run_there->v <
         static_cast<__int128>(now.ms) + run_here->v;
}

std::vector<DevicePrice> PricesAt(const cost::PriceBook& book, TimePoint now,
                                  const PoolName& pool) {
  std::set<std::pair<Vendor, std::string>> kinds;
  for (const cost::Price& price : book.prices) kinds.emplace(price.vendor, price.model);
  std::vector<DevicePrice> prices;
  for (const auto& [vendor, model] : kinds) {
    const auto rates = cost::RatesAt(
        book, {.vendor = vendor, .model = model, .pool = pool.value, .purchase = {}}, now);
    if (!rates.missing.empty()) continue;
    prices.push_back(
        {vendor, model,
         Saturate(static_cast<__int128>(rates.hardware.v) + rates.energy.v + rates.labour.v)});
  }
  return prices;
}

std::vector<std::size_t> VariantOrder(const Job& job, const std::vector<DevicePrice>& prices,
                                      const std::vector<bool>& possible) {
  std::vector<Candidate> candidates;
  for (std::size_t i = 0; i < job.variants.size(); ++i) {
    const Variant& variant = job.variants[i];
    Candidate candidate{.devices = DevicesNeeded(job, variant),
                        .throughput_milli = variant.relative_throughput_milli,
                        .nano_per_hour = std::nullopt,
                        .max_nano_per_hour = variant.max_nano_per_hour,
                        .possible = i >= possible.size() || possible[i]};
    for (const DevicePrice& price : prices) {
      const bool takes = variant.models.empty() ||
                         std::find(variant.models.begin(), variant.models.end(), price.model) !=
                             variant.models.end();
      if (price.vendor != variant.vendor || !takes) continue;
      candidate.nano_per_hour =
          std::min(price.nano_per_hour, candidate.nano_per_hour.value_or(price.nano_per_hour));
    }
    candidates.push_back(candidate);
  }
  return StartOrder(job.selection, candidates);
}

std::optional<Millis> RunTime(Millis work, std::int64_t throughput_milli) {
  if (throughput_milli <= 0) return std::nullopt;
  const __int128 run = static_cast<__int128>(work.v) * 1000 / throughput_milli;
  return Millis{
      static_cast<std::int64_t>(std::min<__int128>(run, std::numeric_limits<std::int64_t>::max()))};
}

}  // namespace bimetal::core::queue::order
