#include "tests/bench/queue/line_sim.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <queue>
#include <string>
#include <utility>

#include "core/queue/order/backfill.h"
#include "core/queue/order/runtimes.h"
#include "core/queue/order/select.h"
#include "tests/bench/queue/nodes.h"

namespace bimetal::bench {
namespace {

namespace order = core::queue::order;
using core::SelectionPolicy;

constexpr std::size_t kClasses = 2;

Millis Ms(double seconds) { return Millis{std::llround(seconds * 1000)}; }
TimePoint At(double seconds) { return TimePoint{} + Ms(seconds); }

class Line {
 public:
  Line(const std::vector<TraceJob>& jobs, const LineSetup& setup)
      : jobs_(jobs), setup_(setup), places_(jobs.size()) {
    result_.start.assign(jobs.size(), 0);
    result_.finish.assign(jobs.size(), 0);
    std::map<std::pair<std::string, int>, std::size_t> groups;
    for (const TraceJob& job : jobs) {
      group_.push_back(groups.try_emplace({job.queue, job.devices}, groups.size()).first->second);
    }
    predicted_.resize(groups.size());
  }

  LineResult Run() {
    std::size_t next = 0;
    while (next < jobs_.size() || !ends_.empty()) {
      now_ = ends_.empty() ? jobs_[next].arrival : ends_.top().first;
      if (next < jobs_.size()) now_ = std::min(now_, jobs_[next].arrival);
      for (; !ends_.empty() && ends_.top().first <= now_; ends_.pop()) End(ends_.top().second);
      for (; next < jobs_.size() && jobs_[next].arrival <= now_; ++next) pending_.push_back(next);
      for (Shadows& shadows : shadows_) shadows.known = false;
      StartHeads();
      Overtake();
    }
    return std::move(result_);
  }

 private:
  struct Place {
    std::size_t where = 0;  // class
    std::vector<order::Taking> taking;
  };
  // When gangs could start on a class if nobody else did, by number of devices.
  struct Shadows {
    bool known = false;
    std::vector<order::NodeOutlook> outlook;
    std::map<int, std::optional<TimePoint>> start;
  };

  // Run time at rate 1 as the scheduler sees it.
  std::optional<Millis> Work(std::size_t j) const {
    if (setup_.exact) return Ms(jobs_[j].work);
    if (predicted_[group_[j]]) return predicted_[group_[j]];
    const auto prediction = times_.Predict(jobs_[j].queue, jobs_[j].devices);
    return prediction ? std::optional(prediction->work) : std::nullopt;
  }

  std::optional<Millis> RunOn(std::size_t j, std::size_t c) const {
    const auto work = Work(j);
    return work ? order::RunTime(*work, std::llround(jobs_[j].rate[c] * 1000)) : std::nullopt;
  }

  std::optional<TimePoint> EndOn(std::size_t j, std::size_t c) const {
    const auto run = RunOn(j, c);
    return run ? std::optional(At(now_) + *run) : std::nullopt;
  }

  // When a running job is expected to end.
  std::optional<TimePoint> ExpectedEnd(std::size_t j) const {
    if (setup_.exact) return At(result_.finish[j]);
    const auto run = RunOn(j, places_[j].where);
    if (!run) return std::nullopt;
    return At(now_) + order::RemainingOf(*run, Ms(now_ - result_.start[j]));
  }

  void End(std::size_t j) {
    nodes_[places_[j].where].Release(j, places_[j].taking);
    times_.Finished(jobs_[j].queue, jobs_[j].devices, Ms(jobs_[j].work));
    predicted_[group_[j]] = times_.Predict(jobs_[j].queue, jobs_[j].devices)->work;
  }

  std::vector<order::NodeOutlook> Outlook(std::size_t c) const {
    std::vector<order::NodeOutlook> outlook(nodes_[c].size());
    for (std::size_t n = 0; n < outlook.size(); ++n) {
      outlook[n].free = nodes_[c].Free(n);
      for (const Nodes::Share& share : nodes_[c].On(n)) {
        outlook[n].occupied.push_back({share.devices, ExpectedEnd(share.job)});
      }
    }
    return outlook;
  }

  std::optional<TimePoint> Shadow(std::size_t j, std::size_t c) {
    Shadows& shadows = shadows_[c];
    if (!shadows.known) shadows = {.known = true, .outlook = Outlook(c), .start = {}};
    const auto [known, added] = shadows.start.try_emplace(jobs_[j].devices);
    if (added) {
      const auto got = order::Reserve(shadows.outlook, ShapeOf(jobs_[j]), At(now_));
      if (got) known->second = got->start;
    }
    return known->second;
  }

  void Start(std::size_t j, std::size_t c, std::vector<order::Taking> taking) {
    nodes_[c].Take(j, taking);
    places_[j] = {c, std::move(taking)};
    result_.start[j] = now_;
    result_.finish[j] = now_ + jobs_[j].work / jobs_[j].rate[c];
    ends_.emplace(result_.finish[j], j);
    std::erase(pending_, j);
    shadows_[c].known = false;
  }

  // Starts the oldest jobs while they fit; the first that does not gets or keeps its promise.
  void StartHeads() {
    promise_.reset();
    while (!pending_.empty()) {
      const std::size_t head = pending_.front();
      std::array<std::vector<order::NodeOutlook>, kClasses> outlook;
      std::vector<order::Option> options;
      for (std::size_t c = 0; c < kClasses; ++c) {
        outlook[c] = Outlook(c);
        options.push_back({&outlook[c], ShapeOf(jobs_[head]), RunOn(head, c)});
      }
      promise_ = order::ReserveEarliestFinish(options, At(now_), promised_);
      if (!promise_) return;
      const TimePoint start = promise_->reservation.start;
      if (start > At(now_)) {
        if (!promised_) ++result_.promises;
        promised_ = promised_.value_or(start);
        return;
      }
      if (promised_ && start > *promised_) ++result_.late;
      Start(head, promise_->option, nodes_[promise_->option].Find(ShapeOf(jobs_[head])));
      promise_.reset();
      promised_.reset();
    }
  }

  // Everybody behind the head, by age.
  void Overtake() {
    const std::vector<std::size_t> line = pending_;
    std::int64_t most = MostFree();
    for (std::size_t i = 1; i < line.size() && most > 0; ++i) {
      if (ShapeOf(jobs_[line[i]]).devices_per_pod > most) continue;
      if (TryOvertake(line[i])) most = MostFree();
    }
  }

  std::int64_t MostFree() const { return std::max(nodes_[0].MostFree(), nodes_[1].MostFree()); }

  bool TryOvertake(std::size_t j) {
    std::vector<order::Candidate> candidates(kClasses);
    for (std::size_t c = 0; c < kClasses; ++c) {
      candidates[c].devices = jobs_[j].devices;
      candidates[c].throughput_milli = std::llround(jobs_[j].rate[c] * 1000);
    }
    const auto policy =
        setup_.earliest_start ? SelectionPolicy::kEarliestStart : SelectionPolicy::kInOrder;
    std::vector<std::size_t> busy;  // better ones that have no place now
    for (const std::size_t c : order::StartOrder(policy, candidates)) {
      auto taking = nodes_[c].Find(ShapeOf(jobs_[j]));
      if (taking.empty()) {
        busy.push_back(c);
        continue;
      }
      const auto end = EndOn(j, c);
      order::Reservation* promised =
          promise_ && promise_->option == c ? &promise_->reservation : nullptr;
      if (promised != nullptr && !order::LeavesWhole(*promised, taking, end)) continue;
      const bool waits = std::any_of(busy.begin(), busy.end(), [&](std::size_t other) {
        if (!setup_.earliest_start) return false;
        const auto start = Shadow(j, other);
        return start &&
               order::WorthWaiting(candidates[c], candidates[other], At(now_), *start, Work(j));
      });
      if (waits) continue;
      if (promised != nullptr) order::Start(promised, taking, end);
      Start(j, c, std::move(taking));
      return true;
    }
    return false;
  }

  const std::vector<TraceJob>& jobs_;
  const LineSetup setup_;
  LineResult result_;
  double now_ = 0;
  std::array<Nodes, kClasses> nodes_ = {Nodes(setup_.nodes), Nodes(setup_.nodes)};
  std::vector<std::size_t> pending_;  // by age
  std::vector<Place> places_;
  using EndEvent = std::pair<double, std::size_t>;
  std::priority_queue<EndEvent, std::vector<EndEvent>, std::greater<>> ends_;
  std::array<Shadows, kClasses> shadows_;
  order::RunTimes times_;
  std::vector<std::size_t> group_;                // of a job: same queue and number of devices
  std::vector<std::optional<Millis>> predicted_;  // by group
  std::optional<order::Promise> promise_;
  std::optional<TimePoint> promised_;  // the first promise to the present head
};

}  // namespace

LineResult SimulateLine(const std::vector<TraceJob>& jobs, const LineSetup& setup) {
  return Line(jobs, setup).Run();
}

}  // namespace bimetal::bench
