#include "operator/loop/loop.h"

#include <atomic>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace bimetal::op {
namespace {

TEST(LoopTest, ManyRequestsForAStepMakeOneStepAfterTheWaitingTasks) {
  const SystemClock clock;
  Loop loop(clock, 100);
  std::vector<std::string> log;
  loop.SetStep([&] {
    log.emplace_back("step");
    loop.Stop();
  });
  for (int i = 0; i < 3; ++i) {
    loop.Post([&] {
      log.emplace_back("task");
      loop.RequestStep();
    });
  }
  loop.Run();
  EXPECT_EQ(log, (std::vector<std::string>{"task", "task", "task", "step"}));
}

TEST(LoopTest, TimersRunInTheOrderOfTheirTimes) {
  const SystemClock clock;
  Loop loop(clock, 100);
  std::vector<int> log;
  const Millis now = clock.Monotonic();
  loop.Post([&] {
    loop.At(now + Millis{2}, [&] {
      log.push_back(2);
      loop.Stop();
    });
    loop.At(now + Millis{1}, [&] { log.push_back(1); });
  });
  loop.Run();
  EXPECT_EQ(log, (std::vector<int>{1, 2}));
}

TEST(LoopTest, AFullQueueMakesThePosterWaitAndStopSetsItFree) {
  const SystemClock clock;
  Loop loop(clock, 1);
  ASSERT_TRUE(loop.Post([] {}));
  std::atomic<bool> refused{false};
  std::jthread poster([&] { refused = !loop.Post([] {}); });
  loop.Stop();
  poster.join();
  EXPECT_TRUE(refused);
}

TEST(LoopTest, AFloodOfTasksDoesNotKeepTheStepAway) {
  const SystemClock clock;
  Loop loop(clock, 100'000);
  int tasks = 0;
  loop.SetStep([&] { loop.Stop(); });
  loop.Post([&] { loop.RequestStep(); });
  for (int i = 0; i < 50'000; ++i) loop.Post([&] { ++tasks; });
  loop.Run();
  EXPECT_LT(tasks, 50'000);
}

}  // namespace
}  // namespace bimetal::op
