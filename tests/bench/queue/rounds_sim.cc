#include "tests/bench/queue/rounds_sim.h"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace bimetal::bench {
namespace {

using core::queue::order::AssignRound;
using core::queue::order::ExpectedWork;
using core::queue::order::Knowledge;
using core::queue::order::RoundClass;
using core::queue::order::RoundJob;
using core::queue::order::RoundPolicy;

struct Active {
  std::size_t job = 0;
  double done = 0;  // seconds of work
  double ran = 0;   // seconds
  RoundJob view;
};

Millis Ms(double seconds) { return Millis{std::llround(seconds * 1000)}; }

}  // namespace

RoundsResult SimulateRounds(const std::vector<TraceJob>& jobs, const RoundsSetup& setup) {
  RoundsResult result;
  result.finish.assign(jobs.size(), 0);
  std::vector<RoundClass> classes;
  for (const std::int64_t devices : setup.devices) classes.push_back({.devices = devices});
  const RoundPolicy policy{.objective = setup.objective, .length = Ms(setup.round), .restart = {}};
  const std::size_t until = setup.until == 0 ? jobs.size() : setup.until;
  std::vector<Active> active;
  std::size_t next = 0, finished = 0;
  double spent = 0;
  for (double now = 0; finished < until - setup.first; now += setup.round) {
    for (; next < jobs.size() && jobs[next].arrival <= now; ++next) {
      Active one{.job = next, .done = 0, .ran = 0, .view = {}};
      one.view.id = Uid{std::to_string(1'000'000 + next)};
      one.view.devices = jobs[next].devices;
      for (const double rate : jobs[next].rate) {
        one.view.rate.push_back(std::llround(rate * 1000));
      }
      active.push_back(std::move(one));
    }
    if (active.empty()) continue;
    std::vector<RoundJob> views;
    for (Active& one : active) {
      Knowledge known{.attained = Ms(one.done), .remaining = {}, .predicted = {}};
      if (setup.known == Known::kExactly) known.remaining = Ms(jobs[one.job].work - one.done);
      one.view.work = ExpectedWork(known);
      one.view.attained = known.attained;
      one.view.waited = Ms(now - jobs[one.job].arrival - one.ran);
      views.push_back(one.view);
    }
    const auto before = std::chrono::steady_clock::now();
    const auto where = AssignRound(views, classes, policy);
    spent += std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - before)
                 .count();
    ++result.rounds;
    for (std::size_t i = 0; i < active.size(); ++i) {
      Active& one = active[i];
      one.view.running = where[i];
      if (!where[i]) continue;
      const double rate = jobs[one.job].rate[*where[i]];
      const double left = (jobs[one.job].work - one.done) / rate;
      one.done += rate * setup.round;
      one.ran += setup.round;
      if (left > setup.round) continue;
      result.finish[one.job] = now + left;
      result.makespan = std::max(result.makespan, now + left);
      if (one.job >= setup.first && one.job < until) ++finished;
    }
    std::erase_if(active, [&](const Active& one) { return result.finish[one.job] > 0; });
  }
  result.decision_ms = result.rounds == 0 ? 0 : spent / static_cast<double>(result.rounds);
  return result;
}

double LeastMakespan(const std::vector<TraceJob>& jobs, const std::vector<double>& devices) {
  constexpr int kGrid = 24;
  double least = 0;
  for (const TraceJob& job : jobs) {
    least = std::max(least, job.work / *std::max_element(job.rate.begin(), job.rate.end()));
  }
  for (int a = 0; a <= kGrid; ++a) {
    for (int b = 0; a + b <= kGrid; ++b) {
      const int part[] = {a, b, kGrid - a - b};
      double cost = 0;
      for (const TraceJob& job : jobs) {
        double best = 1e300;
        for (std::size_t c = 0; c < 3; ++c) {
          if (job.rate[c] <= 0) continue;
          best = std::min(best, part[c] / (kGrid * devices[c] * job.rate[c]));
        }
        cost += best * job.work * job.devices;
      }
      least = std::max(least, cost);
    }
  }
  return least;
}

}  // namespace bimetal::bench
