#include "core/queue/order/rounds.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <string>

#include "core/queue/order/market.h"

namespace bimetal::core::queue::order {
namespace {

using Where = std::vector<std::optional<std::size_t>>;

RoundJob JobOf(const std::string& id, std::int64_t devices, std::vector<std::int64_t> rate,
               Millis work) {
  return RoundJob{.id = Uid{id},
                  .devices = devices,
                  .rate = std::move(rate),
                  .work = work,
                  .attained = {},
                  .waited = {},
                  .weight = 1,
                  .running = {}};
}

const RoundPolicy kFinish{
    .objective = Objective::kMeanFinish, .length = Seconds(360), .restart = {}};

TEST(PricesTest, RiseToTheBidThatFindsNoRoom) {
  const std::vector<Bidder> bidders = {{1, {100}}, {1, {70}}, {1, {40}}};
  EXPECT_EQ(Prices(bidders, {1}), std::vector<std::int64_t>{70});
  EXPECT_EQ(Prices(bidders, {2}), std::vector<std::int64_t>{40});
  EXPECT_EQ(Prices(bidders, {3}), std::vector<std::int64_t>{0});
}

TEST(PricesTest, AreWorthsOfOneDevice) {
  EXPECT_EQ(Prices({{4, {100}}, {1, {90}}}, {4}), std::vector<std::int64_t>{25});
}

TEST(AssignTest, GivesTheFastClassToWhomItGainsMost) {
  // The first is worth more anywhere, but loses little on the slow class.
  EXPECT_EQ(Assign({{1, {100, 90}}, {1, {80, 10}}}, {1, 1}), (Where{1, 0}));
}

TEST(AssignTest, LeavesNothingFreeThatSomebodyCouldUse) {
  EXPECT_EQ(Assign({{3, {90}}, {2, {70}}, {1, {1}}}, {4}), (Where{std::nullopt, 0, 0}));
}

TEST(AssignRoundTest, TheShorterJobGoesFirstAndTheLongerWaits) {
  EXPECT_EQ(AssignRound({JobOf("a", 1, {1000}, Seconds(900)), JobOf("b", 1, {1000}, Seconds(90))},
                        {{.devices = 1, .price = 0}}, kFinish),
            (Where{std::nullopt, 0}));
}

TEST(AssignRoundTest, WhoHasWaitedManyTimesItsRunTimeStarvesNoLonger) {
  std::vector<RoundJob> jobs = {JobOf("long", 1, {1000}, Seconds(36'000)),
                                JobOf("short", 1, {1000}, Seconds(3600))};
  const std::vector<RoundClass> classes = {{.devices = 1, .price = 0}};
  jobs[0].waited = Seconds(2 * 36'000);
  EXPECT_EQ(AssignRound(jobs, classes, kFinish), (Where{std::nullopt, 0}));
  jobs[0].waited = Seconds(8 * 36'000);
  EXPECT_EQ(AssignRound(jobs, classes, kFinish), (Where{0, std::nullopt}));
}

TEST(AssignRoundTest, NoJobRunsWhereItsRateIsZero) {
  EXPECT_EQ(AssignRound({JobOf("a", 1, {0, 500}, Seconds(90)), JobOf("b", 1, {0}, Seconds(90))},
                        {{.devices = 4, .price = 0}, {.devices = 4, .price = 0}}, kFinish),
            (Where{1, std::nullopt}));
}

TEST(AssignRoundTest, StaysWhereItRunsWhenMovingGainsLessThanARestartCosts) {
  RoundPolicy policy = kFinish;
  policy.restart = Seconds(60);
  RoundJob job = JobOf("a", 1, {1000, 900}, Seconds(900));
  const std::vector<RoundClass> classes = {{.devices = 1, .price = 0}, {.devices = 1, .price = 0}};
  job.running = 1;
  EXPECT_EQ(AssignRound({job}, classes, policy), Where{1});
  job.rate[1] = 500;
  EXPECT_EQ(AssignRound({job}, classes, policy), Where{0});
}

TEST(AssignRoundTest, LowestCostTakesTheClassThatIsCheapestForTheWork) {
  RoundPolicy policy = kFinish;
  policy.objective = Objective::kLowestCost;
  const std::vector<RoundClass> classes = {{.devices = 8, .price = 400},
                                           {.devices = 8, .price = 150}};
  EXPECT_EQ(AssignRound({JobOf("half-as-fast", 1, {1000, 500}, Seconds(90)),
                         JobOf("a-third", 1, {1000, 330}, Seconds(90))},
                        classes, policy),
            (Where{1, 0}));
}

TEST(AssignRoundTest, MakespanRunsTheLongestJobWhereItEndsInTime) {
  RoundPolicy policy = kFinish;
  policy.objective = Objective::kMakespan;
  std::vector<RoundJob> jobs = {JobOf("long", 1, {1000, 500}, Seconds(36'000))};
  for (int i = 0; i < 20; ++i) {
    jobs.push_back(JobOf("short" + std::to_string(i), 1, {1000, 500}, Seconds(3600)));
  }
  const auto where =
      AssignRound(jobs, {{.devices = 1, .price = 0}, {.devices = 1, .price = 0}}, policy);
  EXPECT_EQ(where[0], 0U);
  EXPECT_EQ(std::count(where.begin(), where.end(), std::optional<std::size_t>(1)), 1);
}

TEST(AssignRoundTest, AbsurdJobsAreLeftOutAndNothingOverflows) {
  const std::int64_t huge = std::numeric_limits<std::int64_t>::max();
  std::vector<RoundJob> jobs = {
      JobOf("none", 0, {1000}, Seconds(1)),     JobOf("negative", -4, {1000}, Seconds(1)),
      JobOf("giant", huge, {1000}, Seconds(1)), JobOf("wild", 1, {huge}, Millis{-huge}),
      JobOf("eternal", 1, {1}, Millis{huge}),   JobOf("backwards", 1, {-5}, Seconds(1))};
  for (const Objective objective :
       {Objective::kMeanFinish, Objective::kMakespan, Objective::kLowestCost}) {
    RoundPolicy policy = kFinish;
    policy.objective = objective;
    EXPECT_EQ(AssignRound(jobs, {{.devices = 2, .price = huge}}, policy),
              (Where{std::nullopt, std::nullopt, std::nullopt, 0, 0, std::nullopt}));
    EXPECT_EQ(AssignRound(jobs, {{.devices = -1, .price = -1}}, policy), Where(jobs.size()));
    EXPECT_EQ(AssignRound(jobs, {}, policy), Where(jobs.size()));
  }
}

TEST(ExpectedWorkTest, IsKnownElsePredictedElseWhatWasDone) {
  EXPECT_EQ(ExpectedWork({Seconds(50), Seconds(700), Seconds(60)}), Seconds(700));
  EXPECT_EQ(ExpectedWork({Seconds(50), {}, Seconds(100)}), Seconds(50));
  EXPECT_EQ(ExpectedWork({Seconds(500), {}, Seconds(100)}), Seconds(500));
  EXPECT_EQ(ExpectedWork({Seconds(400), {}, {}}), Seconds(400));
  EXPECT_EQ(ExpectedWork({Seconds(0), {}, {}}), Seconds(30));
  EXPECT_EQ(ExpectedWork({Seconds(0), Millis{-5}, {}}), Seconds(30));
}

struct Case {
  std::vector<RoundJob> jobs;
  std::vector<RoundClass> classes;
  RoundPolicy policy;
};

Case RandomCase(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto up = [&](std::int64_t n) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n));
  };
  Case c;
  const std::int64_t classes = 1 + up(3), jobs = up(60);
  for (std::int64_t i = 0; i < classes; ++i) c.classes.push_back({up(30), up(1000)});
  for (std::int64_t i = 0; i < jobs; ++i) {
    RoundJob job = JobOf("job" + std::to_string(i), 1 + up(8), {}, Seconds(1 + up(100'000)));
    for (std::int64_t k = 0; k < classes; ++k) job.rate.push_back(up(3) == 0 ? 0 : up(3000));
    if (up(2) == 0) job.running = static_cast<std::size_t>(up(classes));
    c.jobs.push_back(std::move(job));
  }
  c.policy.objective = static_cast<Objective>(up(3));
  c.policy.restart = Seconds(up(2) * 60);
  return c;
}

TEST(AssignRoundProperty, NeverOverCapacityNeverWhereItCannotRunNeverIdleForNothing) {
  int placed = 0;
  for (std::uint64_t seed = 0; seed < 120; ++seed) {
    const Case c = RandomCase(seed);
    const auto where = AssignRound(c.jobs, c.classes, c.policy);
    std::vector<std::int64_t> free;
    for (const RoundClass& one : c.classes) free.push_back(one.devices);
    for (std::size_t i = 0; i < c.jobs.size(); ++i) {
      if (!where[i]) continue;
      ++placed;
      free[*where[i]] -= c.jobs[i].devices;
      EXPECT_GT(c.jobs[i].rate[*where[i]], 0) << "seed " << seed;
    }
    for (std::size_t k = 0; k < free.size(); ++k) {
      EXPECT_GE(free[k], 0) << "seed " << seed;
      for (std::size_t i = 0; i < c.jobs.size(); ++i) {
        if (where[i] || c.jobs[i].rate[k] == 0) continue;
        EXPECT_GT(c.jobs[i].devices, free[k]) << "seed " << seed << " job " << i << " class " << k;
      }
    }
  }
  EXPECT_GT(placed, 400);
}

TEST(AssignRoundProperty, TheOrderOfTheJobsDoesNotMatter) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Case c = RandomCase(seed);
    for (std::size_t i = 1; i < c.jobs.size(); i += 2) {  // equal but for the id
      const Uid id = c.jobs[i].id;
      c.jobs[i] = c.jobs[i - 1];
      c.jobs[i].id = id;
    }
    const auto one = AssignRound(c.jobs, c.classes, c.policy);
    std::vector<RoundJob> reversed(c.jobs.rbegin(), c.jobs.rend());
    auto other = AssignRound(reversed, c.classes, c.policy);
    std::reverse(other.begin(), other.end());
    EXPECT_EQ(one, other) << "seed " << seed;
  }
}

}  // namespace
}  // namespace bimetal::core::queue::order
