#include "core/queue/order/runtimes.h"

#include <limits>

#include <gtest/gtest.h>

namespace bimetal::core::queue::order {
namespace {

TEST(RunTimesTest, PredictsTheMeanOfTheLastTwoOfTheSameQueueAndSize) {
  RunTimes times;
  EXPECT_FALSE(times.Predict("a", 1));
  times.Finished("a", 1, Seconds(1000));
  EXPECT_EQ(times.Predict("a", 1)->work, Seconds(1000));
  times.Finished("a", 1, Seconds(10));
  times.Finished("a", 1, Seconds(20));
  times.Finished("b", 1, Seconds(9));
  EXPECT_EQ(times.Predict("a", 1)->work, Seconds(15));
  EXPECT_EQ(times.Predict("a", 1)->basis, Basis::kQueueAndDevices);
}

TEST(RunTimesTest, FallsBackToQueueThenDevicesThenAny) {
  RunTimes times;
  times.Finished("a", 1, Seconds(10));
  times.Finished("b", 8, Seconds(30));
  EXPECT_EQ(times.Predict("a", 4)->work, Seconds(10));
  EXPECT_EQ(times.Predict("a", 4)->basis, Basis::kQueue);
  EXPECT_EQ(times.Predict("c", 8)->work, Seconds(30));
  EXPECT_EQ(times.Predict("c", 8)->basis, Basis::kDevices);
  EXPECT_EQ(times.Predict("c", 2)->work, Seconds(20));
  EXPECT_EQ(times.Predict("c", 2)->basis, Basis::kAny);
}

TEST(RunTimesTest, HugeAndNegativeTimesNeitherOverflowNorGoBelowZero) {
  RunTimes times;
  const Millis huge{std::numeric_limits<std::int64_t>::max()};
  times.Finished("a", 1, huge);
  times.Finished("a", 1, huge);
  EXPECT_EQ(times.Predict("a", 1)->work, huge);
  times.Finished("b", 1, Millis{-5});
  EXPECT_EQ(times.Predict("b", 1)->work, Millis{0});
}

TEST(RunTimesTest, AJobThatOutlivesItsPredictionIsExpectedToRunAsLongAgain) {
  EXPECT_EQ(RemainingOf(Seconds(10), Seconds(4)), Seconds(6));
  EXPECT_EQ(RemainingOf(Seconds(10), Seconds(10)), Seconds(10));
  EXPECT_EQ(RemainingOf(Seconds(10), Seconds(25)), Seconds(25));
  EXPECT_GT(RemainingOf(Seconds(0), Seconds(0)), Millis{0});
}

}  // namespace
}  // namespace bimetal::core::queue::order
