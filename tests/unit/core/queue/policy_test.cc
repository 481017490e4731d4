// What queues' policies make of single situations: borrowing, fair shares, evictions, reservations.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/queue/cycle.h"
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
using testing::Quota;
using testing::RefusalOf;
using testing::RunningJob;
using testing::Started;
using ::testing::UnorderedElementsAre;

constexpr Vendor kN = Vendor::kNvidia, kA = Vendor::kAmd;
constexpr Millis kMinute = Minutes(1);

// `nodes` nodes n0, n1, ... of 8 NVIDIA devices each.
Snapshot Nodes(int nodes) {
  Snapshot s;
  s.now = TimePoint{100'000'000};
  for (int i = 0; i < nodes; ++i) {
    s.nodes.push_back(NodeBuilder("n" + std::to_string(i)).Gpus(kN, 8));
  }
  s.pools = {PoolOf(kN)};
  return s;
}

std::vector<std::string> Evicted(const Plan& plan) {
  std::vector<std::string> jobs;
  for (const Eviction& e : plan.evictions) jobs.push_back(e.job.value.substr(4));
  return jobs;
}

Queue Guaranteed(const std::string& name, std::int64_t devices) {
  Queue queue = QueueNamed(name);
  queue.quotas = {Quota("nvidia", std::nullopt, devices)};
  queue.preemption = {.within_queue = WithinQueue::kLowerPriority,
                      .reclaim = Reclaim::kAny,
                      .min_runtime = {},
                      .max_evictions_per_hour = std::nullopt};
  return queue;
}

TEST(BorrowTest, WhoStaysWithinTheGuaranteeGoesBeforeWhoBorrows) {
  Snapshot s = Nodes(1);
  s.queues = {Guaranteed("a", 4), QueueNamed("b")};
  s.pending = {JobBuilder("b1").On(kN).Pods(8).Queue("b").Priority(100),
               JobBuilder("a1").On(kN).Pods(4).Queue("a")};
  EXPECT_THAT(Started(Decide(s)), ElementsAre("a1"));
  s.pending.pop_back();
  EXPECT_THAT(Started(Decide(s)), ElementsAre("b1"));  // nobody else wants it
}

TEST(BorrowTest, WhatIsNotLentIsLeftAlone) {
  Snapshot s = Nodes(1);
  s.queues = {Guaranteed("a", 4), QueueNamed("b")};
  s.queues[0].quotas[0].lending_limit = 1;
  s.pending = {JobBuilder("b1").On(kN).Pods(6).Queue("b"),
               JobBuilder("b2").On(kN).Pods(5).Queue("b").Created(2'000)};
  const Plan plan = Decide(s);
  EXPECT_THAT(Started(plan), ElementsAre("b2"));
  EXPECT_EQ(RefusalOf(plan, "b1").reason, "WaitingForQuota");
  EXPECT_THAT(RefusalOf(plan, "b1").message, HasSubstr("other queues keep for themselves"));
}

TEST(BorrowTest, ClassesOfAPoolHaveQuotasOfTheirOwn) {
  Snapshot s;
  s.nodes = {NodeBuilder("fast").Gpus(kN, 8, "", "H100"),
             NodeBuilder("slow").Gpus(kN, 8, "", "L4")};
  s.pools = {PoolOf(kN)};
  s.pools[0].device_classes = {{.name = "big", .models = {"H100"}}};
  s.queues = {QueueNamed("q")};
  s.queues[0].quotas = {Quota("big", 2), Quota("nvidia", 5)};
  for (int i = 0; i < 9; ++i) {
    s.pending.push_back(JobBuilder("j" + std::to_string(i)).On(kN).Pods(1).Queue("q").Created(i));
  }
  const Plan plan = Decide(s);
  int big = 0;
  for (const Assignment& a : plan.assignments) big += a.pods[0].node.value == "fast" ? 1 : 0;
  EXPECT_EQ(plan.assignments.size(), 7U);
  EXPECT_EQ(big, 2);
  EXPECT_EQ(RefusalOf(plan, "j8").reason, "WaitingForQuota");
}

TEST(FairShareTest, TurnsGoByWhatIsHeldOverTheWeight) {
  Snapshot s = Nodes(1);
  s.queues = {QueueNamed("a"), QueueNamed("b"), QueueNamed("z")};
  s.queues[0].fair_share = FairShare{.weight = 3, .half_life = {}};
  s.queues[1].fair_share = FairShare{.weight = 1, .half_life = {}};
  s.queues[2].fair_share = FairShare{.weight = 0, .half_life = {}};
  for (int i = 0; i < 8; ++i) {
    for (const char* queue : {"a", "b", "z"}) {
      s.pending.push_back(
          JobBuilder(queue + std::to_string(i)).On(kN).Pods(1).Queue(queue).Created(i));
    }
  }
  std::map<char, int> got;
  for (const std::string& job : Started(Decide(s))) ++got[job[0]];
  EXPECT_EQ(got['a'], 6);
  EXPECT_EQ(got['b'], 2);
  EXPECT_EQ(got['z'], 0);
}

TEST(FairShareTest, WhoHadMoreLatelyWaits) {
  Snapshot s = Nodes(1);
  s.queues = {QueueNamed("a"), QueueNamed("b")};
  for (Queue& queue : s.queues) queue.fair_share = FairShare{.weight = 1, .half_life = Minutes(60)};
  s.past_use = {{.queue = QueueName{"a"}, .devices = 8, .from = s.now - Minutes(120), .to = s.now}};
  s.pending = {JobBuilder("a1").On(kN).Pods(8).Queue("a").Created(1),
               JobBuilder("b1").On(kN).Pods(8).Queue("b").Created(2)};
  EXPECT_THAT(Started(Decide(s)), ElementsAre("b1"));
  s.past_use[0].from = s.now - Minutes(60 * 50);
  s.past_use[0].to = s.now - Minutes(60 * 49);  // long forgotten
  EXPECT_THAT(Started(Decide(s)), ElementsAre("a1"));
}

TEST(PreemptTest, AHigherPriorityTakesTheCheapestVictimAndItsPlaceIsHeld) {
  Snapshot s = Nodes(2);
  s.queues = {Guaranteed("q", 0)};
  s.queues[0].preemption.reclaim = Reclaim::kNever;
  Running old = RunningJob("old", "q", kN, 8, {"n0"}),
          young = RunningJob("young", "q", kN, 8, {"n1"});
  old.started = s.now - Minutes(60);
  young.started = s.now - Minutes(10);
  AddRunning(&s, old);
  AddRunning(&s, young);
  s.pending = {JobBuilder("urgent").On(kN, 4).Pods(2).Queue("q").Priority(9),
               JobBuilder("low").On(kN).Pods(1).Queue("q").Priority(-1).Created(s.now.ms)};
  Plan plan = Decide(s);
  EXPECT_THAT(Evicted(plan), ElementsAre("young"));
  EXPECT_THAT(plan.evictions[0].message, HasSubstr("evicted for job team/urgent"));
  EXPECT_EQ(RefusalOf(plan, "urgent").reason, "WaitingForPreemption");
  EXPECT_THAT(RefusalOf(plan, "urgent").message, HasSubstr("team/young"));
  ASSERT_EQ(plan.holds.size(), 1U);

  s.running[1].checkpointed.reset();
  s.running[0].checkpointed = s.now;  // has nothing to lose now
  EXPECT_THAT(Evicted(Decide(s)), ElementsAre("old"));

  // The victim is gone: what it held is the successor's and nobody else's.
  s.holds = plan.holds;
  s.running.erase(s.running.begin() + 1);
  std::erase_if(s.pods, [](const Pod& pod) { return pod.uid.value.starts_with("uid-young"); });
  plan = Decide(s);
  EXPECT_THAT(Started(plan), ElementsAre("urgent"));
  EXPECT_THAT(plan.holds, IsEmpty());
  EXPECT_THAT(plan.evictions, IsEmpty());
}

TEST(PreemptTest, WhileTheVictimEndsNobodyElseGetsWhatComesFree) {
  Snapshot s = Nodes(1);
  s.queues = {Guaranteed("q", 0), QueueNamed("other")};
  AddRunning(&s, RunningJob("a", "q", kN, 4, {"n0"}));
  AddRunning(&s, RunningJob("b", "q", kN, 4, {"n0"}));
  s.pending = {JobBuilder("urgent").On(kN).Pods(8).Queue("q").Priority(9)};
  Plan plan = Decide(s);
  EXPECT_THAT(Evicted(plan), UnorderedElementsAre("a", "b"));
  s.holds = plan.holds;
  for (Running& one : s.running) one.ending = true;
  s.running.erase(s.running.begin());  // a has ended, b has not
  std::erase_if(s.pods, [](const Pod& pod) { return pod.uid.value.starts_with("uid-a"); });
  s.pending.push_back(JobBuilder("thief").On(kN).Pods(4).Queue("other").Priority(100));
  plan = Decide(s);
  EXPECT_THAT(Started(plan), IsEmpty());
  EXPECT_THAT(plan.evictions, IsEmpty());
  EXPECT_EQ(RefusalOf(plan, "thief").reason, "WaitingForDevices");
  // An operator that forgot the hold finds that it need not evict anybody.
  s.holds.clear();
  s.pending.pop_back();
  plan = Decide(s);
  EXPECT_THAT(plan.evictions, IsEmpty());
  EXPECT_EQ(RefusalOf(plan, "urgent").reason, "WaitingForPreemption");
}

TEST(PreemptTest, NobodyIsEvictedWhereTheSuccessorWouldStillNotFit) {
  Snapshot s = Nodes(1);
  s.queues = {Guaranteed("q", 0)};
  s.pods = {testing::PodOn("foreign", "n0", kN, 1)};
  AddRunning(&s, RunningJob("a", "q", kN, 4, {"n0"}));
  s.pending = {JobBuilder("urgent").On(kN, 8).Pods(1).Queue("q").Priority(9)};
  EXPECT_THAT(Decide(s).evictions, IsEmpty());
}

TEST(PreemptTest, EqualPriorityMinRuntimeAndNeverProtect) {
  Snapshot s = Nodes(1);
  s.queues = {Guaranteed("q", 0)};
  Running a = RunningJob("a", "q", kN, 8, {"n0"});
  a.started = s.now - Minutes(5);
  AddRunning(&s, a);
  s.pending = {JobBuilder("urgent").On(kN).Pods(1).Queue("q").Priority(0)};
  EXPECT_THAT(Decide(s).evictions, IsEmpty());
  s.pending[0].Edit().priority = 1;
  EXPECT_THAT(Evicted(Decide(s)), ElementsAre("a"));
  s.queues[0].preemption.min_runtime = Minutes(6);
  EXPECT_THAT(Decide(s).evictions, IsEmpty());
  s.queues[0].preemption.min_runtime = Minutes(5);
  EXPECT_THAT(Evicted(Decide(s)), ElementsAre("a"));
  s.queues[0].preemption.max_evictions_per_hour = 1;
  s.past_evictions = {{.queue = QueueName{"q"}, .at = s.now - Minutes(59)}};
  EXPECT_THAT(Decide(s).evictions, IsEmpty());
  s.past_evictions[0].at = s.now - Minutes(60);
  EXPECT_THAT(Evicted(Decide(s)), ElementsAre("a"));
  s.running[0].evictable = false;
  EXPECT_THAT(Decide(s).evictions, IsEmpty());
}

TEST(ReclaimTest, WhatIsGuaranteedIsTakenBackFromWhoeverBorrowedIt) {
  Snapshot s = Nodes(1);
  s.queues = {Guaranteed("a", 4), Guaranteed("b", 4)};
  for (int i = 0; i < 4; ++i) {
    Running one = RunningJob("b" + std::to_string(i), "b", kN, 2, {"n0"});
    one.created = TimePoint{i};
    one.priority = 50;
    AddRunning(&s, one);
  }
  s.pending = {JobBuilder("a1").On(kN, 3).Pods(1).Queue("a")};
  const Plan plan = Decide(s);
  // Those of b that are covered stay: the first two by age.
  EXPECT_THAT(Evicted(plan), UnorderedElementsAre("b2", "b3"));
  EXPECT_THAT(plan.evictions[0].message, HasSubstr("guarantees devices"));

  s.queues[0].preemption.reclaim = Reclaim::kLowerPriority;
  EXPECT_THAT(Decide(s).evictions, IsEmpty());
  s.queues[0].preemption.reclaim = Reclaim::kAny;
  s.pending[0].Edit().variants[0].devices_per_pod = 5;  // beyond what is guaranteed
  EXPECT_THAT(Decide(s).evictions, IsEmpty());
}

TEST(ReclaimTest, AWholeGangGoesAlsoWhereItsQueueFallsBelowItsGuarantee) {
  Snapshot s = Nodes(1);
  s.queues = {Guaranteed("a", 4), Guaranteed("b", 4)};
  AddRunning(&s, RunningJob("big", "b", kN, 8, {"n0"}));
  s.pending = {JobBuilder("a1").On(kN).Pods(1).Queue("a")};
  EXPECT_THAT(Evicted(Decide(s)), ElementsAre("big"));
}

TEST(ReserveTest, AJobThatHasWaitedTooLongIsPromisedThePlaceThatComesFreeFirst) {
  Snapshot s = Nodes(2);
  s.queues = {QueueNamed("q")};
  s.queues[0].starvation_bound = Minutes(30);
  Running slow = RunningJob("slow", "q", kN, 8, {"n0"}),
          fast = RunningJob("fast", "q", kN, 4, {"n1"});
  slow.latest_end = s.now + Minutes(90);
  fast.latest_end = s.now + Minutes(20);
  AddRunning(&s, slow);
  AddRunning(&s, fast);
  s.pending = {JobBuilder("head").On(kN, 8).Pods(1).Queue("q").Created(s.now.ms - 31 * 60'000),
               JobBuilder("endless").On(kN).Pods(4).Queue("q").Created(s.now.ms),
               JobBuilder("long").On(kN).Pods(4).Queue("q").Created(s.now.ms),
               JobBuilder("short").On(kN).Pods(4).Queue("q").Created(s.now.ms)};
  s.pending[2].Edit().max_duration = Minutes(21);
  s.pending[3].Edit().max_duration = Minutes(20);
  Plan plan = Decide(s);
  EXPECT_THAT(Started(plan), ElementsAre("short"));
  EXPECT_EQ(RefusalOf(plan, "head").reason, "Reserved");
  EXPECT_THAT(RefusalOf(plan, "head").message, HasSubstr("team/fast"));
  ASSERT_TRUE(RefusalOf(plan, "head").estimate);
  EXPECT_EQ(RefusalOf(plan, "head").estimate->latest, s.now + Minutes(20));
  ASSERT_EQ(plan.holds.size(), 1U);
  EXPECT_EQ(plan.holds[0].at, s.now + Minutes(20));

  s.queues[0].order = QueueOrder::kBestEffort;
  EXPECT_THAT(Started(Decide(s)), ElementsAre("endless"));
  s.queues[0].order = QueueOrder::kBackfill;
  s.pending[0].Edit().created = s.now - Minutes(29);
  EXPECT_THAT(Started(Decide(s)), ElementsAre("endless"));
}

TEST(ReserveTest, WhereNobodyKnowsWhenItEndsWhatComesFreeIsKeptWithoutADate) {
  Snapshot s = Nodes(1);
  s.queues = {QueueNamed("q")};
  AddRunning(&s, RunningJob("a", "q", kN, 4, {"n0"}));
  s.pending = {JobBuilder("head").On(kN, 8).Pods(1).Queue("q").Created(0),
               JobBuilder("small").On(kN).Pods(1).Queue("q").Created(s.now.ms)};
  s.pending[1].Edit().max_duration = kMinute;
  const Plan plan = Decide(s);
  EXPECT_THAT(Started(plan), IsEmpty());
  EXPECT_FALSE(RefusalOf(plan, "head").estimate);
  EXPECT_EQ(RefusalOf(plan, "head").reason, "Reserved");
}

TEST(StopTest, HoldAndDrainEvictsWhatRunsBelow) {
  Snapshot s = Nodes(1);
  s.queues = {QueueNamed("top"), QueueNamed("leaf"), QueueNamed("else")};
  s.queues[1].parent = QueueName{"top"};
  s.queues[0].stop = StopPolicy::kHoldAndDrain;
  AddRunning(&s, RunningJob("a", "leaf", kN, 4, {"n0"}));
  AddRunning(&s, RunningJob("b", "else", kN, 4, {"n0"}));
  s.pending = {JobBuilder("c").On(kN).Pods(1).Queue("leaf")};
  Plan plan = Decide(s);
  EXPECT_THAT(Evicted(plan), ElementsAre("a"));
  EXPECT_TRUE(plan.evictions[0].for_job.value.empty());
  EXPECT_EQ(RefusalOf(plan, "c").reason, "QueueStopped");
  EXPECT_THAT(RefusalOf(plan, "c").message, HasSubstr("queue top, which is above queue leaf"));
  s.queues[0].stop = StopPolicy::kHold;
  EXPECT_THAT(Decide(s).evictions, IsEmpty());
}

TEST(LimitTest, PerJobLimitsSayWhatToDo) {
  Snapshot s = Nodes(1);
  s.queues = {QueueNamed("q")};
  s.queues[0].max_devices_per_job = 2;
  s.queues[0].max_duration_per_job = Minutes(10);
  s.pending = {JobBuilder("wide").On(kN).Pods(3).Queue("q"),
               JobBuilder("long").On(kN).Pods(1).Queue("q"),
               JobBuilder("good").On(kN).Pods(2).Queue("q")};
  s.pending[0].Edit().max_duration = Minutes(10);
  s.pending[2].Edit().max_duration = Minutes(10);
  const Plan plan = Decide(s);
  EXPECT_THAT(Started(plan), ElementsAre("good"));
  EXPECT_EQ(RefusalOf(plan, "wide").reason, "ExceedsLimit");
  EXPECT_THAT(RefusalOf(plan, "wide").message,
              HasSubstr("perJob.maxDevices of queue q rises from 2 to 3"));
  EXPECT_EQ(RefusalOf(plan, "long").reason, "ExceedsLimit");
  EXPECT_THAT(RefusalOf(plan, "long").message, HasSubstr("maxDuration is not set"));
}

TEST(InvalidQueueTest, JobsOfAQueueWithoutItsParentWaitAndTheOthersDoNot) {
  Snapshot s = Nodes(1);
  s.queues = {QueueNamed("orphan"), QueueNamed("fine")};
  s.queues[0].parent = QueueName{"gone"};
  s.pending = {JobBuilder("a").On(kN).Pods(1).Queue("orphan"),
               JobBuilder("b").On(kN).Pods(1).Queue("fine")};
  const Plan plan = Decide(s);
  EXPECT_THAT(Started(plan), ElementsAre("b"));
  EXPECT_EQ(RefusalOf(plan, "a").reason, "QueueInvalid");
  EXPECT_THAT(RefusalOf(plan, "a").message, HasSubstr("create it or change spec.parentName"));
}

// Of 10,000 jobs of few shapes no more are tried than of 1,000.
TEST(WorkTest, EvaluationsGrowWithShapesNotWithJobs) {
  const auto evaluations = [](int jobs) {
    Snapshot s = Nodes(4);
    s.queues = {QueueNamed("q")};
    for (int node = 0; node < 4; ++node) {
      AddRunning(
          &s, RunningJob("full" + std::to_string(node), "q", kN, 7, {"n" + std::to_string(node)}));
    }
    for (int i = 0; i < jobs; ++i) {
      s.pending.push_back(
          JobBuilder("j" + std::to_string(i)).On(kN, 2 + i % 6).Pods(1 + i % 5).Queue("q"));
    }
    return Decide(s).evaluations;
  };
  EXPECT_LE(evaluations(3000), evaluations(300) * 11 / 10);
}

}  // namespace
}  // namespace bimetal::core::queue
