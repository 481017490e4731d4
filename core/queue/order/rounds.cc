#include "core/queue/order/rounds.h"

#include <algorithm>
#include <numeric>

#include "core/queue/order/market.h"
#include "core/queue/order/runtimes.h"

namespace bimetal::core::queue::order {
namespace {

constexpr std::int64_t kMaxRate = 1'000'000, kMaxDevices = 1'000'000, kMaxWeight = 1000;
constexpr std::int64_t kPriceUnit = std::int64_t{1} << 20;  // the mean price of a device

std::int64_t RateOf(const RoundJob& job, std::size_t c) {
  return c < job.rate.size() ? std::clamp<std::int64_t>(job.rate[c], 0, kMaxRate) : 0;
}

// The share of a round, in thousandths, in which the job really works on class `c`.
std::int64_t WorkingShare(const RoundJob& job, std::size_t c, const RoundPolicy& policy) {
  if (job.running == c || policy.length.v <= 0) return 1000;
  return std::clamp<std::int64_t>(1000 - policy.restart.v * 1000 / policy.length.v, 1, 1000);
}

std::int64_t Clamp(__int128 worth) {
  return static_cast<std::int64_t>(std::clamp<__int128>(worth, 1, kMaxWorth));
}

// How much more a job counts for having waited: twice as much when it has waited twice as long as
// it runs in all, five times at four times. Thousandths. Without this a busy cluster would let
// large jobs starve.
std::int64_t Patience(const RoundJob& job) {
  constexpr __int128 kMost = 100'000;  // thousandths: a hundred times its run time
  const __int128 run = static_cast<__int128>(std::max<std::int64_t>(0, job.attained.v)) +
                       std::max<std::int64_t>(0, job.work.v) + Minutes(10).v;
  const __int128 waited = std::max<std::int64_t>(0, job.waited.v);
  const auto slow = static_cast<std::int64_t>(std::min(kMost, waited * 1000 / run));
  return 1000 + slow * slow / 4000;
}

// Finished jobs a second, times 2^40.
std::int64_t FinishWorth(const RoundJob& job, std::int64_t rate) {
  const __int128 weight = std::clamp<std::int64_t>(job.weight, 1, kMaxWeight);
  return Clamp((weight * rate * Patience(job) << 40) / 1000 /
               std::max<std::int64_t>(1, job.work.v));
}

// Long-run prices for the makespan: those at which all the work, each job on the class where it
// costs least, loads every class for the same time. Mean price kPriceUnit.
struct LongRun {
  std::vector<std::int64_t> price;
  std::int64_t length = 0;  // ms that the most loaded class works
};

std::size_t Cheapest(const RoundJob& job, const std::vector<std::int64_t>& price) {
  std::size_t best = price.size();
  for (std::size_t c = 0; c < price.size(); ++c) {
    if (RateOf(job, c) <= 0) continue;
    if (best == price.size() || static_cast<__int128>(price[c]) * RateOf(job, best) <
                                    static_cast<__int128>(price[best]) * RateOf(job, c)) {
      best = c;
    }
  }
  return best;
}

std::int64_t TimeOn(const RoundJob& job, std::size_t c) {
  return static_cast<std::int64_t>(static_cast<__int128>(job.work.v) * 1000 / RateOf(job, c));
}

LongRun BalancedPrices(const std::vector<RoundJob>& jobs, const std::vector<RoundClass>& classes) {
  constexpr int kSteps = 60;
  LongRun best{.price = std::vector<std::int64_t>(classes.size(), kPriceUnit), .length = -1};
  std::vector<std::int64_t> price = best.price;
  for (int step = 0; step < kSteps; ++step) {
    std::vector<__int128> load(classes.size(), 0);  // device ms
    for (const RoundJob& job : jobs) {
      const std::size_t c = Cheapest(job, price);
      if (c < classes.size()) load[c] += static_cast<__int128>(TimeOn(job, c)) * job.devices;
    }
    std::vector<std::int64_t> busy(classes.size(), 0);  // ms
    __int128 total = 0;
    std::int64_t longest = 0, count = 0;
    for (std::size_t c = 0; c < classes.size(); ++c) {
      if (classes[c].devices <= 0) continue;
      busy[c] = static_cast<std::int64_t>(load[c] / classes[c].devices);
      longest = std::max(longest, busy[c]);
      total += busy[c];
      ++count;
    }
    if (count == 0 || total == 0) return LongRun{price, 0};
    if (best.length < 0 || longest < best.length) best = LongRun{price, longest};
    // Steps of at most a quarter at first, a hundredth in the end.
    const std::int64_t mean = static_cast<std::int64_t>(total / count);
    const std::int64_t gain = 250 / (1 + step / 4) + 5;  // thousandths
    for (std::size_t c = 0; c < classes.size(); ++c) {
      const std::int64_t off = std::clamp<std::int64_t>(
          static_cast<std::int64_t>(static_cast<__int128>(busy[c] - mean) * 1000 /
                                    std::max<std::int64_t>(1, mean)),
          -1000, 1000);
      price[c] = std::max<std::int64_t>(16, price[c] + price[c] / 1000 * (off * gain / 1000));
    }
  }
  return best;
}

std::vector<Bidder> MakespanBidders(const std::vector<RoundJob>& jobs,
                                    const std::vector<RoundClass>& classes,
                                    const RoundPolicy& policy) {
  LongRun run = BalancedPrices(jobs, classes);
  std::int64_t horizon = run.length;
  for (const RoundJob& job : jobs) {
    std::int64_t best = 0;
    for (std::size_t c = 0; c < classes.size(); ++c) best = std::max(best, RateOf(job, c));
    if (best > 0) {
      horizon = std::max(
          horizon, static_cast<std::int64_t>(static_cast<__int128>(job.work.v) * 1000 / best));
    }
  }
  std::vector<Bidder> bidders;
  for (const RoundJob& job : jobs) {
    Bidder bidder{.devices = job.devices, .worth = std::vector<std::int64_t>(classes.size(), 0)};
    const std::size_t home = Cheapest(job, run.price);
    for (std::size_t c = 0; c < classes.size() && home < classes.size(); ++c) {
      const std::int64_t rate = RateOf(job, c);
      if (rate <= 0) continue;
      __int128 worth = static_cast<__int128>(run.price[home]) * rate / RateOf(job, home) *
                       job.devices * WorkingShare(job, c, policy) / 1000;
      // Long jobs first: they have fewer chances left to end in time.
      worth += worth * TimeOn(job, home) / std::max<std::int64_t>(1, horizon);
      // On a class that is too slow to end in time it is better than nothing, and no more.
      if (TimeOn(job, c) > horizon) worth /= 8;
      bidder.worth[c] = Clamp(worth);
    }
    bidders.push_back(std::move(bidder));
  }
  return bidders;
}

// Cost of a unit of work on class `c` against the cheapest, 1 .. 1000 where 1000 is the cheapest.
// A class without a price costs as much as the dearest.
std::int64_t Thrift(const RoundJob& job, const std::vector<RoundClass>& classes, std::size_t c) {
  std::int64_t dearest = 1;
  for (const RoundClass& one : classes) dearest = std::max(dearest, one.price);
  const auto cost = [&](std::size_t k) {
    const std::int64_t price = classes[k].price > 0 ? classes[k].price : dearest;
    return static_cast<__int128>(price) * kMaxRate / RateOf(job, k);
  };
  __int128 least = cost(c);
  for (std::size_t k = 0; k < classes.size(); ++k) {
    if (RateOf(job, k) > 0) least = std::min(least, cost(k));
  }
  return static_cast<std::int64_t>(
      std::clamp<__int128>(least * 1000 / std::max<__int128>(1, cost(c)), 1, 1000));
}

std::vector<Bidder> BiddersOf(const std::vector<RoundJob>& jobs,
                              const std::vector<RoundClass>& classes, const RoundPolicy& policy) {
  if (policy.objective == Objective::kMakespan) return MakespanBidders(jobs, classes, policy);
  std::vector<Bidder> bidders;
  bidders.reserve(jobs.size());
  for (const RoundJob& job : jobs) {
    Bidder bidder{.devices = job.devices, .worth = std::vector<std::int64_t>(classes.size(), 0)};
    for (std::size_t c = 0; c < classes.size(); ++c) {
      const std::int64_t rate = RateOf(job, c);
      if (rate <= 0 || job.devices > classes[c].devices) continue;
      const std::int64_t share = WorkingShare(job, c, policy);
      const std::int64_t speed =
          policy.objective == Objective::kLowestCost ? Thrift(job, classes, c) : rate;
      bidder.worth[c] = FinishWorth(job, std::max<std::int64_t>(1, speed * share / 1000));
    }
    bidders.push_back(std::move(bidder));
  }
  return bidders;
}

}  // namespace

std::vector<std::optional<std::size_t>> AssignRound(const std::vector<RoundJob>& jobs,
                                                    const std::vector<RoundClass>& classes,
                                                    const RoundPolicy& policy) {
  std::vector<std::size_t> order(jobs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return jobs[a].id < jobs[b].id; });
  std::vector<RoundJob> sorted;
  for (const std::size_t i : order) {
    if (jobs[i].devices >= 1 && jobs[i].devices <= kMaxDevices) sorted.push_back(jobs[i]);
  }
  std::erase_if(
      order, [&](std::size_t i) { return jobs[i].devices < 1 || jobs[i].devices > kMaxDevices; });
  std::vector<std::int64_t> devices;
  for (const RoundClass& one : classes) {
    devices.push_back(std::clamp<std::int64_t>(one.devices, 0, kMaxDevices * 1000));
  }
  const auto got = Assign(BiddersOf(sorted, classes, policy), devices);
  std::vector<std::optional<std::size_t>> result(jobs.size());
  for (std::size_t i = 0; i < order.size(); ++i) result[order[i]] = got[i];
  return result;
}

Millis ExpectedWork(const Knowledge& job) {
  const Millis least = Seconds(30);
  if (job.remaining) return std::max(least, *job.remaining);
  if (job.predicted) return std::max(least, RemainingOf(*job.predicted, job.attained));
  return std::max(least, job.attained);
}

}  // namespace bimetal::core::queue::order
