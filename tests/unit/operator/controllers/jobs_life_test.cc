// The life of a job beyond its first attempt: classes of failure, limits, suspension, conditions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/controllers/job_life.h"
#include "tests/unit/operator/controllers/jobs_fixture.h"

namespace bimetal::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

class JobLifeTest : public JobControllerTest {
 protected:
  std::string Condition(const std::string& job, const std::string& type) {
    const auto* condition = op::FindCondition(StatusOf(job), type);
    return condition == nullptr ? "-" : condition->status() + "/" + condition->reason();
  }

  // The last attempt's row.
  const api::Attempt& RowOf(const std::string& job) { return *StatusOf(job).attempts().rbegin(); }

  std::vector<std::string> EventsOf(const std::string& job) const {
    std::vector<std::string> out;
    for (const auto& write : world_.writes.Of("create", "events")) {
      if (write.name.starts_with(job + ".")) {
        api::Event event;
        EXPECT_TRUE(kube::FromJson(write.body, &event));
        out.push_back(event.reason());
      }
    }
    return out;
  }

  // Time passes; every agent goes on reporting.
  void Pass(Millis time) {
    world_.clock.Advance(time);
    for (const auto& [name, node] : world_.store.nodes) {
      for (const auto& [resource, count] : node.offered) {
        const std::string vendor = resource.substr(0, resource.find('.'));
        world_.nodes.OnReport(world_.Report(name, vendor, static_cast<int>(count)));
      }
    }
    Turn();
    Turn();
  }

  // The one pod of the newest attempt.
  op::Write Newest() { return CreatedPods().back(); }

  void RemoveAll() {
    for (const auto& write : CreatedPods()) {
      if (world_.store.pods.contains({"team", write.name})) Remove(write);
    }
    Turn();
  }
};

TEST_F(JobLifeTest, AProgramThatOutgrewItsMemoryIsOutOfMemoryAndTheRuleForItHolds) {
  StartWith(8, 0);
  auto job = MakeJob("train", 1, 1);
  auto* rule = job.mutable_spec()->mutable_retry()->add_rules();
  rule->set_class_("OutOfMemory");
  rule->set_action("Fail");
  Submit(job);
  Show(Newest(), "Running");
  Turn();
  Show(Newest(), "Failed", 137);
  Turn();
  Turn();
  EXPECT_EQ(RowOf("train").class_(), "OutOfMemory");
  EXPECT_EQ(StatusOf("train").state(), "Failed");
  EXPECT_EQ(StatusOf("train").reason(), "NotRetried");
  EXPECT_EQ(Condition("train", "Failed"), "True/NotRetried");
  EXPECT_EQ(Condition("train", "Complete"), "-");
  EXPECT_THAT(EventsOf("train"), ElementsAre("NotRetried"));
}

TEST_F(JobLifeTest, ClassesTellTheProgramFromTheClusterAndOnlyTheProgramCounts) {
  StartWith(8, 0);
  Submit(MakeJob("train", 1, 1));
  Show(Newest(), "Running");
  Turn();
  EXPECT_EQ(Condition("train", "PodsReady"), "True/PodsRunning");
  world_.store.nodes.erase("n1");
  world_.jobs.TouchAll();
  Turn();
  EXPECT_EQ(RowOf("train").class_(), "NodeLost");
  EXPECT_EQ(RowOf("train").reason(), "NodeLost");
  EXPECT_THAT(RowOf("train").failed_nodes(), ElementsAre("n1"));
  EXPECT_EQ(StatusOf("train").failures(), 0);
  EXPECT_EQ(Condition("train", "PodsReady"), "False/NodeLost");
}

TEST_F(JobLifeTest, APodThatTheKubeletRefusesIsNoFaultOfTheProgram) {
  StartWith(8, 0);
  Submit(MakeJob("train", 1, 1));
  auto record = world_.Appear(Newest().body, "pod-x");
  record.bound = record.ended = record.disrupted = true;
  record.end_reason = "UnexpectedAdmissionError";
  world_.store.PutPod(record);
  world_.jobs.OnPod(record, false);
  Turn();
  EXPECT_EQ(RowOf("train").class_(), "Evicted");
  EXPECT_EQ(RowOf("train").reason(), "NodeRefusedPod");
  EXPECT_EQ(StatusOf("train").failures(), 0);
  EXPECT_EQ(StatusOf("train").state(), "Restarting");
}

TEST_F(JobLifeTest, ANodeThatRefusesThePodsOfThreeJobsTakesNoMore) {
  StartWith(8, 0);
  for (const auto* name : {"one", "two", "three"}) {
    Submit(MakeJob(name, 1, 1));
    auto record = world_.Appear(Newest().body, std::string("pod-") + name);
    record.bound = record.ended = record.disrupted = true;
    record.end_reason = "UnexpectedAdmissionError";
    world_.store.PutPod(record);
    world_.jobs.OnPod(record, false);
    Turn();
  }
  const std::size_t before = CreatedPods().size();
  EXPECT_LT(before, 5U) << "few pods are wasted";
  world_.Show("n1");
  Pass(Seconds(10));
  EXPECT_THAT(CreatedPods(), SizeIs(before)) << "the node is closed";
  EXPECT_EQ(StatusOf("three").reason(), "WaitingForValidation");
  const auto devices = world_.nodes.DevicesOf("n1").at(core::Vendor::kNvidia).devices;
  EXPECT_FALSE(devices[0].open);
}

TEST_F(JobLifeTest, RetryElsewhereAvoidsTheNodeThatFailedIt) {
  StartWith(8, 0);
  auto job = MakeJob("train", 1, 1);
  job.mutable_spec()->mutable_retry()->set_limit(5);
  auto* rule = job.mutable_spec()->mutable_retry()->add_rules();
  rule->set_class_("UserError");
  rule->set_action("RetryElsewhere");
  rule->set_counts_toward_limit(true);
  Submit(job);
  ASSERT_EQ(StatusOf("train").assignment().nodes(0), "n1");
  Show(Newest(), "Failed", 1);
  Turn();
  Pass(Seconds(10));
  EXPECT_EQ(StatusOf("train").state(), "Pending") << "n1 is the only node there is";
  world_.Admit("n2", "nvidia", 8);
  Pass(Seconds(1));
  ASSERT_EQ(StatusOf("train").state(), "Starting");
  EXPECT_EQ(StatusOf("train").assignment().nodes(0), "n2");
}

TEST_F(JobLifeTest, AJobThatCannotStartInTimeFailsOnceAndForGood) {
  StartWith(8, 0);
  auto job = MakeJob("late", 4, 8);
  job.mutable_metadata()->set_creation_timestamp(FormatTime(world_.clock.Now()));
  job.mutable_spec()->mutable_limits()->set_start_deadline("10m");
  Submit(job);
  EXPECT_EQ(StatusOf("late").state(), "Pending");
  EXPECT_LE(*world_.jobs.NextWake(), world_.clock.Now() + Minutes(10));
  Pass(Minutes(11));
  EXPECT_EQ(StatusOf("late").state(), "Failed");
  EXPECT_EQ(StatusOf("late").reason(), "StartDeadlineExceeded");
  EXPECT_THAT(StatusOf("late").message(), HasSubstr("10m"));
  world_.Admit("n2", "nvidia", 64);
  Pass(Minutes(1));
  EXPECT_EQ(StatusOf("late").state(), "Failed");
  EXPECT_THAT(CreatedPods(), IsEmpty());
}

TEST_F(JobLifeTest, AnAttemptThatRunsTooLongIsEndedAndFailsTheJobUnlessARuleRetriesIt) {
  StartWith(8, 0);
  for (const bool retried : {false, true}) {
    const std::string name = retried ? "again" : "once";
    auto job = MakeJob(name, 1, 1);
    job.mutable_spec()->mutable_limits()->set_max_duration("10m");
    if (retried) {
      auto* rule = job.mutable_spec()->mutable_retry()->add_rules();
      rule->set_class_("Timeout");
      rule->set_action("Retry");
    }
    Submit(job);
    const auto pod = Newest();
    Show(pod, "Running");
    Turn();
    Pass(Minutes(9));
    EXPECT_EQ(StatusOf(name).state(), "Running");
    Pass(Minutes(2));
    EXPECT_EQ(StatusOf(name).state(), retried ? "Restarting" : "Stopping");
    EXPECT_EQ(RowOf(name).class_(), "Timeout");
    Remove(pod);
    Pass(Seconds(10));
    EXPECT_EQ(StatusOf(name).state(), retried ? "Starting" : "Failed");
    EXPECT_EQ(StatusOf(name).attempt(), retried ? 2 : 1);
    if (!retried) {
      EXPECT_EQ(StatusOf(name).reason(), "MaxDurationExceeded");
    }
  }
}

TEST_F(JobLifeTest, TheTimeOfASlowPullIsNoRunTimeAndHasABoundOfItsOwn) {
  StartWith(8, 0);
  auto job = MakeJob("pull", 1, 1);
  job.mutable_spec()->mutable_limits()->set_max_duration("10m");
  Submit(job);
  auto record = world_.Appear(Newest().body, "pod-pull");
  record.bound = record.creating = true;
  record.scheduled_at = world_.clock.Now();
  world_.store.PutPod(record);
  world_.jobs.OnPod(record, false);
  Turn();
  Pass(Minutes(20));
  EXPECT_EQ(StatusOf("pull").state(), "Starting") << "maxDuration has not begun";
  Pass(Minutes(11));
  EXPECT_EQ(StatusOf("pull").state(), "Restarting");
  EXPECT_EQ(RowOf("pull").class_(), "ImagePull");
  EXPECT_EQ(RowOf("pull").reason(), "ImagePullTimeout");
}

TEST_F(JobLifeTest, AnEndedJobIsDeletedAfterItsTimeByItsUidAndNotBefore) {
  StartWith(8, 0);
  auto job = MakeJob("train", 1, 1);
  job.mutable_spec()->mutable_limits()->set_ttl_after_finished("1h");
  Submit(job);
  Show(Newest(), "Succeeded");
  Turn();
  ASSERT_EQ(StatusOf("train").state(), "Completed");
  world_.writes.EndAll();
  Turn();
  Pass(Minutes(59));
  world_.writes.EndAll();
  EXPECT_THAT(world_.writes.Of("delete", "gpujobs"), IsEmpty());
  Pass(Minutes(2));
  ASSERT_THAT(world_.writes.Of("delete", "gpujobs"), SizeIs(1));
  Pass(Minutes(2));
  EXPECT_THAT(world_.writes.Of("delete", "gpujobs"), SizeIs(1)) << "asked for once";
  world_.writes.Of("delete", "gpujobs")[0].done(Fail(ErrorCode::kUnavailable, "down"));
  Pass(Minutes(1));
  EXPECT_THAT(world_.writes.Of("delete", "gpujobs"), SizeIs(2)) << "and again where it failed";
}

TEST_F(JobLifeTest, AJobThatEndedBeforeTheOperatorStartedIsDeletedToo) {
  StartWith(8, 0);
  auto job = MakeJob("old", 1, 1);
  job.mutable_spec()->mutable_limits()->set_ttl_after_finished("1h");
  auto& status = *job.mutable_status();
  status.set_state("Completed");
  auto* condition = status.add_conditions();
  condition->set_type("Complete");
  condition->set_status("True");
  condition->set_last_transition_time(FormatTime(world_.clock.Now() - Minutes(90)));
  Submit(job);
  EXPECT_THAT(world_.writes.Of("delete", "gpujobs"), SizeIs(1));
  EXPECT_THAT(CreatedPods(), IsEmpty()) << "what has ended never runs again";
}

TEST_F(JobLifeTest, ABudgetStopsSuspendsOrWarnsOnceItIsSpent) {
  StartWith(8, 0);
  AddBook();  // a thousandth EUR a second and device
  for (const auto* action : {"Warn", "Suspend", "Stop"}) {
    const std::string name = std::string("b-") + (action[1] == 'a'   ? "warn"
                                                  : action[1] == 'u' ? "suspend"
                                                                     : "stop");
    auto job = MakeJob(name, 1, 1);
    auto* budget = job.mutable_spec()->mutable_limits()->mutable_budget();
    budget->set_amount("0.10");
    budget->set_currency("EUR");
    budget->set_action(action);
    Submit(job);
    const auto pod = Newest();
    bound_at_ = world_.clock.Now();
    Show(pod, "Running");
    Turn();
    Pass(Seconds(90));
    EXPECT_EQ(StatusOf(name).state(), "Running");
    EXPECT_EQ(Condition(name, "BudgetExceeded"), "False/WithinBudget");
    Pass(Seconds(15));
    EXPECT_EQ(Condition(name, "BudgetExceeded"), "True/BudgetExceeded");
    EXPECT_THAT(EventsOf(name), testing::Contains("BudgetExceeded"));
    if (action == std::string("Warn")) {
      EXPECT_EQ(StatusOf(name).state(), "Running");
      continue;
    }
    Remove(pod);
    Pass(Seconds(10));
    EXPECT_EQ(StatusOf(name).state(), action == std::string("Stop") ? "Failed" : "Suspended");
    EXPECT_EQ(StatusOf(name).reason(), "BudgetExceeded");
    if (action == std::string("Stop")) continue;
    EXPECT_EQ(Condition(name, "Suspended"), "True/BudgetExceeded");
    budget->set_amount("9");
    Submit(job);
    Pass(Seconds(5));
    EXPECT_EQ(StatusOf(name).state(), "Starting") << "a larger budget lets it go on";
    EXPECT_EQ(Condition(name, "Suspended"), "False/Resumed");
  }
}

TEST_F(JobLifeTest, APreemptedJobGoesBackToTheQueueAndItDoesNotCount) {
  StartWith(8, 0);
  Submit(MakeJob("victim", 1, 8));
  Show(Newest(), "Running");
  Turn();
  EXPECT_TRUE(
      world_.jobs.Evict({Uid{"uid-victim"}, Uid{"uid-other"}, "team/other takes its place"}));
  EXPECT_EQ(StatusOf("victim").state(), "Restarting");
  EXPECT_EQ(Condition("victim", "Preempted"), "True/Preempted");
  EXPECT_EQ(RowOf("victim").class_(), "Preempted");
  EXPECT_THAT(EventsOf("victim"), testing::Contains("Preempted"));
  EXPECT_THAT(world_.writes.Of("delete", "pods"), SizeIs(1));
  RemoveAll();
  Pass(Seconds(1));
  EXPECT_EQ(StatusOf("victim").state(), "Starting");
  EXPECT_EQ(StatusOf("victim").attempt(), 2);
  EXPECT_EQ(StatusOf("victim").failures(), 0);
  EXPECT_EQ(Condition("victim", "Preempted"), "False/Placed");
}

TEST_F(JobLifeTest, ASuspensionIsAConditionAndBothWaysAreTold) {
  StartWith(8, 0);
  auto job = MakeJob("train", 1, 8);
  Submit(job);
  EXPECT_EQ(Condition("train", "QuotaReserved"), "True/Placed");
  EXPECT_EQ(Condition("train", "Placed"), "True/Placed");
  Show(Newest(), "Running");
  Turn();
  job.mutable_spec()->set_suspend(true);
  Submit(job);
  RemoveAll();
  EXPECT_EQ(Condition("train", "Suspended"), "True/Suspended");
  EXPECT_EQ(Condition("train", "Placed"), "False/Suspended");
  EXPECT_EQ(RowOf("train").outcome(), "Suspended");
  EXPECT_EQ(RowOf("train").class_(), "");
  job.mutable_spec()->set_suspend(false);
  Pass(Seconds(10));
  Submit(job);
  Turn();
  EXPECT_EQ(Condition("train", "Suspended"), "False/Resumed");
  EXPECT_EQ(StatusOf("train").state(), "Starting");
  EXPECT_THAT(EventsOf("train"), ElementsAre("Suspended", "Suspended", "Placed"));
}

TEST_F(JobLifeTest, AGangThatSucceededIsCompleteThoughItWasToBeSuspended) {
  StartWith(8, 0);
  auto job = MakeJob("train", 1, 8);
  Submit(job);
  Show(Newest(), "Running");
  Turn();
  Show(Newest(), "Succeeded");
  job.mutable_spec()->set_suspend(true);
  Submit(job);
  EXPECT_EQ(StatusOf("train").state(), "Completed");
  EXPECT_EQ(Condition("train", "Complete"), "True/Completed");
  EXPECT_EQ(Condition("train", "QuotaReserved"), "False/Completed");
}

TEST_F(JobLifeTest, AfterACheckpointOfOneVendorTheJobStaysWithIt) {
  StartWith(8, 8);
  auto job = MakeJob("train", 1, 8);
  job.mutable_spec()->mutable_checkpoint()->set_path("/ckpt");
  Submit(job);
  ASSERT_EQ(StatusOf("train").assignment().variant(), "cuda");
  Show(Newest(), "Running");
  Turn();
  world_.store.nodes.erase("n1");
  world_.nodes.TouchAll();
  world_.jobs.TouchAll();
  Turn();
  RemoveAll();
  Pass(Seconds(10));
  EXPECT_EQ(StatusOf("train").state(), "Pending") << "a1 is free, and of the other vendor";
  bool barred = false;
  for (const auto& blocker : StatusOf("train").blockers()) {
    if (blocker.variant() != "rocm") continue;
    barred = true;
    EXPECT_EQ(blocker.reason(), "SwitchNotAllowed");
    EXPECT_THAT(blocker.unblocked_by(), HasSubstr("portableAcrossVendors"));
  }
  EXPECT_TRUE(barred);
}

TEST_F(JobLifeTest, WhatGoesAsItShouldIsToldByConditionsAlone) {
  StartWith(8, 0);
  Submit(MakeJob("train", 1, 1));
  Show(Newest(), "Running");
  Turn();
  Show(Newest(), "Succeeded");
  Turn();
  EXPECT_EQ(StatusOf("train").state(), "Completed");
  EXPECT_THAT(EventsOf("train"), IsEmpty());
}

TEST_F(JobLifeTest, AFailureIsToldOnceHoweverOftenItIsLookedAt) {
  StartWith(8, 0);
  Submit(MakeJob("train", 1, 1));
  Show(Newest(), "Failed", 3);
  for (int i = 0; i < 5; ++i) {
    world_.jobs.TouchAll();
    Turn();
  }
  EXPECT_THAT(EventsOf("train"), ElementsAre("PodFailed"));
}

TEST_F(JobLifeTest, AFaultThatIsFoundUnderAFailedPodTakesTheBlameFromTheProgram) {
  StartWith(8, 0);
  Submit(MakeJob("train", 1, 1));
  const auto pod = Newest();
  Show(pod, "Running");
  Turn();
  auto report = world_.Report("n1", "nvidia", 8);
  report.mutable_inventory()->mutable_devices(0)->set_in_use(true);
  report.mutable_inventory()->mutable_devices(0)->set_holder("team/" + pod.name);
  auto* finding = report.mutable_inventory()->add_findings();
  finding->set_code("XidFatal");
  finding->set_severity("Critical");
  finding->set_vendor("nvidia");
  finding->set_device("n1-0");
  finding->set_effect("Cordon");
  finding->set_event("1/79");
  finding->set_evidence("Xid 79");
  world_.nodes.OnReport(report);
  Turn();
  EXPECT_EQ(StatusOf("train").state(), "Running") << "the job decides when it fails";
  Show(pod, "Failed", 1);
  Turn();
  EXPECT_EQ(RowOf("train").class_(), "DeviceFault");
  EXPECT_THAT(RowOf("train").message(), HasSubstr("n1-0"));
  EXPECT_EQ(StatusOf("train").failures(), 0);
}

}  // namespace
}  // namespace bimetal::test
