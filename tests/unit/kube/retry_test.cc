#include "kube/retry.h"

#include <gtest/gtest.h>

namespace bimetal::kube {
namespace {

TEST(BackoffTest, DoublesToItsCapWithinTheJitter) {
  Backoff backoff({Millis{100}, Millis{30'000}, 25}, 1);
  std::int64_t step = 100;
  for (int i = 0; i < 20; ++i) {
    const Millis next = backoff.Next();
    EXPECT_LE(next.v, step);
    EXPECT_GE(next.v, step * 3 / 4);
    step = std::min<std::int64_t>(step * 2, 30'000);
  }
  backoff.Reset();
  EXPECT_LE(backoff.Next().v, 100);
}

TEST(BackoffTest, TheSeedDecides) {
  Backoff a({}, 1);
  Backoff b({}, 1);
  Backoff c({}, 2);
  bool differs = false;
  for (int i = 0; i < 10; ++i) {
    const Millis next = a.Next();
    EXPECT_EQ(next, b.Next());
    differs = differs || next != c.Next();
  }
  EXPECT_TRUE(differs);
}

TEST(BackoffTest, NonsenseOptionsAreMadeSensible) {
  Backoff backoff({Millis{0}, Millis{-5}, 1000}, 1);
  for (int i = 0; i < 5; ++i) {
    EXPECT_GE(backoff.Next().v, 0);
    EXPECT_LE(backoff.Next().v, 1);
  }
}

}  // namespace
}  // namespace bimetal::kube
