#include "core/queue/order/backfill.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>

namespace bimetal::core::queue::order {
namespace {

constexpr TimePoint At(std::int64_t seconds) { return TimePoint{seconds * 1000}; }

NodeOutlook NodeOf(std::int64_t free, std::vector<Occupied> occupied = {}) {
  return NodeOutlook{.free = free, .occupied = std::move(occupied)};
}

TEST(ReserveTest, StartsNowWhereItFits) {
  const auto got = Reserve({NodeOf(3), NodeOf(1)}, {.pods = 1, .devices_per_pod = 2}, At(5));
  ASSERT_TRUE(got);
  EXPECT_EQ(got->start, At(5));
  EXPECT_EQ(got->spare, (std::map<std::size_t, std::int64_t>{{0, 1}}));
}

TEST(ReserveTest, FreeDevicesOnDifferentNodesAreNoRoomForOnePod) {
  const auto got = Reserve({NodeOf(1, {{1, At(20)}}), NodeOf(1, {{1, At(9)}})},
                           {.pods = 1, .devices_per_pod = 2}, At(0));
  ASSERT_TRUE(got);
  EXPECT_EQ(got->start, At(9));
  EXPECT_EQ(got->spare, (std::map<std::size_t, std::int64_t>{{1, 0}}));
}

TEST(ReserveTest, WaitsForAsManyEndsAsTheGangNeeds) {
  const auto got = Reserve({NodeOf(0, {{4, At(10)}, {4, At(30)}}), NodeOf(0, {{8, At(20)}})},
                           {.pods = 3, .devices_per_pod = 4}, At(0));
  ASSERT_TRUE(got);
  EXPECT_EQ(got->start, At(20));
}

TEST(ReserveTest, TakesTheNodesThatAreLeftFullest) {
  const auto got = Reserve({NodeOf(8), NodeOf(2)}, {.pods = 1, .devices_per_pod = 2}, At(0));
  ASSERT_TRUE(got);
  EXPECT_EQ(got->spare, (std::map<std::size_t, std::int64_t>{{1, 0}}));
}

TEST(ReserveTest, AnOverdueEndCountsAsNow) {
  const auto got = Reserve({NodeOf(0, {{1, At(1)}})}, {.pods = 1, .devices_per_pod = 1}, At(5));
  ASSERT_TRUE(got);
  EXPECT_EQ(got->start, At(5));
}

TEST(ReserveTest, PromisesNothingWhereAnEndIsUnknownOrTheClassIsTooSmall) {
  const GangShape two{.pods = 1, .devices_per_pod = 2};
  EXPECT_FALSE(Reserve({NodeOf(1, {{1, std::nullopt}})}, two, At(0)));
  EXPECT_FALSE(Reserve({NodeOf(1), NodeOf(1)}, two, At(0)));
  EXPECT_FALSE(Reserve({}, two, At(0)));
  EXPECT_FALSE(Reserve({NodeOf(1)}, {.pods = 0, .devices_per_pod = 1}, At(0)));
  EXPECT_FALSE(Reserve({NodeOf(1)}, {.pods = 1, .devices_per_pod = 0}, At(0)));
}

TEST(LeavesWholeTest, AJobThatEndsInTimeOrTakesSpareDevicesMayOvertake) {
  const Reservation promised{.start = At(10), .spare = {{0, 1}}};
  EXPECT_TRUE(LeavesWhole(promised, {{0, 5}}, At(10)));
  EXPECT_FALSE(LeavesWhole(promised, {{0, 2}}, At(11)));
  EXPECT_TRUE(LeavesWhole(promised, {{0, 1}}, At(11)));
  EXPECT_FALSE(LeavesWhole(promised, {{0, 1}, {0, 1}}, std::nullopt)) << "two pods on one node";
  EXPECT_TRUE(LeavesWhole(promised, {{7, 8}}, std::nullopt)) << "not a node of the head";
}

TEST(LeavesWholeTest, SpareDevicesAreGivenOnce) {
  Reservation promised{.start = At(10), .spare = {{0, 1}}};
  Start(&promised, {{0, 1}}, std::nullopt);
  EXPECT_FALSE(LeavesWhole(promised, {{0, 1}}, std::nullopt));
  EXPECT_TRUE(LeavesWhole(promised, {{0, 1}}, At(10)));
}

TEST(ReserveEarliestFinishTest, ReservesOnTheVendorOfTheEarliestFinish) {
  const std::vector<NodeOutlook> soon_but_slow = {NodeOf(0, {{1, At(10)}})};
  const std::vector<NodeOutlook> later_but_fast = {NodeOf(0, {{1, At(20)}})};
  const GangShape one;
  const std::vector<Option> options = {{&soon_but_slow, one, Seconds(100)},
                                       {&later_but_fast, one, Seconds(50)}};
  EXPECT_EQ(ReserveEarliestFinish(options, At(0), std::nullopt)->option, 1U);
  EXPECT_EQ(ReserveEarliestFinish(options, At(0), At(15))->option, 0U)
      << "a promise is kept, even where another way would end sooner";
  EXPECT_EQ(ReserveEarliestFinish(options, At(0), At(5))->option, 1U) << "nothing can keep it";
}

TEST(ReserveEarliestFinishTest, WithoutRunTimesTheEarliestStartCounts) {
  const std::vector<NodeOutlook> a = {NodeOf(0, {{1, At(20)}})}, b = {NodeOf(0, {{1, At(10)}})};
  const auto got =
      ReserveEarliestFinish({{&a, {}, Seconds(1)}, {&b, {}, std::nullopt}}, At(0), std::nullopt);
  ASSERT_TRUE(got);
  EXPECT_EQ(got->option, 1U);
  EXPECT_EQ(got->reservation.start, At(10));
  EXPECT_FALSE(ReserveEarliestFinish({}, At(0), std::nullopt));
}

// A little simulation: heads in order of arrival, everybody else overtakes by the rule. With exact
// run times no head may start later than it was first promised, on two classes.
class Line {
 public:
  explicit Line(std::uint64_t seed) : random_(seed) {
    for (auto& nodes : classes_) {
      nodes.resize(1 + random_() % 3);
      for (NodeOutlook& node : nodes) node.free = 4;
    }
    for (std::size_t i = 0; i < 40; ++i) {
      const auto up = [&](std::int64_t n) {
        return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(n));
      };
      Job job;
      job.gang = {.pods = 1 + up(2), .devices_per_pod = 1 + up(4)};
      for (Millis& run : job.run) run = Seconds(1 + up(100));
      job.arrival = At(up(300));
      jobs_.push_back(job);
    }
    std::sort(jobs_.begin(), jobs_.end(),
              [](const Job& a, const Job& b) { return a.arrival < b.arrival; });
  }

  int late = 0, started = 0, overtook = 0;

  void Run() {
    for (int t = 0; t < 10'000 && started < 40; ++t) Tick(At(t));
  }

 private:
  struct Job {
    GangShape gang;
    Millis run[2];
    TimePoint arrival;
    bool done = false;
    std::optional<TimePoint> promised;
  };

  // Best fit, devices of one pod on one node; empty: it does not fit.
  static std::vector<Taking> Place(const std::vector<NodeOutlook>& nodes, const GangShape& gang) {
    std::vector<std::pair<std::int64_t, std::size_t>> order;
    for (std::size_t i = 0; i < nodes.size(); ++i) order.emplace_back(nodes[i].free, i);
    std::sort(order.begin(), order.end());
    std::vector<Taking> taking;
    std::int64_t left = gang.pods;
    for (const auto& [free, node] : order) {
      const std::int64_t here = std::min(left, free / gang.devices_per_pod);
      if (here > 0) taking.push_back({node, here * gang.devices_per_pod});
      left -= here;
    }
    return left == 0 ? taking : std::vector<Taking>{};
  }

  void Take(std::size_t which, const std::vector<Taking>& taking, TimePoint end, Job* job) {
    for (const Taking& one : taking) {
      classes_[which][one.node].free -= one.devices;
      classes_[which][one.node].occupied.push_back({one.devices, end});
      ASSERT_GE(classes_[which][one.node].free, 0);
    }
    job->done = true;
    ++started;
  }

  void Tick(TimePoint now) {
    for (auto& nodes : classes_) {
      for (NodeOutlook& node : nodes) {
        for (const Occupied& held : node.occupied) {
          if (*held.until <= now) node.free += held.devices;
        }
        std::erase_if(node.occupied, [&](const Occupied& held) { return *held.until <= now; });
      }
    }
    std::optional<Promise> promise;
    for (Job& job : jobs_) {
      if (job.done || job.arrival > now) continue;
      if (!promise) {
        promise = StartOrPromise(&job, now);
      } else {
        Overtake(&job, now, &*promise);
      }
    }
  }

  std::optional<Promise> StartOrPromise(Job* job, TimePoint now) {
    const auto got = ReserveEarliestFinish(
        {{&classes_[0], job->gang, job->run[0]}, {&classes_[1], job->gang, job->run[1]}}, now,
        job->promised);
    if (!got) {
      job->done = true;  // it will never fit
      ++started;
      return std::nullopt;
    }
    if (!job->promised) job->promised = got->reservation.start;
    if (got->reservation.start > *job->promised) ++late;
    if (got->reservation.start > now) return got;
    Take(got->option, Place(classes_[got->option], job->gang), now + job->run[got->option], job);
    return std::nullopt;
  }

  void Overtake(Job* job, TimePoint now, Promise* promise) {
    for (std::size_t which = 0; which < 2; ++which) {
      const auto taking = Place(classes_[which], job->gang);
      if (taking.empty()) continue;
      const TimePoint end = now + job->run[which];
      if (which == promise->option) {
        if (!LeavesWhole(promise->reservation, taking, end)) continue;
        Start(&promise->reservation, taking, end);
      }
      ++overtook;
      return Take(which, taking, end, job);
    }
  }

  std::mt19937_64 random_;
  std::vector<NodeOutlook> classes_[2];
  std::vector<Job> jobs_;
};

TEST(BackfillProperty, NoHeadStartsLaterThanFirstPromisedWithExactRunTimes) {
  int overtook = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    Line line(seed);
    line.Run();
    EXPECT_EQ(line.late, 0) << "seed " << seed;
    EXPECT_EQ(line.started, 40) << "seed " << seed;
    overtook += line.overtook;
  }
  EXPECT_GT(overtook, 100) << "the rule must have been put to the test";
}

TEST(BackfillProperty, TheOrderOfWhatIsHeldDoesNotMatter) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    std::mt19937_64 random(seed);
    std::vector<NodeOutlook> nodes(3);
    for (NodeOutlook& node : nodes) {
      for (int i = 0; i < 4; ++i) {
        node.occupied.push_back({1 + static_cast<std::int64_t>(random() % 2),
                                 At(static_cast<std::int64_t>(random() % 50))});
      }
    }
    const GangShape gang{.pods = 2, .devices_per_pod = 3};
    const auto one = Reserve(nodes, gang, At(0));
    for (NodeOutlook& node : nodes) std::reverse(node.occupied.begin(), node.occupied.end());
    const auto other = Reserve(nodes, gang, At(0));
    ASSERT_EQ(one.has_value(), other.has_value()) << "seed " << seed;
    if (!one) continue;
    EXPECT_EQ(one->start, other->start) << "seed " << seed;
    EXPECT_EQ(one->spare, other->spare) << "seed " << seed;
  }
}

}  // namespace
}  // namespace bimetal::core::queue::order
