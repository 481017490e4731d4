#include "operator/controllers/jobs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/operator/controllers/jobs_fixture.h"

namespace bimetal::test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

TEST_F(JobControllerTest, AGangIsPlacedWholeWithRanksImageAndDevicesOfOneVendor) {
  StartWith(8, 8);
  Submit(MakeJob("train", 4, 2));
  const auto pods = CreatedPods();
  ASSERT_THAT(pods, SizeIs(4));
  EXPECT_THAT(world_.writes.Of("create", "services"), SizeIs(1));
  for (int rank = 0; rank < 4; ++rank) {
    const auto& body = pods[static_cast<std::size_t>(rank)].body;
    EXPECT_THAT(body, HasSubstr("\"image\":\"image:nvidia\""));
    EXPECT_THAT(body, HasSubstr(R"("nvidia.com/gpu":"2")"));
    EXPECT_THAT(body, HasSubstr(R"({"name":"RANK","value":")" + std::to_string(rank) + "\"}"));
    EXPECT_THAT(body, HasSubstr(R"({"name":"WORLD_SIZE","value":"4"})"));
    EXPECT_THAT(body, HasSubstr("worker-0-a1.train-gang.team.svc"));
    EXPECT_THAT(body, HasSubstr("metadata.name"));
    EXPECT_THAT(body, Not(HasSubstr("\"nodeName\"")));
    EXPECT_THAT(body, HasSubstr(R"("priorityClassName":"bimetal-job")"));
  }
  EXPECT_EQ(StatusOf("train").state(), "Starting");
  EXPECT_EQ(StatusOf("train").assignment().variant(), "cuda");
}

TEST_F(JobControllerTest, TheOtherVendorIsTakenWhereTheFirstIsFull) {
  StartWith(8, 8);
  Submit(MakeJob("first", 1, 8));
  Submit(MakeJob("second", 1, 8));
  EXPECT_EQ(StatusOf("second").assignment().variant(), "rocm");
  Submit(MakeJob("third", 1, 8));
  EXPECT_EQ(StatusOf("third").state(), "Pending");
  EXPECT_EQ(StatusOf("third").reason(), "WaitingForDevices");
  ASSERT_THAT(StatusOf("third").blockers(), SizeIs(2));
  EXPECT_EQ(StatusOf("third").blockers(0).need(), 8);
  EXPECT_EQ(StatusOf("third").blockers(0).free(), 0);
}

TEST_F(JobControllerTest, DevicesAskedForAreHeldBeforeTheWatchShowsThem) {
  StartWith(8, 0);
  Submit(MakeJob("first", 1, 8));
  ASSERT_THAT(CreatedPods(), SizeIs(1));
  Submit(MakeJob("second", 1, 8));
  EXPECT_THAT(CreatedPods(), SizeIs(1));
}

TEST_F(JobControllerTest, ACompletedJobIsBilledOnceFromBindingToEnd) {
  StartWith(8, 0);
  AddBook();
  Submit(MakeJob("train", 2, 2));
  const auto pods = CreatedPods();
  for (const auto& pod : pods) Show(pod, "Running");
  Turn();
  EXPECT_EQ(StatusOf("train").state(), "Running");
  world_.clock.Advance(Seconds(100));
  for (const auto& pod : pods) Show(pod, "Succeeded");
  Turn();
  EXPECT_EQ(StatusOf("train").state(), "Completed");
  EXPECT_EQ(StatusOf("train").usage().device_seconds(), "400.000") << "2 pods x 2 devices x 100 s";
  EXPECT_EQ(StatusOf("train").usage().cost(), "0.40 EUR");
  EXPECT_EQ(StatusOf("train").usage().basis(), "Final");
  world_.clock.Advance(Seconds(100));
  for (const auto& pod : pods) Remove(pod);
  Turn();
  EXPECT_EQ(StatusOf("train").usage().device_seconds(), "400.000");
  EXPECT_EQ(StatusOf("train").state(), "Completed");
}

TEST_F(JobControllerTest, AnAttemptThatFailedKeepsItsPriceWhileTheNextOneRuns) {
  StartWith(8, 0);
  AddBook();
  Submit(MakeJob("train", 1, 1));
  Show(CreatedPods()[0], "Running");
  Turn();
  world_.clock.Advance(Seconds(10));
  Show(CreatedPods()[0], "Failed", 3);
  Turn();
  world_.clock.Advance(Seconds(10));
  Turn();
  Turn();
  ASSERT_THAT(CreatedPods(), SizeIs(2));
  Show(CreatedPods()[1], "Running");
  Turn();
  world_.clock.Advance(Seconds(10));
  Show(CreatedPods()[1], "Succeeded");
  Turn();
  EXPECT_EQ(StatusOf("train").usage().device_seconds(), "20.000");
  EXPECT_EQ(StatusOf("train").usage().cost(), "0.02 EUR");
  ASSERT_THAT(StatusOf("train").attempts(), SizeIs(2));
  EXPECT_EQ(StatusOf("train").attempts(0).nano_cost(), 10'000'000);
}

TEST_F(JobControllerTest, LateRefusalsOfOneAttemptDoNotVoidTheNext) {
  StartWith(8, 0);
  Submit(MakeJob("train", 2, 1));
  const auto first = CreatedPods();
  const Status refused = Fail(ErrorCode::kForbidden, "exceeded quota");
  first[0].done(refused);
  Turn();
  EXPECT_EQ(StatusOf("train").reason(), "PodRefused");
  first[1].done(refused);  // its create ended later
  world_.clock.Advance(Seconds(10));
  Turn();
  Turn();
  ASSERT_THAT(CreatedPods(), SizeIs(4));
  Turn();
  EXPECT_EQ(StatusOf("train").state(), "Starting");
}

TEST_F(JobControllerTest, APodOnANodeThatIsLostAfterItsDeletionWasAskedForIsRemovedByForce) {
  StartWith(8, 0);
  Submit(MakeJob("train", 2, 1));
  const auto pods = CreatedPods();
  for (const auto& pod : pods) Show(pod, "Running");
  Turn();
  Show(pods[0], "Failed", 1);
  Turn();
  EXPECT_THAT(world_.writes.Of("delete", "pods"), SizeIs(1));
  world_.store.nodes.at("n1").not_ready_since = world_.clock.Now();
  world_.clock.Advance(Seconds(61));
  world_.jobs.TouchAll();
  Turn();
  EXPECT_THAT(world_.writes.Of("delete", "pods"), SizeIs(2));
}

TEST_F(JobControllerTest, ARunningGangOutlivesItsPriorityClass) {
  StartWith(8, 0);
  world_.store.priorities["high"] = 10;
  auto job = MakeJob("train", 1, 1);
  job.mutable_spec()->set_priority_class_name("high");
  Submit(job);
  Show(CreatedPods()[0], "Running");
  Turn();
  world_.store.priorities.clear();
  world_.jobs.TouchAll();
  Turn();
  EXPECT_EQ(StatusOf("train").state(), "Running");
}

TEST_F(JobControllerTest, AMissingPriceIsNamedAndNotZero) {
  StartWith(8, 0);
  Submit(MakeJob("train", 1, 2));
  Show(CreatedPods()[0], "Running");
  world_.clock.Advance(Seconds(10));
  Show(CreatedPods()[0], "Succeeded");
  Turn();
  EXPECT_EQ(StatusOf("train").usage().basis(), "PriceMissing");
  EXPECT_EQ(StatusOf("train").usage().cost(), "");
  EXPECT_THAT(StatusOf("train").usage().message(), HasSubstr("PriceBook book"));
}

TEST_F(JobControllerTest, ALostMemberRestartsTheWholeGangOnceTheOldPodsAreGone) {
  StartWith(8, 0);
  Submit(MakeJob("train", 3, 1));
  const auto first = CreatedPods();
  for (const auto& pod : first) Show(pod, "Running");
  Turn();
  Remove(first[1]);
  Turn();
  EXPECT_EQ(StatusOf("train").state(), "Restarting");
  EXPECT_THAT(world_.writes.Of("delete", "pods"), SizeIs(2));
  world_.clock.Advance(Seconds(10));
  Turn();
  EXPECT_THAT(CreatedPods(), SizeIs(3)) << "old and new ranks never coexist";
  Remove(first[0]);
  Remove(first[2]);
  world_.clock.Advance(Seconds(10));
  Turn();
  Turn();
  const auto all = CreatedPods();
  ASSERT_THAT(all, SizeIs(6));
  EXPECT_EQ(all[3].name, "train-2-worker-0");
  EXPECT_EQ(StatusOf("train").failures(), 0) << "a disruption is not the program's fault";
}

TEST_F(JobControllerTest, TheDeletionOfAFinishedMemberChangesNothing) {
  StartWith(8, 0);
  Submit(MakeJob("train", 2, 1));
  const auto pods = CreatedPods();
  for (const auto& pod : pods) Show(pod, "Running");
  Turn();
  Show(pods[0], "Succeeded");
  Turn();
  world_.writes.EndAll();
  Remove(pods[0]);
  Turn();
  EXPECT_EQ(StatusOf("train").state(), "Running");
  Show(pods[1], "Succeeded");
  Turn();
  EXPECT_EQ(StatusOf("train").state(), "Completed");
}

TEST_F(JobControllerTest, AFailingProgramIsRetriedUpToTheLimitAndThenFinal) {
  StartWith(8, 0);
  Submit(MakeJob("train", 1, 1));
  Show(CreatedPods()[0], "Failed", 3);
  Turn();
  EXPECT_EQ(StatusOf("train").state(), "Restarting");
  EXPECT_EQ(StatusOf("train").failures(), 1);
  world_.clock.Advance(Seconds(10));
  Turn();
  Turn();
  ASSERT_THAT(CreatedPods(), SizeIs(2));
  Show(CreatedPods()[1], "Failed", 3);
  Turn();
  Turn();
  EXPECT_EQ(StatusOf("train").state(), "Failed");
  EXPECT_EQ(StatusOf("train").reason(), "RetryLimitReached");
  EXPECT_THAT(StatusOf("train").message(), HasSubstr("exited with code 3"));
}

TEST_F(JobControllerTest, AMemberThatTheStockSchedulerRefusesVoidsThePlan) {
  StartWith(8, 0);
  Submit(MakeJob("train", 2, 1));
  const auto pods = CreatedPods();
  Show(pods[0], "Running");
  auto stuck = world_.Appear(pods[1].body, "pod-stuck");
  stuck.waiting_reason = "Unschedulable";
  stuck.waiting_message = "Insufficient cpu";
  world_.store.PutPod(stuck);
  world_.jobs.OnPod(stuck, false);
  Turn();
  EXPECT_EQ(StatusOf("train").state(), "Starting");
  world_.clock.Advance(Seconds(5));
  Turn();
  EXPECT_EQ(StatusOf("train").state(), "Restarting");
  EXPECT_EQ(StatusOf("train").reason(), "PodUnschedulable");
  EXPECT_THAT(StatusOf("train").message(), HasSubstr("Insufficient cpu"));
}

TEST_F(JobControllerTest, AfterACrashPodsOfALaterAttemptAreAdoptedAndHalfAGangIsStartedAnew) {
  StartWith(8, 0);
  Submit(MakeJob("train", 2, 1));
  const auto pods = CreatedPods();
  // The operator dies; only one pod was made, the status was never written.
  World after;
  after.nodes.Start();
  after.Admit("n1", "nvidia", 8);
  auto record = after.Appear(pods[0].body, "pod-0");
  record.bound = record.running = true;
  after.store.PutPod(record);
  after.jobs.OnJob(MakeJob("train", 2, 1));
  after.jobs.Start();
  after.jobs.Reconcile();
  after.cycle.Run();
  const auto status = *after.jobs.Samples()[0].status;
  EXPECT_EQ(status.attempt(), 1);
  EXPECT_EQ(status.state(), "Restarting");
  EXPECT_EQ(status.reason(), "PodLost");
  std::size_t deleted = 0;
  for (const auto& write : after.writes.Of("delete", "pods"))
    deleted += write.name_space == "team" ? 1 : 0;
  EXPECT_EQ(deleted, 1U);
}

TEST_F(JobControllerTest, PodsOfADeletedJobAreRemoved) {
  StartWith(8, 0);
  const auto job = MakeJob("train", 1, 1);
  Submit(job);
  Show(CreatedPods()[0], "Running");
  Turn();
  world_.jobs.OnJobDeleted(job);
  Turn();
  EXPECT_THAT(world_.writes.Of("delete", "pods"), SizeIs(1));
}

TEST_F(JobControllerTest, AWaitingJobIsWrittenOnceNotOncePerCycle) {
  StartWith(8, 0);
  Submit(MakeJob("big", 1, 8));
  Submit(MakeJob("waits", 1, 8));
  world_.writes.EndAll();
  const auto count = [&] {
    std::size_t n = 0;
    for (const auto& write : world_.writes.Of("patch", "gpujobs/status"))
      n += write.name == "waits" ? 1 : 0;
    return n;
  };
  Turn();
  world_.writes.EndAll();
  const std::size_t before = count();
  for (int i = 0; i < 20; ++i) {
    world_.clock.Advance(Seconds(1));
    world_.jobs.TouchAll();
    Turn();
    world_.writes.EndAll();
  }
  EXPECT_LE(count() - before, 1U);
}

TEST_F(JobControllerTest, ARunningJobsBillAloneIsNoReasonToWrite) {
  StartWith(8, 0);
  Submit(MakeJob("train", 2, 2));
  const auto pods = CreatedPods();
  for (const auto& pod : pods) Show(pod, "Running");
  Turn();
  world_.writes.EndAll();
  Turn();
  world_.writes.EndAll();
  world_.clock.Advance(Seconds(3));
  Turn();
  world_.writes.EndAll();
  const std::size_t before = world_.writes.Of("patch", "gpujobs/status").size();
  EXPECT_LE(before, 3U) << "placed, running, counters";
  for (int i = 0; i < 20; ++i) {
    world_.clock.Advance(Seconds(1));
    world_.jobs.TouchAll();
    Turn();
    world_.writes.EndAll();
  }
  EXPECT_EQ(world_.writes.Of("patch", "gpujobs/status").size(), before);
}

TEST_F(JobControllerTest, AShortStartIsWrittenOnceWithTheRunningOfItsPods) {
  StartWith(8, 0);
  Submit(MakeJob("train", 2, 2));
  for (const char* phase : {"Pending", "Running"}) {
    world_.clock.Advance(Millis{900});
    for (const auto& pod : CreatedPods()) Show(pod, phase);
    Turn();
    world_.writes.EndAll();
  }
  const auto writes = world_.writes.Of("patch", "gpujobs/status");
  ASSERT_THAT(writes, SizeIs(1));
  EXPECT_THAT(writes[0].body, HasSubstr(R"("state":"Running")"));
}

TEST_F(JobControllerTest, AStartThatTakesLongerIsToldAfterTwoSeconds) {
  StartWith(8, 0);
  Submit(MakeJob("train", 2, 2));
  for (const auto& pod : CreatedPods()) Show(pod, "Pending");
  EXPECT_EQ(world_.jobs.NextWake(), world_.clock.Now() + Seconds(2));
  for (int i = 0; i < 9; ++i) {
    world_.clock.Advance(Seconds(1));
    Turn();
    world_.writes.EndAll();
  }
  const auto writes = world_.writes.Of("patch", "gpujobs/status");
  ASSERT_THAT(writes, SizeIs(1));
  EXPECT_THAT(writes[0].body, HasSubstr(R"("state":"Starting")"));
}

TEST_F(JobControllerTest, WhereManyWritesWaitAJobSaysOnlyWhereItStandsInTheEnd) {
  StartWith(8, 0);
  world_.writes.depth = 1000;
  Submit(MakeJob("train", 1, 8));
  Submit(MakeJob("waits", 1, 8));
  for (const auto& pod : CreatedPods()) Show(pod, "Running");
  Turn();
  EXPECT_THAT(world_.writes.Of("patch", "gpujobs/status"), IsEmpty());
  EXPECT_LE(world_.jobs.NextWake(), world_.clock.Now() + Seconds(1));
  world_.writes.depth = 0;
  Turn();
  world_.writes.EndAll();
  const auto writes = world_.writes.Of("patch", "gpujobs/status");
  ASSERT_THAT(writes, SizeIs(2));
  EXPECT_THAT(writes[0].body, HasSubstr(R"("state":"Pending")"));
  EXPECT_THAT(writes[1].body, HasSubstr(R"("state":"Running")"));
}

TEST_F(JobControllerTest, TheEndOfAJobIsToldHoweverManyWritesWait) {
  StartWith(8, 0);
  Submit(MakeJob("train", 1, 8));
  world_.writes.depth = 1000;
  for (const auto& pod : CreatedPods()) Show(pod, "Succeeded");
  Turn();
  const auto writes = world_.writes.Of("patch", "gpujobs/status");
  ASSERT_THAT(writes, SizeIs(1));
  EXPECT_THAT(writes[0].body, HasSubstr(R"("state":"Completed")"));
}

TEST_F(JobControllerTest, AnImpossibleJobIsToldSoAndTouchesNothing) {
  StartWith(8, 0);
  auto bad = MakeJob("bad", 1, 1);
  bad.mutable_spec()->mutable_roles(0)->set_replicas(10'000);
  Submit(bad);
  EXPECT_EQ(StatusOf("bad").reason(), "Misconfigured");
  EXPECT_THAT(StatusOf("bad").message(), HasSubstr("spec.roles[0].replicas"));
  auto unknown = MakeJob("unknown", 1, 1);
  unknown.mutable_spec()->set_priority_class_name("nobody");
  Submit(unknown);
  EXPECT_EQ(StatusOf("unknown").reason(), "Misconfigured");
  EXPECT_THAT(CreatedPods(), IsEmpty());
}

TEST_F(JobControllerTest, ASuspendedJobGivesItsDevicesBack) {
  StartWith(8, 0);
  auto job = MakeJob("train", 1, 8);
  Submit(job);
  const auto pods = CreatedPods();
  Show(pods[0], "Running");
  Turn();
  job.mutable_spec()->set_suspend(true);
  Submit(job);
  EXPECT_THAT(world_.writes.Of("delete", "pods"), SizeIs(1));
  Remove(pods[0]);
  Turn();
  EXPECT_EQ(StatusOf("train").state(), "Suspended");
  job.mutable_spec()->set_suspend(false);
  world_.clock.Advance(Seconds(10));
  Submit(job);
  Turn();
  EXPECT_EQ(StatusOf("train").state(), "Starting");
  EXPECT_EQ(StatusOf("train").attempt(), 2);
}

}  // namespace
}  // namespace bimetal::test
