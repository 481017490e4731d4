#include "core/cost/unit.h"

#include <limits>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace bimetal::core::cost {
namespace {

constexpr std::int64_t kUnit = 1'000'000'000;
constexpr auto kMax = std::numeric_limits<std::int64_t>::max();

UnitReading Reading(std::int64_t at, std::int64_t value, std::string replica = "r",
                    std::string engine = "0") {
  return {std::move(replica), std::move(engine), TimePoint{at}, value};
}

TEST(CountTest, AProgramThatBeginsAgainCountsWhole) {
  UnitCounts counts;
  EXPECT_EQ(Count(counts, Reading(1, 100), true), 100);
  EXPECT_EQ(Count(counts, Reading(2, 500), true), 400);
  EXPECT_EQ(Count(counts, Reading(3, 20), true), 20);
  EXPECT_EQ(Count(counts, Reading(4, 20), true), 0);
  EXPECT_EQ(counts.total, 520);
  EXPECT_EQ(counts.resets, 1);
}

// Ten replicas make 100 each; nine are replaced in between. The sum of the counters goes from 0 to
// 1000 to 100 to ...: sum first and the restarts swallow the work.
TEST(CountTest, EachReplicaIsCorrectedByItselfBeforeTheSum) {
  UnitCounts counts;
  for (int replica = 0; replica < 10; ++replica) {
    const std::string name = "r" + std::to_string(replica);
    Count(counts, Reading(0, 0, name), true);
    Count(counts, Reading(1, 50, name), true);
    Count(counts, Reading(2, 0, name), true);
    Count(counts, Reading(3, 50, name), true);
  }
  EXPECT_EQ(counts.total, 1000);
  EXPECT_EQ(counts.resets, 10);
}

TEST(CountTest, EnginesOfOneReplicaAreCountersOfTheirOwn) {
  UnitCounts counts;
  Count(counts, Reading(1, 1000, "r", "0"), true);
  Count(counts, Reading(1, 10, "r", "1"), true);
  Count(counts, Reading(2, 1001, "r", "0"), true);
  Count(counts, Reading(2, 11, "r", "1"), true);
  EXPECT_EQ(counts.total, 1012);
  EXPECT_EQ(counts.resets, 0);
}

TEST(CountTest, WhatWasMadeBeforeWeLookedDoesNotCount) {
  UnitCounts counts;
  EXPECT_EQ(Count(counts, Reading(1, 1'000'000), false), 0);
  EXPECT_EQ(Count(counts, Reading(2, 1'000'007), false), 7);
}

TEST(CountTest, ReadingsTwiceLateOrNegativeChangeNothing) {
  UnitCounts counts;
  Count(counts, Reading(5, 100), true);
  EXPECT_EQ(Count(counts, Reading(5, 100), true), 0);
  EXPECT_EQ(Count(counts, Reading(4, 90), true), 0);
  EXPECT_EQ(Count(counts, Reading(6, -1), true), 0);
  EXPECT_EQ(Count(counts, Reading(7, 101), true), 1);
  EXPECT_EQ(counts.resets, 0);
}

TEST(ActivePartTest, IsThePartWithWorkInFlightAndWaitingIsTheRest) {
  const AllocationCost cost{{12 * kUnit}};
  const ActiveCost active = ActivePart(cost, Seconds(900), Seconds(3600));
  EXPECT_EQ(active.v.v, 3 * kUnit);
  EXPECT_EQ(PriceOfWaiting(cost, active).v, 9 * kUnit);
  EXPECT_LT(active.v, cost.v);
}

TEST(ActivePartTest, IsNeverMoreThanTheBill) {
  EXPECT_EQ(ActivePart({{100}}, Seconds(9), Seconds(3)).v.v, 100);
  EXPECT_EQ(ActivePart({{100}}, Seconds(-9), Seconds(3)).v.v, 0);
  EXPECT_EQ(ActivePart({{100}}, Seconds(9), Seconds(0)).v.v, 0);
}

TEST(CostPerTest, IsAbsentWithoutUnitsAndRoundedOnce) {
  EXPECT_FALSE(CostPer({kUnit}, 0));
  EXPECT_FALSE(CostPer({kUnit}, -1));
  EXPECT_EQ(CostPer({3 * kUnit}, 2'000'000)->v, kUnit + kUnit / 2);
  EXPECT_EQ(CostPer({5}, 2, 1)->v, 2);
  EXPECT_EQ(CostPer({0}, 2, 1)->v, 0);
  EXPECT_EQ(CostPer({kMax}, 1, kMax)->v, kMax);
}

Row RunningRow(std::int64_t begin, std::int64_t end, Phase phase = Phase::kRunning,
               std::int64_t attempt = 1) {
  Row row;
  row.state = DeviceState::kAllocated;
  row.job = {"j"};
  row.attempt = attempt;
  row.phase = phase;
  row.begin = TimePoint{begin};
  row.end = TimePoint{end};
  row.amounts.device_ms = end - begin;
  row.amounts.hardware = {(end - begin) * 10};
  return row;
}

TEST(LostWorkTest, IsWhatRanSinceTheLastCheckpoint) {
  Row other = RunningRow(0, 1000);
  other.job = {"k"};
  const std::vector<Row> rows = {RunningRow(0, 100, Phase::kStartup),
                                 RunningRow(100, 500),
                                 RunningRow(500, 900),
                                 RunningRow(900, 950, Phase::kTeardown),
                                 RunningRow(0, 900, Phase::kRunning, 2),
                                 other};
  EXPECT_EQ(LostWork(rows, {"j"}, 1, TimePoint{400}).device_ms, 500);
  EXPECT_EQ(LostWork(rows, {"j"}, 1, TimePoint{400}).hardware.v, 5000);
  EXPECT_EQ(LostWork(rows, {"j"}, 1, std::nullopt).device_ms, 800);
  EXPECT_EQ(LostWork(rows, {"j"}, 1, TimePoint{900}).device_ms, 0);
  EXPECT_EQ(LostWork(rows, {"x"}, 1, std::nullopt), Amounts{});
}

TEST(WorkloadLabourCostTest, IsUnitsOfProductionPlusUpkeep) {
  const WorkloadLabour labour{"chat", Vendor::kAmd, {24'000 * kUnit}, 1'000'000, {300 * kUnit}};
  EXPECT_EQ(WorkloadLabourCost(labour, 1000, Millis{0}).v, 24 * kUnit);
  EXPECT_EQ(WorkloadLabourCost(labour, 0, Millis{kMsPerMonth / 2}).v, 150 * kUnit);
}

// 200 h x 120 against 0.18 saved an hour: 133,334 hours.
TEST(BreakEvenUnitsTest, IsPortingOverWhatEachUnitSaves) {
  EXPECT_EQ(BreakEvenUnits({24'000 * kUnit}, {2'500'000'000}, {2'320'000'000}), 133'334);
  EXPECT_EQ(BreakEvenUnits({18 * kUnit}, {2'500'000'000}, {2'320'000'000}), 100);
  EXPECT_EQ(BreakEvenUnits({kUnit}, {3}, {1}, 1'000'000), 500'000'000'000'000);
}

TEST(BreakEvenUnitsTest, IsUndefinedWhereTheChallengerSavesNothing) {
  EXPECT_FALSE(BreakEvenUnits({kUnit}, {5}, {5}));
  EXPECT_FALSE(BreakEvenUnits({kUnit}, {5}, {6}));
  EXPECT_FALSE(BreakEvenUnits({kMax}, {1}, {0}, 1000));
  EXPECT_EQ(BreakEvenUnits({0}, {6}, {5}), 0);
}

TEST(CountProperty, TotalsAreWhatEachLifeOfEachReplicaMade) {
  std::mt19937_64 random(6);
  for (int round = 0; round < 500; ++round) {
    UnitCounts counts;
    std::int64_t made = 0, at = 0;
    std::map<std::string, std::int64_t> value;
    for (int i = 0; i < 100; ++i) {
      const std::string replica = std::to_string(random() % 5);
      std::int64_t& v = value[replica];
      if (random() % 10 == 0) {
        v = 0;  // began again, and was read before it made anything
        Count(counts, Reading(++at, v, replica), true);
      }
      const auto more = static_cast<std::int64_t>(random() % 1000);
      v += more;
      made += more;
      Count(counts, Reading(++at, v, replica), true);
    }
    ASSERT_EQ(counts.total, made) << round;
  }
}

}  // namespace
}  // namespace bimetal::core::cost
