#include "agent/run/enumerator.h"

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <semaphore>

namespace bimetal::agent {
namespace {

TEST(EnumeratorTest, LooksAgainAfterEachInterval) {
  static const SystemClock clock;
  std::counting_semaphore<> seen(0);
  Enumerator enumerator([] { return Inventory(); }, Millis{1}, clock,
                        [&](Inventory, Millis) { seen.release(); });
  for (int i = 0; i < 3; ++i) seen.acquire();
  EXPECT_TRUE(enumerator.Stop(Seconds(10)));
  EXPECT_TRUE(enumerator.Stop(Seconds(10)));
}

TEST(EnumeratorTest, LookThatHangsIsSeenAndLeftBehind) {
  static const SystemClock clock;
  auto release = std::make_shared<std::promise<void>>();
  auto gate = release->get_future().share();
  auto entered = std::make_shared<std::promise<void>>();
  auto inside = entered->get_future();
  auto over = std::make_shared<std::promise<void>>();
  auto ended = over->get_future();
  {
    Enumerator enumerator(
        [gate, entered, over] {
          entered->set_value();
          gate.wait();
          over->set_value();
          return Inventory();
        },
        Millis{1}, clock, [](Inventory, Millis) { FAIL() << "called after Stop"; });
    inside.wait();
    EXPECT_TRUE(enumerator.InProgress().has_value());
    EXPECT_FALSE(enumerator.Stop(Millis{1}));
  }
  release->set_value();
  ended.wait();
}

}  // namespace
}  // namespace bimetal::agent
