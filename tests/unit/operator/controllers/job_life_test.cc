#include "operator/controllers/job_life.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace bimetal::op {
namespace {

using core::AllowedVariants;
using core::FailureClass;
using core::NodesToAvoid;
using core::RetryAction;
using core::WaitingSince;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

core::Job TwoVendors() {
  core::Job job;
  job.name = "train";
  job.created = *ParseTime("2026-01-01T00:00:00Z");
  for (const auto* name : {"cuda", "rocm"}) {
    core::Variant variant;
    variant.name = name;
    variant.vendor = std::string(name) == "cuda" ? core::Vendor::kNvidia : core::Vendor::kAmd;
    job.variants.push_back(variant);
  }
  return job;
}

AttemptView Failed(FailureClass failure) {
  return Ended(AttemptEnd::kFailed, failure, "Why", "what happened");
}

api::Attempt* AddRow(api::GPUJobStatus* status, const std::string& outcome,
                     const std::string& failure, const std::string& end) {
  auto* row = status->add_attempts();
  row->set_number(status->attempts_size());
  row->set_variant("cuda");
  row->set_outcome(outcome);
  row->set_class_(failure);
  row->set_start_time("2026-01-01T00:00:00Z");
  row->set_end_time(end);
  return row;
}

void AddCondition(api::GPUJobStatus* status, const std::string& type, const std::string& value,
                  const std::string& since) {
  auto* condition = status->add_conditions();
  condition->set_type(type);
  condition->set_status(value);
  condition->set_last_transition_time(since);
}

TEST(AfterAttempt, EveryClassIsRetriedOrNotByDefaultAndCountsOrNot) {
  const core::Job job = TwoVendors();
  struct Case {
    FailureClass failure;
    bool final, counts;
  };
  for (const Case& one :
       {Case{FailureClass::kUserError, false, true}, Case{FailureClass::kOutOfMemory, false, true},
        Case{FailureClass::kImagePull, false, false},
        Case{FailureClass::kDeviceFault, false, false}, Case{FailureClass::kNodeLost, false, false},
        Case{FailureClass::kEvicted, false, false}, Case{FailureClass::kPreempted, false, false},
        Case{FailureClass::kTimeout, true, false}}) {
    const auto step = AfterAttempt(job, Failed(one.failure), 0, 1);
    EXPECT_EQ(step.final, one.final) << core::FailureClassName(one.failure);
    EXPECT_EQ(step.counts, one.counts) << core::FailureClassName(one.failure);
  }
}

TEST(AfterAttempt, ARuleOfTheJobWinsOverTheDefault) {
  core::Job job = TwoVendors();
  job.retry_limit = 1;
  job.retry_rules = {{FailureClass::kOutOfMemory, RetryAction::kFail, false},
                     {FailureClass::kNodeLost, RetryAction::kRetryElsewhere, true},
                     {FailureClass::kTimeout, RetryAction::kRetry, true}};
  const auto memory = AfterAttempt(job, Failed(FailureClass::kOutOfMemory), 0, 1);
  EXPECT_TRUE(memory.final);
  EXPECT_EQ(memory.reason, "NotRetried");
  EXPECT_THAT(memory.message, HasSubstr("OutOfMemory"));
  EXPECT_TRUE(AfterAttempt(job, Failed(FailureClass::kNodeLost), 0, 1).counts);
  EXPECT_FALSE(AfterAttempt(job, Failed(FailureClass::kTimeout), 0, 1).final);
  const auto limit = AfterAttempt(job, Failed(FailureClass::kNodeLost), 1, 1);
  EXPECT_TRUE(limit.final);
  EXPECT_EQ(limit.reason, "RetryLimitReached");
}

TEST(AfterAttempt, PausesDoubleUpToTheLongestAndAPreemptedJobWaitsForNothing) {
  core::Job job = TwoVendors();
  job.retry_limit = 100;
  job.retry_backoff = Seconds(10);
  EXPECT_EQ(AfterAttempt(job, Failed(FailureClass::kUserError), 0, 1).pause, Seconds(10));
  EXPECT_EQ(AfterAttempt(job, Failed(FailureClass::kUserError), 2, 1).pause, Seconds(40));
  EXPECT_EQ(AfterAttempt(job, Failed(FailureClass::kUserError), 60, 1).pause, Minutes(5));
  EXPECT_EQ(AfterAttempt(job, Failed(FailureClass::kEvicted), 0, 3).pause, Seconds(4));
  EXPECT_EQ(AfterAttempt(job, Failed(FailureClass::kPreempted), 0, 9).pause, Millis{0});
  EXPECT_GE(AfterAttempt(job, Failed(FailureClass::kImagePull), 0, 1).pause, Seconds(30));
  job.retry_backoff = Millis{0};
  EXPECT_EQ(AfterAttempt(job, Failed(FailureClass::kUserError), 60, 1).pause, Millis{0});
}

TEST(JudgeBudget, ComparesOnlyWhatIsPricedInItsOwnCurrency) {
  core::Job job = TwoVendors();
  api::Usage usage;
  EXPECT_FALSE(JudgeBudget(job, usage));
  job.budget = core::Budget{2'000'000'000, "EUR", core::BudgetAction::kStop};
  EXPECT_EQ(JudgeBudget(job, usage)->status, "False") << "nothing has run";
  usage.set_currency("EUR");
  usage.set_basis("Running");
  usage.set_nano_cost(1'999'999'999);
  EXPECT_EQ(JudgeBudget(job, usage)->status, "False");
  usage.set_nano_cost(2'000'000'000);
  EXPECT_EQ(JudgeBudget(job, usage)->status, "True");
  usage.set_currency("USD");
  EXPECT_EQ(JudgeBudget(job, usage)->status, "Unknown");
  EXPECT_EQ(JudgeBudget(job, usage)->reason, "CurrencyMismatch");
}

TEST(JudgeBudget, AMissingPriceIsUnknownUnlessWhatIsPricedIsEnough) {
  core::Job job = TwoVendors();
  job.budget = core::Budget{2'000'000'000, "EUR", core::BudgetAction::kStop};
  api::Usage usage;
  usage.set_currency("EUR");
  usage.set_basis("PriceMissing");
  usage.set_nano_cost(1);
  EXPECT_EQ(JudgeBudget(job, usage)->status, "Unknown");
  EXPECT_EQ(JudgeBudget(job, usage)->reason, "PriceMissing");
  usage.set_nano_cost(2'000'000'000);
  EXPECT_EQ(JudgeBudget(job, usage)->status, "True");
}

TEST(NodesToAvoid, AreThoseWhereItFailedWhileTheRuleSaysElsewhere) {
  core::Job job = TwoVendors();
  job.retry_rules = {{FailureClass::kUserError, RetryAction::kRetryElsewhere, true}};
  api::GPUJobStatus status;
  AddRow(&status, "Failed", "UserError", "2026-01-01T01:00:00Z")->add_failed_nodes("n2");
  AddRow(&status, "Disrupted", "Evicted", "2026-01-01T01:10:00Z")->add_failed_nodes("n3");
  AddRow(&status, "Failed", "UserError", "2026-01-01T01:20:00Z")->add_failed_nodes("n1");
  const auto at = [&](const char* time) { return NodesToAvoid(job, status, *ParseTime(time)); };
  EXPECT_THAT(at("2026-01-01T01:30:00Z").nodes, ElementsAre(NodeName{"n1"}, NodeName{"n2"}));
  EXPECT_EQ(*at("2026-01-01T01:30:00Z").until, *ParseTime("2026-01-01T02:00:00Z"));
  EXPECT_THAT(at("2026-01-01T02:00:00Z").nodes, ElementsAre(NodeName{"n1"}));
  EXPECT_THAT(at("2026-01-01T03:00:00Z").nodes, IsEmpty());
}

TEST(NodesToAvoid, ANodeThatTheStockSchedulerRefusedIsLeftForAWhile) {
  const core::Job job = TwoVendors();
  api::GPUJobStatus status;
  AddRow(&status, "NotScheduled", "", "2026-01-01T01:00:00Z")->add_failed_nodes("n2");
  EXPECT_THAT(NodesToAvoid(job, status, *ParseTime("2026-01-01T01:05:00Z")).nodes,
              ElementsAre(NodeName{"n2"}));
  EXPECT_THAT(NodesToAvoid(job, status, *ParseTime("2026-01-01T01:10:00Z")).nodes, IsEmpty());
}

TEST(AllowedVariants, TheVendorChangesAtARestartOnlyWhereTheJobSaysSo) {
  core::Job job = TwoVendors();
  api::GPUJobStatus status;
  EXPECT_THAT(AllowedVariants(job, status), ElementsAre(0, 1)) << "before the first start";
  AddRow(&status, "NotScheduled", "", "2026-01-01T01:00:00Z");
  EXPECT_THAT(AllowedVariants(job, status), ElementsAre(0, 1)) << "it never ran";
  AddRow(&status, "Disrupted", "NodeLost", "2026-01-01T02:00:00Z");
  EXPECT_THAT(AllowedVariants(job, status), ElementsAre(0, 1)) << "no checkpoint to be read";
  job.checkpoint = core::Checkpoint{};
  EXPECT_THAT(AllowedVariants(job, status), ElementsAre(0));
  job.checkpoint->portable_across_vendors = true;
  EXPECT_THAT(AllowedVariants(job, status), ElementsAre(0, 1));
  job.switch_on_restart = core::SwitchOnRestart::kNever;
  EXPECT_THAT(AllowedVariants(job, status), ElementsAre(0));
  job.switch_on_restart = core::SwitchOnRestart::kAlways;
  job.checkpoint->portable_across_vendors = false;
  EXPECT_THAT(AllowedVariants(job, status), ElementsAre(0, 1));
}

TEST(StartDeadline, CountsFromCreationOrTheEndOfASuspensionAndOnlyBeforeTheFirstStart) {
  core::Job job = TwoVendors();
  api::GPUJobStatus status;
  EXPECT_FALSE(StartDeadline(job, status));
  job.start_deadline = Minutes(10);
  EXPECT_EQ(StartDeadline(job, status), *ParseTime("2026-01-01T00:10:00Z"));
  AddCondition(&status, "Suspended", "False", "2026-01-02T00:00:00Z");
  EXPECT_EQ(StartDeadline(job, status), *ParseTime("2026-01-02T00:10:00Z"));
  AddRow(&status, "NotScheduled", "", "2026-01-02T00:01:00Z");
  EXPECT_TRUE(StartDeadline(job, status)) << "a plan that was void is no start";
  AddRow(&status, "Failed", "UserError", "2026-01-02T00:02:00Z");
  EXPECT_FALSE(StartDeadline(job, status));
}

TEST(AttemptDeadline, RunsFromWhenEveryPodRunsAndAtLastFromALongStart) {
  core::Job job = TwoVendors();
  job.max_duration = Minutes(10);
  api::GPUJobStatus status;
  status.set_attempt(1);
  AddRow(&status, "", "", "");
  EXPECT_EQ(AttemptDeadline(job, status, Minutes(30)), *ParseTime("2026-01-01T00:40:00Z"));
  AddCondition(&status, "PodsReady", "True", "2026-01-01T00:05:00Z");
  EXPECT_EQ(AttemptDeadline(job, status, Minutes(30)), *ParseTime("2026-01-01T00:15:00Z"));
}

TEST(WaitingSince, IsTheLastThingThatMadeItWait) {
  const core::Job job = TwoVendors();
  api::GPUJobStatus status;
  EXPECT_EQ(WaitingSince(job, status), job.created);
  AddRow(&status, "Failed", "UserError", "2026-01-01T01:00:00Z");
  EXPECT_EQ(WaitingSince(job, status), *ParseTime("2026-01-01T01:00:00Z"));
  AddCondition(&status, "Suspended", "False", "2026-01-01T02:00:00Z");
  EXPECT_EQ(WaitingSince(job, status), *ParseTime("2026-01-01T02:00:00Z"));
}

TEST(ExpiresAt, CountsFromTheEndOfAJobThatHasEnded) {
  api::GPUJob job;
  api::GPUJobStatus status;
  status.set_state("Running");
  job.mutable_spec()->mutable_limits()->set_ttl_after_finished("1h");
  EXPECT_FALSE(ExpiresAt(job, status));
  status.set_state("Failed");
  AddCondition(&status, "Failed", "True", "2026-01-01T01:00:00Z");
  EXPECT_EQ(ExpiresAt(job, status), *ParseTime("2026-01-01T02:00:00Z"));
  job.mutable_spec()->mutable_limits()->set_ttl_after_finished("soon");
  EXPECT_FALSE(ExpiresAt(job, status));
}

}  // namespace
}  // namespace bimetal::op
