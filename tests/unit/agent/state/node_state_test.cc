#include "agent/state/node_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>

namespace bimetal::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr TimePoint kNow{1'700'000'000'000};
const std::map<std::string, std::string> kPrints = {{"amd", "fp-a"}, {"nvidia", "fp-n"}};

api::ReportNodeReply Reply(const std::string& expected_run = "") {
  api::ReportNodeReply reply;
  auto* order = reply.add_orders();
  order->set_vendor("amd");
  order->set_serve_device_plugin(true);
  order->set_resource_name("amd.com/gpu");
  order->set_open_fingerprint("fp-a");
  order->add_open_devices("GPU-1");
  order->set_expected_run(expected_run);
  return reply;
}

api::ValidationRun RunOf(const std::string& id, const std::string& vendor = "amd") {
  api::ValidationRun run;
  run.set_run(id);
  run.set_vendor(vendor);
  return run;
}

NodeState InBoot(const std::string& boot) {
  NodeState state{SavedState()};
  state.Observe(boot, kPrints);
  return state;
}

TEST(NodeStateTest, OrdersBeforeTheBootIsKnownAreDropped) {
  NodeState state{SavedState()};
  state.Observe("", kPrints);
  EXPECT_FALSE(state.Apply(Reply(), kNow));
  EXPECT_EQ(state.OrderOf("amd"), nullptr);
}

TEST(NodeStateTest, SameOrdersAgainChangeNothing) {
  auto state = InBoot("b1");
  EXPECT_TRUE(state.Apply(Reply(), kNow));
  EXPECT_FALSE(state.Apply(Reply(), kNow));
}

TEST(NodeStateTest, RestartInTheSameBootKeepsPassesAndRuns) {
  auto before = InBoot("b1");
  before.Apply(Reply("r1"), kNow);
  ASSERT_TRUE(before.AddRun(RunOf("r1"), "fp-a"));
  NodeState after{before.saved()};
  EXPECT_FALSE(after.Observe("b1", kPrints));
  EXPECT_EQ(after.OrderOf("amd")->open_fingerprint(), "fp-a");
  ASSERT_EQ(after.RunsToReport().size(), 1U);
  EXPECT_EQ(after.RunsToReport()[0].fingerprint(), "fp-a");
}

TEST(NodeStateTest, AnotherBootVoidsPassesAndRunsButNotThePlugin) {
  auto before = InBoot("b1");
  before.Apply(Reply("r1"), kNow);
  ASSERT_TRUE(before.AddRun(RunOf("r1"), ""));
  NodeState after{before.saved()};
  EXPECT_TRUE(after.Observe("b2", kPrints));
  EXPECT_TRUE(after.OrderOf("amd")->serve_device_plugin());
  EXPECT_EQ(after.OrderOf("amd")->open_fingerprint(), "");
  EXPECT_EQ(after.OrderOf("amd")->open_devices_size(), 0);
  EXPECT_THAT(after.RunsToReport(), IsEmpty());
  EXPECT_THAT(after.AcceptableRuns(), IsEmpty());
  EXPECT_EQ(after.saved().boot_id(), "b2");
}

TEST(NodeStateTest, OnlyOrderedRunsOfTheRightVendorAreTaken) {
  auto state = InBoot("b1");
  state.Apply(Reply("r1"), kNow);
  EXPECT_EQ(state.AddRun(RunOf("r2"), "").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(state.AddRun(RunOf("r1", "nvidia"), "").error().code, ErrorCode::kInvalid);
  EXPECT_TRUE(state.AddRun(RunOf("r1"), ""));
}

TEST(NodeStateTest, FingerprintThatChangedDuringTheRunIsLeftOut) {
  auto state = InBoot("b1");
  state.Apply(Reply("r1"), kNow);
  state.Observe("b1", {{"amd", "other"}});
  state.Observe("b1", kPrints);  // back again: the run still saw two machines
  ASSERT_TRUE(state.AddRun(RunOf("r1"), "fp-a"));
  EXPECT_EQ(state.RunsToReport()[0].fingerprint(), "");
}

TEST(NodeStateTest, RunThatNamesAnotherFingerprintIsLeftWithout) {
  auto state = InBoot("b1");
  state.Apply(Reply("r1"), kNow);
  ASSERT_TRUE(state.AddRun(RunOf("r1"), "fp-old"));
  EXPECT_EQ(state.RunsToReport()[0].fingerprint(), "");
}

TEST(NodeStateTest, RunStaysUntilItIsAcknowledged) {
  auto state = InBoot("b1");
  state.Apply(Reply("r1"), kNow);
  ASSERT_TRUE(state.AddRun(RunOf("r1"), ""));
  state.Apply(Reply(), kNow);
  EXPECT_EQ(state.RunsToReport().size(), 1U);
  auto reply = Reply();
  reply.add_acknowledged_runs("r1");
  EXPECT_TRUE(state.Apply(reply, kNow));
  EXPECT_THAT(state.RunsToReport(), IsEmpty());
}

TEST(NodeStateTest, RunSentAgainAfterALostAnswerIsTakenWithoutEffect) {
  auto state = InBoot("b1");
  state.Apply(Reply("r1"), kNow);
  ASSERT_TRUE(state.AddRun(RunOf("r1"), ""));
  ASSERT_TRUE(state.AddRun(RunOf("r1"), ""));
  EXPECT_EQ(state.RunsToReport().size(), 1U);
  auto reply = Reply();
  reply.add_acknowledged_runs("r1");
  state.Apply(reply, kNow);
  EXPECT_TRUE(state.AddRun(RunOf("r1"), ""));
  EXPECT_THAT(state.RunsToReport(), IsEmpty());
  EXPECT_THAT(state.AcceptableRuns(), ElementsAre("r1"));
}

TEST(NodeStateTest, KeptRunsAndRunsOfOneReportAreBounded) {
  auto state = InBoot("b1");
  for (std::size_t i = 0; i < NodeState::kMaxRuns; ++i) {
    const std::string id = "r" + std::to_string(i);
    state.Apply(Reply(id), kNow);
    ASSERT_TRUE(state.AddRun(RunOf(id), ""));
  }
  state.Apply(Reply("more"), kNow);
  EXPECT_EQ(state.AddRun(RunOf("more"), "").error().code, ErrorCode::kTooManyRequests);
  EXPECT_EQ(state.RunsToReport().size(), std::size_t{NodeState::kMaxRunsPerReport});
}

TEST(NodeStateTest, RunsAreBoundedInBytesToo) {
  auto state = InBoot("b1");
  const auto add = [&](const std::string& id) {
    state.Apply(Reply(id), kNow);
    auto run = RunOf(id);
    run.add_verdicts()->set_evidence(std::string(1'800'000, 'x'));
    return state.AddRun(run, "");
  };
  for (const char* id : {"r1", "r2", "r3", "r4"}) ASSERT_TRUE(add(id));
  EXPECT_EQ(add("r5").error().code, ErrorCode::kTooManyRequests);
  // Two would be more than a message holds beside the devices; the oldest goes all the same.
  EXPECT_EQ(state.RunsToReport().size(), 1U);
}

}  // namespace
}  // namespace bimetal::agent
