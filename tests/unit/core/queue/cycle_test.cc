#include "core/queue/cycle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/core/builders.h"
#include "tests/unit/core/queue/plans.h"

namespace bimetal::core::queue {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::JobBuilder;
using testing::NodeBuilder;
using testing::PodOn;
using testing::PoolOf;
using testing::QueueNamed;
using testing::Quota;
using testing::RefusalOf;

using testing::RunningJob;
using testing::Started;

constexpr Vendor kN = Vendor::kNvidia, kA = Vendor::kAmd;

// Two pools of `gpus` devices on one node each, and queue "default".
Snapshot Cluster(int gpus = 8, QueueOrder order = QueueOrder::kBackfill) {
  Snapshot snapshot;
  snapshot.nodes = {NodeBuilder("amd-1").Gpus(kA, gpus), NodeBuilder("nv-1").Gpus(kN, gpus)};
  snapshot.pools = {PoolOf(kA), PoolOf(kN)};
  snapshot.queues = {QueueNamed("default", order)};
  return snapshot;
}

TEST(DecideTest, StartsTheFirstVariantThatFits) {
  Snapshot s = Cluster();
  s.pods = {PodOn("x", "nv-1", kN, 8)};
  s.pending = {JobBuilder("a").On(kN, 2).On(kA, 2).Pods(4)};
  const Plan plan = Decide(s);
  ASSERT_EQ(plan.assignments.size(), 1U);
  EXPECT_EQ(plan.assignments[0].variant, 1U);
  EXPECT_EQ(plan.assignments[0].pool, PoolName{"amd"});
  EXPECT_EQ(plan.assignments[0].devices, 8);
  EXPECT_EQ(plan.assignments[0].pods.size(), 4U);
  EXPECT_THAT(plan.refusals, IsEmpty());
}

TEST(DecideTest, DecidesByPriorityThenAgeThenUid) {
  Snapshot s = Cluster(1);
  s.pending = {JobBuilder("late").On(kN).Pods(1).Created(9),
               JobBuilder("b").On(kN).Pods(1).Created(5), JobBuilder("a").On(kN).Pods(1).Created(5),
               JobBuilder("urgent").On(kN).Pods(1).Created(9).Priority(1)};
  const Plan plan = Decide(s);
  EXPECT_THAT(Started(plan), ElementsAre("urgent"));
  std::vector<std::string> refused;
  for (const auto& r : plan.refusals) refused.push_back(r.job.value);
  EXPECT_THAT(refused, ElementsAre("uid-a", "uid-b", "uid-late"));
  EXPECT_EQ(RefusalOf(plan, "b").ahead, 1);
  EXPECT_EQ(RefusalOf(plan, "b").of, 3);
}

TEST(DecideTest, WhatACycleGivesAwayIsGoneForTheNextJobOfIt) {
  Snapshot s = Cluster(8);
  for (int i = 0; i < 5; ++i) {
    s.pending.push_back(JobBuilder("j" + std::to_string(i)).On(kN, 2).Pods(1).Created(i));
  }
  const Plan plan = Decide(s);
  EXPECT_THAT(Started(plan), ElementsAre("j0", "j1", "j2", "j3"));
  EXPECT_EQ(RefusalOf(plan, "j4").reason, "WaitingForDevices");
}

TEST(DecideTest, BothVendorsOfOneNodeShareItsCpu) {
  Snapshot s;
  s.nodes = {NodeBuilder("mixed").Gpus(kA, 4).Gpus(kN, 4).Cpu(4000)};
  s.pools = {PoolOf(kA), PoolOf(kN)};
  s.queues = {QueueNamed("default")};
  s.pending = {JobBuilder("a").On(kA).Pods(1, 3000).Created(1),
               JobBuilder("b").On(kN).Pods(1, 3000).Created(2)};
  const Plan plan = Decide(s);
  EXPECT_THAT(Started(plan), ElementsAre("a"));
  EXPECT_EQ(RefusalOf(plan, "b").reason, "WaitingForNodeCapacity");
}

TEST(DecideTest, AGangStaysInOnePool) {
  Snapshot s;
  s.nodes = {NodeBuilder("n1").Gpus(kN, 4, "p1"), NodeBuilder("n2").Gpus(kN, 4, "p2")};
  s.pools = {PoolOf(kN, "p1"), PoolOf(kN, "p2")};
  s.queues = {QueueNamed("default")};
  s.pending = {JobBuilder("wide").On(kN).Pods(8)};
  const Plan plan = Decide(s);
  EXPECT_THAT(plan.assignments, IsEmpty());
  EXPECT_EQ(RefusalOf(plan, "wide").reason, "ExceedsCapacity");
  EXPECT_TRUE(RefusalOf(plan, "wide").never);
}

TEST(DecideTest, ExplainsEachVariantInASentence) {
  Snapshot s = Cluster();
  s.pods = {PodOn("x", "nv-1", kN, 5), PodOn("y", "amd-1", kA, 8)};
  s.pending = {JobBuilder("a").On(kN, 2).On(kA, 2).Pods(4)};
  const Plan plan = Decide(s);
  const Refusal& refusal = RefusalOf(plan, "a");
  EXPECT_EQ(refusal.reason, "WaitingForDevices");
  EXPECT_FALSE(refusal.never);
  EXPECT_EQ(
      refusal.message,
      "variant cuda needs 8 devices in one pool, 3 are free; it can start when 5 more devices "
      "of pool nvidia are released. variant rocm needs 8 devices in one pool, 0 are free; it "
      "can start when 8 more devices of pool amd are released");
  ASSERT_EQ(refusal.blockers.size(), 2U);
  EXPECT_EQ(refusal.blockers[0].variant, "cuda");
  EXPECT_EQ(refusal.blockers[0].need, 8);
  EXPECT_EQ(refusal.blockers[0].free, 3);
}

TEST(DecideTest, AJobThatCanNeverFitSaysSo) {
  Snapshot s = Cluster();
  s.pending = {JobBuilder("huge").On(kN, 8).Pods(4)};
  const Plan plan = Decide(s);
  EXPECT_TRUE(RefusalOf(plan, "huge").never);
  EXPECT_THAT(RefusalOf(plan, "huge").message, HasSubstr("it can never start unless"));
}

TEST(DecideTest, WithoutAPoolOfTheVendorNothingMatches) {
  Snapshot s = Cluster();
  s.pools = {PoolOf(kA)};
  s.pending = {JobBuilder("a").On(kN).Pods(1)};
  const Plan plan = Decide(s);
  EXPECT_EQ(RefusalOf(plan, "a").reason, "NoMatchingDevice");
  EXPECT_THAT(RefusalOf(plan, "a").message, HasSubstr("a GPUPool of vendor nvidia exists"));
}

TEST(DecideTest, AnUnvalidatedNodeIsNeverGivenAJob) {
  Snapshot s = Cluster();
  s.nodes[1] = NodeBuilder("nv-1").Gpus(kN, 8).Shut(kN);
  s.pending = {JobBuilder("a").On(kN).Pods(4)};
  const Plan plan = Decide(s);
  EXPECT_THAT(plan.assignments, IsEmpty());
  EXPECT_EQ(RefusalOf(plan, "a").reason, "WaitingForValidation");
}

TEST(DecideQueueTest, MissingForbiddenAndStoppedQueuesHaveTheirReasons) {
  Snapshot s = Cluster();
  Queue closed = QueueNamed("closed"), held = QueueNamed("held");
  closed.namespace_selector = {{"team", "ml"}};
  held.stop = StopPolicy::kHold;
  s.queues.push_back(closed);
  s.queues.push_back(held);
  s.pending = {JobBuilder("a").On(kN).Pods(1).Queue("nowhere"),
               JobBuilder("b").On(kN).Pods(1).Queue("closed"),
               JobBuilder("c").On(kN).Pods(1).Queue("held")};
  const Plan plan = Decide(s);
  EXPECT_EQ(RefusalOf(plan, "a").reason, "QueueNotFound");
  EXPECT_EQ(RefusalOf(plan, "b").reason, "QueueNotAllowed");
  EXPECT_EQ(RefusalOf(plan, "c").reason, "QueueStopped");
  for (const Refusal& refusal : plan.refusals) {
    EXPECT_FALSE(refusal.never);
    EXPECT_FALSE(refusal.message.empty());
  }
  s.namespaces = {{"team", {{"team", "ml"}}}};
  EXPECT_THAT(Started(Decide(s)), ElementsAre("b"));
}

TEST(DecideQuotaTest, CountsWhatIsHeldAndWhatThisCycleGives) {
  Snapshot s = Cluster();
  s.queues[0].quotas = {Quota("nvidia", 4)};
  s.running = {RunningJob("old", "default", kN, 2, {"nv-1"})};
  s.pending = {JobBuilder("a").On(kN).Pods(1).Created(1), JobBuilder("b").On(kN).Pods(2).Created(2),
               JobBuilder("c").On(kA).Pods(8).Created(3)};
  const Plan plan = Decide(s);
  EXPECT_THAT(Started(plan), ElementsAre("a", "c"));  // amd has no limit
  const Refusal& refusal = RefusalOf(plan, "b");
  EXPECT_EQ(refusal.reason, "WaitingForQuota");
  EXPECT_EQ(refusal.blockers[0].need, 2);
  EXPECT_EQ(refusal.blockers[0].free, 1);
}

TEST(DecideQuotaTest, MoreThanTheLimitNeverStarts) {
  Snapshot s = Cluster();
  s.queues[0].quotas = {Quota("nvidia", 4)};
  s.pending = {JobBuilder("a").On(kN).Pods(5)};
  const Plan plan = Decide(s);
  EXPECT_EQ(RefusalOf(plan, "a").reason, "ExceedsLimit");
  EXPECT_TRUE(RefusalOf(plan, "a").never);
  EXPECT_THAT(RefusalOf(plan, "a").message, HasSubstr("rises from 4 to 5"));
}

TEST(DecideQuotaTest, HugeCountsCannotSlipUnderTheLimit) {
  Snapshot s = Cluster();
  s.queues[0].quotas = {Quota("nvidia", 4)};
  Job huge = JobBuilder("huge").On(kN, 8).Pods(1).Created(0);
  huge.roles[0].replicas = std::numeric_limits<std::int64_t>::max();
  s.pending = {huge, JobBuilder("honest").On(kN).Pods(4).Created(1)};
  const Plan plan = Decide(s);
  EXPECT_THAT(Started(plan), ElementsAre("honest"));
  EXPECT_TRUE(RefusalOf(plan, "huge").never);
}

// The reduced input of R15: AMD full, NVIDIA idle.
TEST(DecideStrictTest, AJobThatWaitsForOneVendorBlocksNoJobOfTheOther) {
  Snapshot s = Cluster(8, QueueOrder::kStrict);
  s.pods = {PodOn("x", "amd-1", kA, 4)};
  s.pending = {JobBuilder("a").On(kA).Pods(8).Created(0), JobBuilder("b").On(kN).Pods(2).Created(1),
               JobBuilder("c").On(kA).Pods(4).Created(2),
               JobBuilder("d").On(kA).On(kN).Pods(4).Created(3)};
  const Plan plan = Decide(s);
  EXPECT_THAT(Started(plan), ElementsAre("b", "d"));
  EXPECT_EQ(plan.assignments[1].pool, PoolName{"nvidia"});
  EXPECT_THAT(RefusalOf(plan, "c").message, HasSubstr("job team/a, which is ahead of it"));

  s.queues[0].order = QueueOrder::kBackfill;
  EXPECT_THAT(Started(Decide(s)), ElementsAre("b", "c", "d"));
}

TEST(DecideStrictTest, AJobThatCanNeverStartBlocksNobody) {
  Snapshot s = Cluster(8, QueueOrder::kStrict);
  s.pending = {JobBuilder("never").On(kN).Pods(9).Created(0),
               JobBuilder("b").On(kN).Pods(8).Created(1)};
  EXPECT_THAT(Started(Decide(s)), ElementsAre("b"));
}

TEST(DecideStrictTest, AWaitingJobBlocksItsOwnQueueOnly) {
  Snapshot s = Cluster(8, QueueOrder::kStrict);
  s.queues.push_back(QueueNamed("other", QueueOrder::kStrict));
  s.pods = {PodOn("x", "nv-1", kN, 4)};
  s.pending = {JobBuilder("a").On(kN).Pods(8).Created(0),
               JobBuilder("b").On(kN).Pods(4).Created(1).Queue("other")};
  EXPECT_THAT(Started(Decide(s)), ElementsAre("b"));
}

// The reduced input of R16.
TEST(DecideTest, OfTwoGangsThatTogetherDoNotFitOneIsPlacedWhole) {
  Snapshot s;
  for (int i = 0; i < 10; ++i) {
    s.nodes.push_back(NodeBuilder("n" + std::to_string(i)).Gpus(kN, 1));
  }
  s.pools = {PoolOf(kN)};
  s.queues = {QueueNamed("default")};
  s.pending = {JobBuilder("x").On(kN).Pods(10), JobBuilder("y").On(kN).Pods(10)};
  const Plan plan = Decide(s);
  EXPECT_THAT(Started(plan), ElementsAre("x"));
  EXPECT_EQ(plan.assignments[0].pods.size(), 10U);
  EXPECT_EQ(RefusalOf(plan, "y").blockers[0].free, 0);
}

TEST(DecideTest, AMessageWithLongNamesStaysWithinItsBound) {
  Snapshot s = Cluster();
  s.pools[1].name = PoolName{"nvidia"};
  JobBuilder job("a");
  for (int i = 0; i < 8; ++i) {
    job.On(kN, 100).Models({std::string(255, 'x') + "\xC3\xA9"});
  }
  s.pending = {job.Pods(1)};
  const Plan plan = Decide(s);
  EXPECT_LE(RefusalOf(plan, "a").message.size(), 1024U);
  EXPECT_EQ(RefusalOf(plan, "a").blockers.size(), 8U);
}

TEST(DecideTest, AJobGivenTwiceStartsOnce) {
  Snapshot s = Cluster();
  s.pending = {JobBuilder("a").On(kN).Pods(2), JobBuilder("a").On(kN).Pods(2)};
  const Plan plan = Decide(s);
  EXPECT_EQ(plan.assignments.size() + plan.refusals.size(), 1U);
}

}  // namespace
}  // namespace bimetal::core::queue
