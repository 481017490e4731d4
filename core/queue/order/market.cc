#include "core/queue/order/market.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace bimetal::core::queue::order {
namespace {

constexpr int kMaxSweeps = 8;

// What class `c` leaves the bidder at these prices; negative where it costs more than it is worth.
std::int64_t Left(const Bidder& bidder, const std::vector<std::int64_t>& prices, std::size_t c) {
  // Prices are worths a device, so that the product is bounded by the greatest worth times the
  // devices of the bidder.
  const __int128 cost = static_cast<__int128>(bidder.devices) * prices[c];
  const __int128 left = bidder.worth[c] - cost;
  return static_cast<std::int64_t>(std::max<__int128>(left, -kMaxWorth));
}

// The most that a bidder would pay for one device of class `c` rather than go elsewhere or wait.
std::int64_t Bid(const Bidder& bidder, const std::vector<std::int64_t>& prices, std::size_t c) {
  std::int64_t elsewhere = 0;
  for (std::size_t other = 0; other < prices.size(); ++other) {
    if (other == c || bidder.worth[other] <= 0) continue;
    elsewhere = std::max(elsewhere, Left(bidder, prices, other));
  }
  return (bidder.worth[c] - elsewhere) / bidder.devices;
}

// The price at which the bidders for class `c` just fit: the highest bid that finds no room.
std::int64_t ClearingPrice(const std::vector<Bidder>& bidders,
                           const std::vector<std::int64_t>& prices, std::size_t c,
                           std::int64_t devices) {
  std::vector<std::pair<std::int64_t, std::size_t>> bids;  // (-bid, bidder)
  for (std::size_t i = 0; i < bidders.size(); ++i) {
    if (bidders[i].worth[c] <= 0) continue;
    const std::int64_t bid = Bid(bidders[i], prices, c);
    if (bid > 0) bids.emplace_back(-bid, i);
  }
  std::sort(bids.begin(), bids.end());
  std::int64_t left = devices;
  for (const auto& [minus_bid, i] : bids) {
    left -= bidders[i].devices;
    if (left < 0) return -minus_bid;
  }
  return 0;
}

}  // namespace

std::vector<std::int64_t> Prices(const std::vector<Bidder>& bidders,
                                 const std::vector<std::int64_t>& devices) {
  std::vector<std::int64_t> prices(devices.size(), 0);
  for (int sweep = 0; sweep < kMaxSweeps; ++sweep) {
    bool changed = false;
    for (std::size_t c = 0; c < devices.size(); ++c) {
      const std::int64_t price = ClearingPrice(bidders, prices, c, devices[c]);
      changed |= price != prices[c];
      prices[c] = price;
    }
    if (!changed) break;
  }
  return prices;
}

std::vector<std::optional<std::size_t>> Assign(const std::vector<Bidder>& bidders,
                                               const std::vector<std::int64_t>& devices) {
  const std::vector<std::int64_t> prices = Prices(bidders, devices);
  std::vector<std::int64_t> free = devices;
  std::vector<std::optional<std::size_t>> got(bidders.size());

  // (-what is left per device at the best class, -worth per device, bidder)
  std::vector<std::tuple<std::int64_t, std::int64_t, std::size_t>> order;
  for (std::size_t i = 0; i < bidders.size(); ++i) {
    std::int64_t left = -kMaxWorth, worth = 0;
    for (std::size_t c = 0; c < devices.size(); ++c) {
      if (bidders[i].worth[c] <= 0) continue;
      left = std::max(left, Left(bidders[i], prices, c));
      worth = std::max(worth, bidders[i].worth[c]);
    }
    if (worth > 0) order.emplace_back(-left / bidders[i].devices, -worth / bidders[i].devices, i);
  }
  std::sort(order.begin(), order.end());

  // First those whom the prices leave something, where it leaves them most; then whoever fits.
  for (const bool any : {false, true}) {
    for (const auto& [minus_left, minus_worth, i] : order) {
      if (got[i]) continue;
      std::optional<std::size_t> best;
      for (std::size_t c = 0; c < devices.size(); ++c) {
        if (bidders[i].worth[c] <= 0 || free[c] < bidders[i].devices) continue;
        const std::int64_t left = Left(bidders[i], prices, c);
        if (!any && left < 0) continue;
        if (!best || std::pair(left, -prices[c]) >
                         std::pair(Left(bidders[i], prices, *best), -prices[*best])) {
          best = c;
        }
      }
      if (!best) continue;
      free[*best] -= bidders[i].devices;
      got[i] = best;
    }
  }
  return got;
}

}  // namespace bimetal::core::queue::order
