#include "tests/bench/queue/fair.h"

#include <algorithm>
#include <limits>
#include <tuple>

namespace bimetal::bench {
namespace {

using Shares = std::vector<std::pair<double, double>>;

// Shares of time that give `need` at the least cost, where the first class costs `price` a device
// and the second 1 - price. REQUIRES: need <= the greater rate.
std::pair<double, double> Cheapest(const Fluid& job, double need, double price) {
  const double a = job.rate[0], b = job.rate[1];
  if (need <= 0) return {0, 0};
  const bool first = price * b <= (1 - price) * a;  // cost of a unit of rate
  const double cheap = first ? a : b, dear = first ? b : a;
  if (need <= cheap) return first ? std::pair(need / a, 0.0) : std::pair(0.0, need / b);
  // Not fast enough alone: the rest of the time on the other.
  const double other = std::min(1.0, (need - cheap) / (dear - cheap));
  return first ? std::pair(1 - other, other) : std::pair(other, 1 - other);
}

std::pair<double, double> Load(const std::vector<Fluid>& jobs, const std::vector<double>& need,
                               double price, Shares* shares) {
  double first = 0, second = 0;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const auto x = Cheapest(jobs[i], need[i], price);
    if (shares != nullptr) (*shares)[i] = x;
    first += x.first * jobs[i].devices;
    second += x.second * jobs[i].devices;
  }
  return {first, second};
}

// A price at which both classes have room for all needs.
std::optional<double> FeasiblePrice(const std::vector<Fluid>& jobs, const std::vector<double>& need,
                                    double capacity) {
  double low = 0, high = 1;
  for (int i = 0; i < 14; ++i) {
    const double price = (low + high) / 2;
    const auto [first, second] = Load(jobs, need, price, nullptr);
    if (first <= capacity && second <= capacity) return price;
    if (first > capacity && second > capacity) return std::nullopt;
    (first > capacity ? low : high) = price;
  }
  return std::nullopt;
}

double LeastRho(const Fluid& job) {
  return (job.elapsed + job.left / std::max(job.rate[0], job.rate[1])) / job.share_time;
}

}  // namespace

std::vector<double> ShareTimes(const std::vector<TraceJob>& jobs, double devices_in_all) {
  std::map<std::string, std::vector<std::size_t>> queues;
  for (std::size_t i = 0; i < jobs.size(); ++i) queues[jobs[i].queue].push_back(i);
  const double share = devices_in_all / static_cast<double>(queues.size());
  std::vector<double> times(jobs.size(), 0);
  for (const auto& [name, mine] : queues) {
    struct Active {
      std::size_t job;
      double left;
    };
    std::vector<Active> active;
    std::size_t next = 0;
    double now = 0;
    while (next < mine.size() || !active.empty()) {
      if (active.empty()) now = std::max(now, jobs[mine[next]].arrival);
      for (; next < mine.size() && jobs[mine[next]].arrival <= now; ++next) {
        active.push_back({mine[next], jobs[mine[next]].work});
      }
      double asked = 0;
      for (const Active& one : active) asked += jobs[one.job].devices;
      const double part = std::min(1.0, share / asked);
      const auto speed = [&](std::size_t j) {
        return part * (jobs[j].rate[0] + jobs[j].rate[1]) / 2;
      };
      double step =
          next < mine.size() ? jobs[mine[next]].arrival - now : std::numeric_limits<double>::max();
      for (const Active& one : active) step = std::min(step, one.left / speed(one.job));
      now += step;
      for (Active& one : active) {
        one.left -= step * speed(one.job);
        if (one.left < 1e-6) times[one.job] = now - jobs[one.job].arrival;
      }
      std::erase_if(active, [](const Active& one) { return one.left < 1e-6; });
    }
  }
  return times;
}

Fairness FairnessOf(const std::vector<TraceJob>& jobs, const std::vector<double>& finish,
                    const std::vector<double>& share_times) {
  std::map<std::string, std::pair<double, double>> sums;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    sums[jobs[i].queue].first += (finish[i] - jobs[i].arrival) / share_times[i];
    sums[jobs[i].queue].second += 1;
  }
  Fairness fairness;
  for (const auto& [name, sum] : sums) {
    const double rho = sum.first / sum.second;
    fairness.by_queue[name] = rho;
    fairness.worst = std::max(fairness.worst, rho);
    fairness.mean += rho / static_cast<double>(sums.size());
  }
  return fairness;
}

std::vector<std::pair<double, double>> FairProgram::Solve(const std::vector<Fluid>& jobs) const {
  constexpr int kPasses = 3, kSteps = 14;
  std::vector<double> held(jobs.size(), -1);  // needs that are settled
  Shares shares(jobs.size());
  for (int pass = 0; pass < kPasses; ++pass) {
    const auto needs = [&](double rho) {
      std::vector<double> need(jobs.size());
      for (std::size_t i = 0; i < jobs.size(); ++i) {
        const double most = std::max(jobs[i].rate[0], jobs[i].rate[1]);
        const double time = rho * jobs[i].share_time - jobs[i].elapsed;
        need[i] = held[i] >= 0 ? held[i] : time <= 0 ? most : std::min(most, jobs[i].left / time);
      }
      return need;
    };
    double low = std::numeric_limits<double>::max(), high = 1;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      if (held[i] < 0) low = std::min(low, LeastRho(jobs[i]));
    }
    if (low == std::numeric_limits<double>::max()) break;
    high = std::max(high, low * 2);
    while (!FeasiblePrice(jobs, needs(high), capacity_) && high < 1e9) high *= 2;
    for (int step = 0; step < kSteps; ++step) {
      const double rho = (low + high) / 2;
      (FeasiblePrice(jobs, needs(rho), capacity_) ? high : low) = rho;
    }
    const std::vector<double> need = needs(high);
    if (const auto price = FeasiblePrice(jobs, need, capacity_)) {
      Load(jobs, need, *price, &shares);
    }
    // Whoever cannot get below this rho whatever it is given is settled; the others go on.
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      if (held[i] < 0 && LeastRho(jobs[i]) >= high * 0.98) held[i] = need[i];
    }
  }
  return shares;
}

std::vector<std::optional<std::size_t>> FairProgram::Round(const std::vector<Fluid>& jobs) {
  const Shares shares = Solve(jobs);
  std::map<std::size_t, std::pair<double, double>> credit;
  std::vector<std::tuple<double, std::size_t, std::size_t>> order;  // (-credit, index, class)
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    auto& mine = credit[jobs[i].job];
    mine = credit_[jobs[i].job];
    mine.first += shares[i].first;
    mine.second += shares[i].second;
    order.emplace_back(-mine.first, i, 0);
    order.emplace_back(-mine.second, i, 1);
  }
  std::sort(order.begin(), order.end());
  std::vector<std::optional<std::size_t>> where(jobs.size());
  double free[2] = {capacity_, capacity_};
  for (const auto& [minus, i, c] : order) {
    if (where[i] || free[c] < jobs[i].devices) continue;
    free[c] -= jobs[i].devices;
    where[i] = c;
    auto& mine = credit[jobs[i].job];
    (c == 0 ? mine.first : mine.second) -= 1;
  }
  credit_ = std::move(credit);
  return where;
}

}  // namespace bimetal::bench
