#include "operator/controllers/step.h"

#include <memory>

#include <gtest/gtest.h>

#include "tests/unit/operator/controllers/jobs_fixture.h"

namespace bimetal::test {
namespace {

TEST(Pace, AnIdleLoopDecidesAtOnceAndABusyOneASixthOfTheTime) {
  op::Pace pace{op::kCyclePace};
  Millis now = Seconds(1000);
  EXPECT_EQ(pace.Wait(now), Millis{0});
  std::int64_t spent = 0;
  const Millis end = now + Seconds(100);
  while (now < end) {
    const Millis wait = pace.Wait(now);
    EXPECT_LE(wait, Millis{1001});
    now = now + wait + Millis{40};
    spent += 40'000;
    pace.Spent(now, 40'000);
  }
  EXPECT_NEAR(static_cast<double>(spent) * 1e-6, 100.0 / 6, 1);
  // What was saved covers a few cycles in a row.
  now = now + Seconds(60);
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(pace.Wait(now), Millis{0}) << i;
    now = now + Millis{40};
    pace.Spent(now, 40'000);
  }
}

TEST(Pace, NoCycleHoldsUpTheNextForMoreThanASecond) {
  op::Pace pace{op::kCyclePace};
  pace.Spent(Seconds(1000), 60'000'000);
  EXPECT_LE(pace.Wait(Seconds(1000)), Millis{1001});
  EXPECT_EQ(pace.Wait(Seconds(1002)), Millis{0});
}

class StepTest : public JobControllerTest {
 protected:
  StepTest()
      : services_(world_.clock, world_.store, world_.writes,
                  op::ServiceOptions{"", {}, [this] { return world_.cycle.MakeSnapshot(); }},
                  [] {}),
        gated_(world_.clock, world_.store, world_.nodes, world_.writes, {}, [] {}),
        step_(
            world_.clock, {world_.nodes, world_.jobs, services_, gated_, world_.cycle},
            [this](std::string_view, std::int64_t) { ++cycles_; },
            [this] { return time_ += cost_; }) {
    StartWith(8, 0);
  }

  op::ServiceController services_;
  op::GatedPodController gated_;
  op::Step step_;
  int cycles_ = 0;
  std::int64_t time_ = 0, cost_ = 0;  // of the stopwatch: what each look at it adds
};

TEST_F(StepTest, ACycleRunsWhereItIsWanted) {
  step_.Run();
  EXPECT_EQ(cycles_, 0);
  world_.jobs.OnJob(MakeJob("train", 1, 8));
  step_.Want();
  step_.Run();
  EXPECT_EQ(cycles_, 1);
  EXPECT_EQ(CreatedPods().size(), 1u);
  step_.Run();
  EXPECT_EQ(cycles_, 1);
}

TEST_F(StepTest, ACycleThatThePaceHoldsBackComesLater) {
  cost_ = 300'000;
  step_.Want();
  step_.Run();
  ASSERT_EQ(cycles_, 1);
  world_.jobs.OnJob(MakeJob("train", 1, 8));
  step_.Want();
  step_.Run();
  EXPECT_EQ(cycles_, 1);
  const auto wake = step_.NextWake();
  ASSERT_TRUE(wake);
  world_.clock.Advance(*wake - world_.clock.Now());
  step_.Run();
  EXPECT_EQ(cycles_, 2);
  EXPECT_EQ(CreatedPods().size(), 1u);
}

}  // namespace
}  // namespace bimetal::test
