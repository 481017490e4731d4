#include "tests/bench/queue/slices_sim.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <queue>
#include <string>
#include <tuple>
#include <utility>

#include "core/queue/order/rounds.h"
#include "tests/bench/queue/nodes.h"

namespace bimetal::bench {
namespace {

namespace order = core::queue::order;

constexpr std::size_t kClasses = 2;

Millis Ms(double seconds) { return Millis{std::llround(seconds * 1000)}; }

struct State {
  std::optional<std::size_t> where;  // class
  std::vector<order::Taking> taking;
  double done = 0;                     // work up to `since`
  double since = 0;                    // from here it makes progress
  double started = 0, ran_before = 0;  // of the present start, and what it ran before that
  bool ran = false;
  bool stays = false;  // by the round that is being carried out
  long start = 0;      // counts its starts, to know an old end
};

class Slices {
 public:
  Slices(const std::vector<TraceJob>& jobs, const SlicesSetup& setup)
      : jobs_(jobs), setup_(setup), state_(jobs.size()) {
    result_.finish.assign(jobs.size(), 0);
    for (const TraceJob& job : jobs) {
      const order::GangShape gang = ShapeOf(job);
      order::RoundJob view;
      view.id = Uid{std::to_string(1'000'000 + views_.size())};
      view.devices = gang.pods * gang.devices_per_pod;
      for (const double rate : job.rate) view.rate.push_back(std::llround(rate * 1000));
      views_.push_back(std::move(view));
    }
  }

  SlicesResult Run() {
    std::size_t next = 0;
    double round = 0;
    long rounds = 0;
    while (next < jobs_.size() || !active_.empty()) {
      while (!ends_.empty() && IsOld(ends_.top())) ends_.pop();
      if (active_.empty()) round = std::max(round, jobs_[next].arrival);
      now_ = round;
      if (next < jobs_.size()) now_ = std::min(now_, jobs_[next].arrival);
      if (!ends_.empty()) now_ = std::min(now_, ends_.top().at);
      for (; !ends_.empty() && ends_.top().at <= now_; ends_.pop()) {
        if (!IsOld(ends_.top())) Finish(ends_.top().job);
      }
      for (; next < jobs_.size() && jobs_[next].arrival <= now_; ++next) {
        active_.push_back(next);
        waiting_.push_back(next);
      }
      if (now_ >= round) {
        Round();
        ++rounds;
        round = now_ + setup_.round;
      }
      Fill();
    }
    result_.decision_ms = rounds == 0 ? 0 : spent_ms_ / static_cast<double>(rounds);
    return std::move(result_);
  }

 private:
  struct End {
    double at = 0;
    std::size_t job = 0;
    long start = 0;
    bool operator>(const End& other) const {
      return std::tie(at, job) > std::tie(other.at, other.job);
    }
  };

  bool IsOld(const End& end) const {
    return !state_[end.job].where || state_[end.job].start != end.start;
  }
  std::int64_t PerPod(std::size_t j) const { return ShapeOf(jobs_[j]).devices_per_pod; }

  double Done(std::size_t j) const {
    const State& s = state_[j];
    if (!s.where || now_ <= s.since) return s.done;
    return s.done + (now_ - s.since) * jobs_[j].rate[*s.where];
  }
  Millis Expected(std::size_t j) const {
    return order::ExpectedWork({.attained = Ms(Done(j)), .remaining = {}, .predicted = {}});
  }

  double Waited(std::size_t j) const {
    const State& s = state_[j];
    return now_ - jobs_[j].arrival - s.ran_before - (s.where ? now_ - s.started : 0);
  }

  void Release(std::size_t j) {
    nodes_[*state_[j].where].Release(j, state_[j].taking);
    state_[j].where.reset();
  }
  void Stop(std::size_t j) {
    state_[j].done = Done(j);
    state_[j].ran_before += now_ - state_[j].started;
    Release(j);
    waiting_.push_back(j);
  }
  void Finish(std::size_t j) {
    Release(j);
    result_.finish[j] = now_;
    std::erase(active_, j);
  }

  bool TryStart(std::size_t j, std::size_t c) {
    auto taking = nodes_[c].Find(ShapeOf(jobs_[j]));
    if (taking.empty()) return false;
    State& s = state_[j];
    nodes_[c].Take(j, taking);
    s.taking = std::move(taking);
    s.where = c;
    s.started = now_;
    s.stays = true;
    s.since = now_ + (s.ran ? setup_.restart : 0);
    if (s.ran) ++result_.restarts;
    s.ran = true;
    ends_.push({s.since + (jobs_[j].work - s.done) / jobs_[j].rate[c], j, ++s.start});
    std::erase(waiting_, j);
    return true;
  }

  // Gives what is free to who is expected to need it shortest, on its faster class if it can.
  void Fill() {
    const std::int64_t most = std::max(nodes_[0].MostFree(), nodes_[1].MostFree());
    if (most == 0) return;
    std::vector<std::pair<std::int64_t, std::size_t>> line;
    for (const std::size_t j : waiting_) {
      if (PerPod(j) <= most) line.emplace_back(Expected(j).v * jobs_[j].devices, j);
    }
    std::sort(line.begin(), line.end());
    for (const auto& [work, j] : line) {
      const std::size_t fast = jobs_[j].rate[0] >= jobs_[j].rate[1] ? 0 : 1;
      if (!TryStart(j, fast)) TryStart(j, 1 - fast);
    }
  }

  // May `other` be taken off its node for a pod of `devices`? Those that need not stay may; to
  // `repack`, smaller ones that will find a place elsewhere, too.
  bool MayGo(std::size_t other, std::int64_t devices, bool repack) const {
    if (!state_[other].stays) return true;
    return repack && ShapeOf(jobs_[other]).pods == 1 && PerPod(other) < devices;
  }

  // The node that has room for `devices` when those that may go are gone, at the least cost.
  std::optional<std::size_t> NodeToClear(std::size_t c, std::int64_t devices, bool repack,
                                         const std::vector<std::size_t>& taken) const {
    std::optional<std::size_t> best;
    std::pair<std::int64_t, std::int64_t> best_cost;
    for (std::size_t n = 0; n < nodes_[c].size(); ++n) {
      if (std::find(taken.begin(), taken.end(), n) != taken.end()) continue;
      std::int64_t room = nodes_[c].Free(n), moved = 0;
      for (const Nodes::Share& share : nodes_[c].On(n)) {
        if (!MayGo(share.job, devices, repack)) continue;
        room += share.devices;
        if (state_[share.job].stays) moved += share.devices;
      }
      const std::pair cost(moved, room);
      if (room < devices || (best && cost >= best_cost)) continue;
      best = n;
      best_cost = cost;
    }
    return best;
  }

  // Takes jobs off node `n` until `devices` are free: first who need not stay, small ones first.
  void Clear(std::size_t c, std::size_t n, std::int64_t devices, std::vector<std::size_t>* moved) {
    std::vector<std::tuple<bool, int, std::size_t>> there;  // (stays, devices, job)
    for (const Nodes::Share& share : nodes_[c].On(n)) {
      if (MayGo(share.job, devices, true)) {
        there.emplace_back(state_[share.job].stays, jobs_[share.job].devices, share.job);
      }
    }
    std::sort(there.begin(), there.end());
    for (const auto& [stays, size, j] : there) {
      if (nodes_[c].Free(n) >= devices) return;
      Stop(j);
      if (stays) moved->push_back(j);
    }
  }

  bool StartWithRoomMade(std::size_t j, std::size_t c, bool repack,
                         std::vector<std::size_t>* moved) {
    const order::GangShape gang = ShapeOf(jobs_[j]);
    std::vector<std::size_t> taken;
    for (std::int64_t pod = 0; pod < gang.pods; ++pod) {
      const auto node = NodeToClear(c, gang.devices_per_pod, repack, taken);
      if (!node) return false;
      taken.push_back(*node);
    }
    for (const std::size_t n : taken) Clear(c, n, gang.devices_per_pod, moved);
    return TryStart(j, c);
  }

  std::vector<std::optional<std::size_t>> Decide() {
    std::vector<order::RoundJob> views;
    std::vector<double> left;
    for (const std::size_t j : active_) {
      views_[j].work = Expected(j);
      views_[j].attained = Ms(Done(j));
      views_[j].waited = Ms(Waited(j));
      views_[j].running = state_[j].where;
      views.push_back(views_[j]);
      left.push_back(jobs_[j].work - Done(j));
    }
    const order::RoundClass one{.devices = setup_.nodes * kNodeDevices, .price = 0};
    const order::RoundPolicy policy{.objective = order::Objective::kMeanFinish,
                                    .length = Ms(setup_.round),
                                    .restart = Ms(setup_.restart)};
    const auto before = std::chrono::steady_clock::now();
    auto where = setup_.rule ? setup_.rule(now_, active_, left)
                             : order::AssignRound(views, {one, one}, policy);
    const std::chrono::duration<double, std::milli> spent =
        std::chrono::steady_clock::now() - before;
    spent_ms_ += spent.count();
    return where;
  }

  void Round() {
    const auto where = Decide();
    std::vector<std::pair<std::size_t, std::size_t>> wanted;  // (job, class), large jobs first
    for (std::size_t i = 0; i < active_.size(); ++i) {
      const std::size_t j = active_[i];
      state_[j].stays = state_[j].where == where[i];
      if (where[i] && !state_[j].stays) wanted.emplace_back(j, *where[i]);
    }
    std::stable_sort(wanted.begin(), wanted.end(), [&](const auto& a, const auto& b) {
      return jobs_[a.first].devices > jobs_[b.first].devices;
    });
    for (const auto& [j, c] : wanted) {
      if (state_[j].where) Stop(j);  // it moves to the other class
      if (TryStart(j, c)) continue;
      std::vector<std::size_t> moved, none;
      if (!StartWithRoomMade(j, c, false, &moved)) StartWithRoomMade(j, c, true, &moved);
      for (const std::size_t other : moved) {
        if (!TryStart(other, c)) StartWithRoomMade(other, c, false, &none);
      }
    }
  }

  const std::vector<TraceJob>& jobs_;
  const SlicesSetup setup_;
  SlicesResult result_;
  double now_ = 0, spent_ms_ = 0;
  std::vector<State> state_;
  std::vector<order::RoundJob> views_;
  std::vector<std::size_t> active_, waiting_;
  std::array<Nodes, kClasses> nodes_ = {Nodes(setup_.nodes), Nodes(setup_.nodes)};
  std::priority_queue<End, std::vector<End>, std::greater<>> ends_;
};

}  // namespace

SlicesResult SimulateSlices(const std::vector<TraceJob>& jobs, const SlicesSetup& setup) {
  return Slices(jobs, setup).Run();
}

}  // namespace bimetal::bench
