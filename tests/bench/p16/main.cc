// p16: a day of random trees of queues with every policy. Counts evictions that undo each other: a
// job that was evicted for another has that one evicted for itself while nothing came from outside
// in between. There must be none.
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>

#include "tests/unit/core/queue/simulated.h"

namespace bimetal::core::queue {
namespace {

using testing::Random;
using testing::Simulated;

constexpr Millis kDay = Minutes(24 * 60);
constexpr Millis kGrace = Seconds(30);
constexpr int kMostSteps = 200;  // cycles without an event from outside

struct Tally {
  std::int64_t started = 0, evictions = 0, undone = 0, undone_later = 0, endless = 0, cycles = 0;
};

// One tree for a day.
class Day {
 public:
  Day(std::uint64_t seed, Tally* tally)
      : random_(seed + 1), tally_(*tally), s_(testing::RandomSimulated(seed)) {
    shapes_ = s_.jobs;  // what arrives is like these
    s_.jobs.clear();
    s_.pending.clear();
    end_ = s_.now + kDay;
  }

  void Run() {
    std::map<TimePoint, int> arrivals;
    for (TimePoint at = s_.now; at < end_; at = at + Minutes(2 + random_.Up(30))) ++arrivals[at];
    auto arrival = arrivals.begin();
    while (arrival != arrivals.end() || !ends_.empty() || !leaving_.empty()) {
      TimePoint next = end_ + kDay;
      if (arrival != arrivals.end()) next = arrival->first;
      if (!ends_.empty()) next = std::min(next, ends_.begin()->first);
      if (!leaving_.empty()) next = std::min(next, leaving_.begin()->first);
      if (next >= end_) return;
      s_.now = next;
      if (arrival != arrivals.end() && arrival->first == next) {
        Arrive();
        ++arrival;
      }
      CompleteUntil(next);
      LeaveUntil(next);
      Decide();
    }
  }

 private:
  void FromOutside() {
    evicted_for_.clear();
    steps_ = 0;
  }

  void Arrive() {
    FromOutside();
    Job job = shapes_[static_cast<std::size_t>(random_.Up(static_cast<int>(shapes_.size())))];
    job.uid = Uid{"j" + std::to_string(s_.jobs.size())};
    job.name = job.uid.value;
    job.created = s_.now;
    if (random_.OneIn(2)) job.max_duration = Minutes(10 * (1 + random_.Up(12)));
    s_.jobs.push_back(job);
    s_.pending.insert(job.uid);
  }

  void CompleteUntil(TimePoint now) {
    while (!ends_.empty() && ends_.begin()->first <= now) {
      const Uid job = ends_.begin()->second;
      ends_.erase(ends_.begin());
      const auto running = s_.running.find(job);
      if (running == s_.running.end() || running->second.ending) continue;
      if (started_at_[job] != running->second.started) continue;
      s_.End(job);
      FromOutside();
    }
  }

  void LeaveUntil(TimePoint now) {
    while (!leaving_.empty() && leaving_.begin()->first <= now) {
      const Uid job = leaving_.begin()->second;
      leaving_.erase(leaving_.begin());
      s_.End(job);
      s_.pending.insert(job);
    }
  }

  void Decide() {
    ++tally_.cycles;
    if (++steps_ > kMostSteps) ++tally_.endless;
    const Plan plan = queue::Decide(s_.Look());
    for (const Eviction& eviction : plan.evictions) {
      ++tally_.evictions;
      const auto key = std::pair(eviction.for_job, eviction.job);
      tally_.undone += evicted_for_.contains(key) ? 1 : 0;
      tally_.undone_later += ever_.contains(key) ? 1 : 0;
      evicted_for_.insert({eviction.job, eviction.for_job});
      ever_.insert({eviction.job, eviction.for_job});
      leaving_.emplace(s_.now + kGrace, eviction.job);
    }
    s_.CarryOut(plan, true);
    for (const Assignment& a : plan.assignments) {
      ++tally_.started;
      started_at_[a.job] = s_.now;
      Millis run = Minutes(5 + random_.Up(115));
      const Job& job = s_.JobOf(a.job);
      if (job.max_duration) run = std::min(run, *job.max_duration);
      ends_.emplace(s_.now + run, a.job);
    }
  }

  Random random_;
  Tally& tally_;
  Simulated s_;
  std::vector<Job> shapes_;
  TimePoint end_;
  std::multimap<TimePoint, Uid> ends_, leaving_;
  std::map<Uid, TimePoint> started_at_;
  std::set<std::pair<Uid, Uid>> evicted_for_, ever_;
  int steps_ = 0;
};

int Main(int argc, char** argv) {
  std::uint64_t first = 0, count = 200;
  if (argc == 3) {
    first = std::strtoull(argv[1], nullptr, 10);
    count = std::strtoull(argv[2], nullptr, 10);
  } else if (argc != 1) {
    std::fprintf(stderr, "usage: bimetal-p16 [FIRST-SEED COUNT]\n");
    return 64;
  }
  Tally tally;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    Day(seed, &tally).Run();
    if ((seed - first) % 20 == 19) {
      std::fprintf(stderr, "p16: %llu of %llu trees\n",
                   static_cast<unsigned long long>(seed - first + 1),
                   static_cast<unsigned long long>(count));
    }
  }
  std::printf("%llu trees, 24 h each: %lld cycles, %lld starts, %lld evictions (%.3f a start)\n",
              static_cast<unsigned long long>(count), static_cast<long long>(tally.cycles),
              static_cast<long long>(tally.started), static_cast<long long>(tally.evictions),
              static_cast<double>(tally.evictions) /
                  static_cast<double>(std::max<std::int64_t>(1, tally.started)));
  std::printf("of them undone after something had come from outside: %lld; endless rounds: %lld\n",
              static_cast<long long>(tally.undone_later), static_cast<long long>(tally.endless));
  std::printf("p16 %lld cycles bar 0\n", static_cast<long long>(tally.undone));
  const bool good = tally.undone == 0 && tally.endless == 0 && tally.evictions > 0;
  return good ? 0 : 1;
}

}  // namespace
}  // namespace bimetal::core::queue

int main(int argc, char** argv) { return bimetal::core::queue::Main(argc, argv); }
