// What changes around jobs while they run: quotas, pools, namespaces, the clock.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/operator/controllers/jobs_fixture.h"

namespace bimetal::test {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

class UpheavalTest : public JobControllerTest {
 protected:
  // A job of `devices` one-device pods on NVIDIA alone that runs.
  std::vector<op::Write> Run(const std::string& name, int devices) {
    auto job = MakeJob(name, devices, 1);
    job.mutable_spec()->mutable_variants()->DeleteSubrange(1, 1);
    const std::size_t before = CreatedPods().size();
    Submit(job);
    world_.writes.EndAll();
    auto pods = CreatedPods();
    pods.erase(pods.begin(), pods.begin() + static_cast<std::ptrdiff_t>(before));
    for (const auto& pod : pods) Show(pod, "Running");
    Turn();
    return pods;
  }
};

TEST_F(UpheavalTest, AQuotaThatFallsUnderARunningJobEndsNothingAndHoldsTheNext) {
  StartWith(8, 0);
  const auto pods = Run("first", 6);
  auto* quota = world_.store.queues["default"].mutable_spec()->add_quotas();
  quota->set_device_class("nvidia");
  quota->set_limit(2);
  const auto none = Run("second", 1);
  EXPECT_EQ(StatusOf("first").state(), "Running");
  EXPECT_THAT(none, SizeIs(0));
  EXPECT_EQ(StatusOf("second").reason(), "WaitingForQuota");
  EXPECT_THAT(StatusOf("second").message(), HasSubstr("0 are left of the queue's quota"));
  for (const auto& pod : pods) Show(pod, "Succeeded");
  Turn();
  for (const auto& pod : pods) Remove(pod);
  Turn();
  EXPECT_EQ(StatusOf("first").state(), "Completed");
  EXPECT_EQ(StatusOf("second").state(), "Starting") << "it heals by itself";
}

TEST_F(UpheavalTest, ANodeThatLeavesItsPoolKeepsItsJobAndTakesNoOther) {
  AddBook();
  StartWith(8, 0);
  Run("train", 2);
  auto& labels = *world_.store.pools["nvidia"].mutable_spec()->mutable_node_selector();
  labels["rack"] = "elsewhere";
  world_.nodes.TouchAll();
  world_.jobs.TouchAll();
  Turn();
  world_.clock.Advance(Seconds(10));
  Turn();
  EXPECT_EQ(StatusOf("train").state(), "Running");
  EXPECT_EQ(StatusOf("train").assignment().pool(), "nvidia");
  EXPECT_EQ(StatusOf("train").usage().currency(), "EUR") << "billed as it was placed";
  EXPECT_THAT(Run("next", 1), SizeIs(0));
  EXPECT_EQ(StatusOf("next").state(), "Pending");
  labels.erase("rack");
  world_.nodes.OnReport(world_.Report("n1", "nvidia", 8));
  world_.jobs.TouchAll();
  Turn();
  EXPECT_EQ(StatusOf("next").state(), "Starting") << "beside the two that are held";
}

TEST_F(UpheavalTest, APodThatATerminatingNamespaceRefusesIsTriedAgainAndNothingIsLost) {
  StartWith(8, 0);
  Submit(MakeJob("train", 2, 1));
  world_.writes.EndAll(Fail(ErrorCode::kForbidden,
                            "unable to create new content in namespace team because it is being "
                            "terminated"));
  Turn();
  EXPECT_THAT(StatusOf("train").message(), HasSubstr("it is being terminated"));
  EXPECT_EQ(StatusOf("train").state(), "Restarting");
  world_.jobs.OnJobDeleted(MakeJob("train", 2, 1));
  world_.clock.Advance(Minutes(1));
  Turn();
  EXPECT_THAT(world_.cycle.AssumedPods(), SizeIs(0)) << "no device stays held for it";
}

TEST_F(UpheavalTest, AClockThatJumpsNeverBillsLessThanNothingNorEndsAJob) {
  AddBook();
  StartWith(8, 0);
  const auto pods = Run("train", 2);
  world_.clock.Advance(Seconds(100));
  Turn();
  world_.clock.Advance(Seconds(-3600));
  Turn();
  world_.jobs.TouchAll();
  Turn();
  EXPECT_EQ(StatusOf("train").state(), "Running");
  EXPECT_GE(StatusOf("train").usage().device_milliseconds(), 0);
  EXPECT_GE(StatusOf("train").usage().nano_cost(), 0);
  world_.clock.Advance(Minutes(60 * 24 * 400));
  world_.nodes.OnReport(world_.Report("n1", "nvidia", 8));
  Turn();
  EXPECT_EQ(StatusOf("train").state(), "Running") << "it has no bound on its time";
  for (const auto& pod : pods) Show(pod, "Succeeded");
  Turn();
  EXPECT_EQ(StatusOf("train").state(), "Completed");
}

}  // namespace
}  // namespace bimetal::test
