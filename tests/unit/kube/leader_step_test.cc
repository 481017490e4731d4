#include <algorithm>
#include <random>

#include <gtest/gtest.h>

#include "kube/leader/leader.h"

namespace bimetal::kube {
namespace {

const LeaderConfig kConfig{"ns", "lease", "me", Seconds(8), Seconds(6), Seconds(2)};

using Seen = Result<std::optional<api::Lease>>;

api::Lease LeaseOf(const std::string& holder, const std::string& version) {
  api::Lease lease;
  lease.mutable_metadata()->set_resource_version(version);
  lease.mutable_spec()->set_holder_identity(holder);
  lease.mutable_spec()->set_lease_duration_seconds(8);
  // Far in the past by any clock: renewTime is the other's clock and must not matter.
  lease.mutable_spec()->set_renew_time("2001-01-01T00:00:00.000000Z");
  return lease;
}
Seen See(const std::string& holder, const std::string& version) {
  return std::optional<api::Lease>(LeaseOf(holder, version));
}
Seen Failed() { return Fail(ErrorCode::kUnavailable, "no connection"); }
Result<api::Lease> Conflict() { return Fail(ErrorCode::kConflict, "changed"); }

LeaderState Leading(Millis since) {
  return AfterWrite({}, LeaseOf("me", "1"), since, since, kConfig);
}

TEST(LeaderStepTest, CreatesALeaseWhereThereIsNone) {
  const LeaderStep step = Step({}, Seen(std::optional<api::Lease>()), Seconds(0), kConfig);
  EXPECT_EQ(step.action, LeaderAction::kCreate);
  EXPECT_FALSE(step.state.leading);
  EXPECT_TRUE(AfterWrite(step.state, LeaseOf("me", "1"), Seconds(0), Seconds(0), kConfig).leading);
}

TEST(LeaderStepTest, WaitsAWholeDurationOfItsOwnClock) {
  LeaderStep step = Step({}, See("other", "5"), Seconds(100), kConfig);
  EXPECT_EQ(step.action, LeaderAction::kWait);
  step = Step(step.state, See("other", "5"), Seconds(107), kConfig);
  EXPECT_EQ(step.action, LeaderAction::kWait);
  // Renewed meanwhile: the wait begins anew.
  step = Step(step.state, See("other", "6"), Seconds(107), kConfig);
  step = Step(step.state, See("other", "6"), Seconds(114), kConfig);
  EXPECT_EQ(step.action, LeaderAction::kWait);
  step = Step(step.state, See("other", "6"), Seconds(115), kConfig);
  EXPECT_EQ(step.action, LeaderAction::kAcquire);
}

TEST(LeaderStepTest, FailedLooksDoNotRestartTheWaitNorEndIt) {
  LeaderStep step = Step({}, See("other", "5"), Seconds(0), kConfig);
  step = Step(step.state, Failed(), Seconds(9), kConfig);
  EXPECT_EQ(step.action, LeaderAction::kWait);
  step = Step(step.state, See("other", "5"), Seconds(9), kConfig);
  EXPECT_EQ(step.action, LeaderAction::kAcquire);
}

TEST(LeaderStepTest, TakesAReleasedLeaseAtOnce) {
  EXPECT_EQ(Step({}, See("", "5"), Seconds(0), kConfig).action, LeaderAction::kAcquire);
}

TEST(LeaderStepTest, ARestartedLeaderTakesItsOwnLeaseAtOnce) {
  const LeaderStep step = Step({}, See("me", "5"), Seconds(0), kConfig);
  EXPECT_EQ(step.action, LeaderAction::kAcquire);
  EXPECT_FALSE(step.state.leading);  // only a write of ours makes us lead
}

TEST(LeaderStepTest, ALostRaceIsNoLeadership) {
  const LeaderStep step = Step({}, See("", "5"), Seconds(0), kConfig);
  EXPECT_FALSE(AfterWrite(step.state, Conflict(), Seconds(0), Seconds(1), kConfig).leading);
}

TEST(LeaderStepTest, StepsDownAtTheDeadlineCountedFromTheSending) {
  LeaderState state = Leading(Seconds(10));
  EXPECT_TRUE(Step(state, Failed(), Millis{15'999}, kConfig).state.leading);
  EXPECT_FALSE(Step(state, Failed(), Seconds(16), kConfig).state.leading);
  // A renewal that took five seconds to be answered counts from its beginning.
  state = AfterWrite(state, LeaseOf("me", "2"), Seconds(11), Seconds(16), kConfig);
  EXPECT_TRUE(state.leading);
  EXPECT_FALSE(Step(state, Failed(), Seconds(17), kConfig).state.leading);
  // One that was answered after the deadline makes no leader at all.
  EXPECT_FALSE(AfterWrite({}, LeaseOf("me", "3"), Seconds(20), Seconds(26), kConfig).leading);
}

TEST(LeaderStepTest, StepsDownWhenAnotherHoldsTheLease) {
  const LeaderStep step = Step(Leading(Seconds(10)), See("other", "9"), Seconds(11), kConfig);
  EXPECT_FALSE(step.state.leading);
  EXPECT_EQ(step.action, LeaderAction::kWait);
  EXPECT_EQ(step.state.holder, "other");
}

TEST(LeaderStepTest, StepsDownWhenTheLeaseWasDeleted) {
  const LeaderStep step =
      Step(Leading(Seconds(10)), Seen(std::optional<api::Lease>()), Seconds(11), kConfig);
  EXPECT_FALSE(step.state.leading);
  EXPECT_EQ(step.action, LeaderAction::kCreate);
}

// Two candidates on one lease under a random schedule of delays and failures: never two leaders.
TEST(LeaderStepTest, NeverTwoLeadersUnderAnySchedule) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    std::mt19937_64 random(seed);
    std::optional<api::Lease> lease;
    int version = 0;
    Millis now;
    LeaderConfig configs[2] = {kConfig, kConfig};
    configs[1].identity = "other";
    LeaderState states[2];
    Millis next[2];
    int reigns = 0;
    while (now < Minutes(5)) {
      const int who = next[0] <= next[1] ? 0 : 1;
      now = std::max(now, next[who]);
      const bool can_reach = random() % 4 != 0;
      const Seen seen = can_reach ? Seen(lease) : Failed();
      LeaderStep step = Step(states[who], seen, now, configs[who]);
      states[who] = step.state;
      const Millis begun = now;
      if (step.action != LeaderAction::kWait) {
        const bool arrives = random() % 4 != 0;
        const bool answered = arrives && random() % 4 != 0;
        if (arrives) lease = LeaseOf(configs[who].identity, std::to_string(++version));
        now = now + Millis{static_cast<std::int64_t>(random() % 200)};
        const bool was = states[who].leading;
        states[who] = AfterWrite(states[who], answered ? Result<api::Lease>(*lease) : Conflict(),
                                 begun, now, configs[who]);
        if (!was && states[who].leading) ++reigns;
      }
      const auto leads = [&](int i) {
        return states[i].leading && now - states[i].renewed_at < configs[i].renew_deadline;
      };
      ASSERT_FALSE(leads(0) && leads(1)) << "seed " << seed << " at " << now.v;
      // Sometimes a process hangs for longer than a lease.
      const bool hangs = random() % 20 == 0;
      next[who] = now + (hangs ? Seconds(12) : kConfig.renew_interval);
    }
    ASSERT_GT(reigns, 0);
  }
}

}  // namespace
}  // namespace bimetal::kube
