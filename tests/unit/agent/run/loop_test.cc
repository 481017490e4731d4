#include "agent/run/loop.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace bimetal::agent {
namespace {

TEST(LoopTest, RunsTasksInOrderUntilStop) {
  Loop loop(8);
  std::vector<int> seen;
  loop.Post([&] { seen.push_back(1); });
  loop.Post([&] { seen.push_back(2); });
  loop.Post([&] { loop.Stop(); });
  loop.Run(Minutes(10), [] {});
  EXPECT_EQ(seen, (std::vector<int>{1, 2}));
}

TEST(LoopTest, TicksWhileNothingIsPosted) {
  Loop loop(8);
  int ticks = 0;
  loop.Run(Millis{1}, [&] {
    if (++ticks == 3) loop.Stop();
  });
  EXPECT_EQ(ticks, 3);
}

TEST(LoopTest, PostAfterStopIsRefusedAndWaitingTasksAreDropped) {
  Loop loop(8);
  bool ran = false;
  loop.Post([&] { ran = true; });
  loop.Stop();
  EXPECT_FALSE(loop.Post([&] { ran = true; }));
  loop.Run(Minutes(10), [] {});
  EXPECT_FALSE(ran);
}

TEST(LoopTest, FullQueueHoldsPostersUntilStop) {
  Loop loop(1);
  ASSERT_TRUE(loop.Post([] {}));
  std::thread poster([&] { EXPECT_FALSE(loop.Post([] {})); });
  loop.Stop();
  poster.join();
}

}  // namespace
}  // namespace bimetal::agent
