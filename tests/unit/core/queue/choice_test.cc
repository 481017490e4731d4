#include "core/queue/choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/core/builders.h"
#include "tests/unit/core/queue/plans.h"

namespace bimetal::core::queue {
namespace {

using testing::AddRunning;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::JobBuilder;
using testing::NodeBuilder;
using testing::PoolOf;
using testing::QueueNamed;
using testing::RefusalOf;
using testing::RunningJob;
using testing::Started;

constexpr Vendor kN = Vendor::kNvidia, kA = Vendor::kAmd;
constexpr std::int64_t kUnit = 1'000'000'000;  // one of the currency

// Eight devices of each vendor; an hour costs 3 on NVIDIA and 2 on AMD.
Snapshot Market() {
  Snapshot s;
  s.now = TimePoint{1'000'000};
  s.nodes = {NodeBuilder("amd-1").Gpus(kA, 8, "", "MI300X"),
             NodeBuilder("nv-1").Gpus(kN, 8, "", "H100")};
  s.pools = {PoolOf(kA), PoolOf(kN)};
  s.queues = {QueueNamed("default")};
  s.prices = {{PoolName{"amd"}, {{kA, "MI300X", 2 * kUnit}}},
              {PoolName{"nvidia"}, {{kN, "H100", 3 * kUnit}}}};
  return s;
}

Job Choosing(SelectionPolicy policy) {
  Job job = JobBuilder("a").On(kN, 2).On(kA, 2).Pods(2);
  job.selection = policy;
  return job;
}

void Fill(Snapshot* s, Vendor vendor, const std::string& node,
          std::optional<Millis> ends_in = std::nullopt) {
  auto running = RunningJob("busy-" + node, "default", vendor, 8, {node});
  running.started = s->now;
  if (ends_in) running.expected_end = s->now + *ends_in;
  AddRunning(s, running);
}

std::string VariantOf(const Snapshot& s) {
  const Plan plan = Decide(s);
  if (plan.assignments.empty()) return "none";
  return s.pending[0]->variants[plan.assignments[0].variant].name;
}

TEST(ChoiceTest, BestValueTakesTheLeastCostForTheWorkAndElseTheNext) {
  Snapshot s = Market();
  s.pending = {Choosing(SelectionPolicy::kBestValue)};
  EXPECT_EQ(VariantOf(s), "rocm");
  // Twice as fast at one and a half times the price.
  s.pending[0].Edit().variants[0].relative_throughput_milli = 2000;
  s.pending[0].Edit().variants[1].relative_throughput_milli = 1000;
  EXPECT_EQ(VariantOf(s), "cuda");
  Fill(&s, kN, "nv-1");
  EXPECT_EQ(VariantOf(s), "rocm");
}

TEST(ChoiceTest, LowestCostWaitsForTheCheaperVariantAndSaysSo) {
  Snapshot s = Market();
  s.pending = {Choosing(SelectionPolicy::kLowestCost)};
  EXPECT_EQ(VariantOf(s), "rocm");
  Fill(&s, kA, "amd-1");
  const Plan plan = Decide(s);
  EXPECT_THAT(plan.assignments, IsEmpty());
  const Refusal& refusal = RefusalOf(plan, "a");
  EXPECT_EQ(refusal.reason, "WaitingForCheaperVariant");
  EXPECT_EQ(refusal.blockers[0].reason, "WaitingForCheaperVariant");
  EXPECT_THAT(refusal.blockers[0].unblocked_by, HasSubstr("variant rocm"));
  EXPECT_EQ(refusal.blockers[1].reason, "WaitingForDevices");
  EXPECT_FALSE(refusal.never);
}

TEST(ChoiceTest, LowestCostDoesNotWaitForAVariantThatCanNeverStart) {
  Snapshot s = Market();
  s.pending = {Choosing(SelectionPolicy::kLowestCost)};
  s.pending[0].Edit().variants[1].devices_per_pod = 9;
  s.pending[0].Edit().variants[1].relative_throughput_milli = 9000;
  s.pending[0].Edit().variants[0].relative_throughput_milli = 1000;
  EXPECT_EQ(VariantOf(s), "cuda");
}

TEST(ChoiceTest, WhatCostsMoreThanTheJobPaysIsNotTakenInAnyOrder) {
  Snapshot s = Market();
  s.pending = {Choosing(SelectionPolicy::kInOrder)};
  s.pending[0].Edit().variants[0].max_nano_per_hour = 3 * kUnit - 1;
  EXPECT_EQ(VariantOf(s), "rocm");
  s.pending[0].Edit().variants[1].max_nano_per_hour = kUnit;
  const Plan plan = Decide(s);
  const Refusal& refusal = RefusalOf(plan, "a");
  EXPECT_EQ(refusal.reason, "WaitingForPrice");
  EXPECT_THAT(refusal.message, HasSubstr("costs at most 2.999999999 an hour (maxPricePerHour); the "
                                         "cheapest costs 3.00"));
  s.prices.clear();
  EXPECT_THAT(RefusalOf(Decide(s), "a").message,
              HasSubstr("no PriceBook of its pools has a price"));
}

TEST(ChoiceTest, OnlyTheModelsThatAreCheapEnoughAreTaken) {
  Snapshot s = Market();
  s.nodes.push_back(NodeBuilder("nv-2").Gpus(kN, 8, "", "A100"));
  s.prices[1].prices.push_back({kN, "A100", kUnit});
  s.pending = {JobBuilder("a").On(kN, 8).Pods(1)};
  s.pending[0].Edit().variants[0].max_nano_per_hour = kUnit;
  const Plan plan = Decide(s);
  ASSERT_EQ(plan.assignments.size(), 1U);
  EXPECT_EQ(plan.assignments[0].pods[0].node, NodeName{"nv-2"});
}

TEST(ChoiceTest, TheSameModelMayBeCheapEnoughInOnePoolOnly) {
  Snapshot s = Market();
  s.nodes.push_back(NodeBuilder("nv-2").Gpus(kN, 8, "owned", "H100"));
  s.pools.push_back(PoolOf(kN, "owned"));
  s.prices.push_back({PoolName{"owned"}, {{kN, "H100", kUnit}}});
  for (int i = 0; i < 2; ++i) {
    Job job = JobBuilder("j" + std::to_string(i)).On(kN, 8).Pods(1).Created(i);
    job.variants[0].max_nano_per_hour = 2 * kUnit;
    s.pending.push_back(job);
  }
  const Plan plan = Decide(s);
  EXPECT_THAT(Started(plan), ElementsAre("j0"));
  EXPECT_EQ(plan.assignments[0].pool, PoolName{"owned"});
  EXPECT_EQ(RefusalOf(plan, "j1").reason, "WaitingForDevices");
}

TEST(ChoiceTest, EarliestStartWaitsOnlyWhereThatEndsTheJobSooner) {
  Snapshot s = Market();
  s.pending = {Choosing(SelectionPolicy::kEarliestStart)};
  Job& job = s.pending[0].Edit();
  job.variants[0].relative_throughput_milli = 4000;
  job.variants[1].relative_throughput_milli = 1000;
  EXPECT_EQ(VariantOf(s), "cuda");
  Fill(&s, kN, "nv-1", Minutes(60));
  EXPECT_EQ(VariantOf(s), "rocm") << "its own run time is unknown: nothing is guessed";
  job.estimated_duration = Minutes(60);
  EXPECT_EQ(VariantOf(s), "rocm") << "60 minutes now beat 60 + 15";
  job.estimated_duration = Minutes(120);
  const Plan plan = Decide(s);
  EXPECT_THAT(plan.assignments, IsEmpty()) << "60 + 30 minutes beat 120 now";
  EXPECT_EQ(RefusalOf(plan, "a").reason, "WaitingForFasterVariant");
}

Job Elastic(std::int64_t least, std::int64_t most) {
  Job job = JobBuilder("a").On(kN, 2).On(kA, 2).Pods(most);
  job.roles[0].min_replicas = least;
  return job;
}

TEST(ElasticStartTest, StartsWithAsManyPodsAsFit) {
  Snapshot s = Market();
  s.pending = {Elastic(2, 9)};
  const Plan plan = Decide(s);
  ASSERT_EQ(plan.assignments.size(), 1U);
  EXPECT_EQ(plan.assignments[0].pods.size(), 4U);
  EXPECT_EQ(plan.assignments[0].devices, 8);
}

TEST(ElasticStartTest, AWholeGangOnALaterVariantComesBeforeASmallerOne) {
  Snapshot s = Market();
  AddRunning(&s, RunningJob("busy", "default", kN, 2, {"nv-1"}));
  s.pending = {Elastic(1, 4)};
  EXPECT_EQ(VariantOf(s), "rocm");
}

TEST(ElasticStartTest, BelowItsMinimumItWaitsAndIsToldTheMinimumsNeed) {
  Snapshot s = Market();
  AddRunning(&s, RunningJob("b1", "default", kN, 6, {"nv-1"}));
  AddRunning(&s, RunningJob("b2", "default", kA, 6, {"amd-1"}));
  s.pending = {Elastic(2, 40)};
  const Plan plan = Decide(s);
  EXPECT_THAT(plan.assignments, IsEmpty());
  const Refusal& refusal = RefusalOf(plan, "a");
  EXPECT_EQ(refusal.reason, "WaitingForDevices");
  EXPECT_EQ(refusal.blockers[0].need, 4);
  EXPECT_FALSE(refusal.never) << "its minimum fits the fleet, whatever all its pods would need";
}

TEST(ElasticStartTest, AQuotaMakesItSmallerToo) {
  Snapshot s = Market();
  s.queues[0].quotas = {testing::Quota("nvidia", 6), testing::Quota("amd", 4)};
  s.pending = {Elastic(1, 4)};
  const Plan plan = Decide(s);
  ASSERT_EQ(plan.assignments.size(), 1U);
  EXPECT_EQ(plan.assignments[0].devices, 6);
}

// An operator that has just started has not heard all nodes yet.
TEST(SettlingTest, NoJobFallsBackFromAVariantWhoseNodesAreNotHeardYet) {
  Snapshot s = Market();
  s.nodes.pop_back();  // nv-1
  s.settling = {kN};
  s.pending = {Choosing(SelectionPolicy::kInOrder)};
  Plan plan = Decide(s);
  EXPECT_THAT(plan.assignments, IsEmpty());
  EXPECT_THAT(plan.refusals, IsEmpty()) << "what it was told last stands";
  s.settling.clear();
  EXPECT_EQ(VariantOf(s), "rocm");
}

TEST(SettlingTest, WhatIsHeardIsUsedAtOnce) {
  Snapshot s = Market();
  s.settling = {kN};
  s.pending = {Choosing(SelectionPolicy::kInOrder)};
  EXPECT_EQ(VariantOf(s), "cuda");
}

TEST(SettlingTest, NobodyIsEvictedAndNoGangStartsSmaller) {
  Snapshot s = Market();
  s.queues[0].preemption.within_queue = WithinQueue::kLowerPriority;
  auto low = RunningJob("low", "default", kA, 8, {"amd-1"});
  low.priority = -1;
  AddRunning(&s, low);
  s.pending = {JobBuilder("high").On(kA, 8).Pods(1).Priority(9)};
  EXPECT_EQ(Decide(s).evictions.size(), 1U);
  s.settling = {kN};
  EXPECT_THAT(Decide(s).evictions, IsEmpty());
  s.pending = {Elastic(1, 9)};
  EXPECT_THAT(Decide(s).assignments, IsEmpty());
}

TEST(SettlingTest, AStrictHeadKeepsItsPlaceWhileItsNodesAreNotHeard) {
  Snapshot s = Market();
  s.queues[0].order = QueueOrder::kStrict;
  s.settling = {kN};
  s.pending = {JobBuilder("head").On(kN, 8).Pods(2).Created(1),
               JobBuilder("next").On(kN, 1).Pods(1).Created(2)};
  EXPECT_THAT(Decide(s).assignments, IsEmpty());
}

}  // namespace
}  // namespace bimetal::core::queue
