#include "core/cost/shared_cost.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/cost/rates.h"

namespace bimetal::core::cost {
namespace {

using ::testing::ElementsAre;

constexpr std::int64_t kUnit = 1'000'000'000;

TEST(OverheadCostTest, IsThePartOfTheMonthInWhichItIsPaid) {
  PriceBook book{.currency = "USD"};
  book.overheads = {
      {"monitoring", TimePoint{kMsPerHour}, TimePoint{3 * kMsPerHour}, {7305 * kUnit}},
      {"support", TimePoint{0}, std::nullopt, {kUnit * 1461 / 2}}};
  EXPECT_EQ(OverheadCost(book, TimePoint{0}, TimePoint{10 * kMsPerHour}).v,
            20 * kUnit + 10 * kUnit);
  EXPECT_EQ(OverheadCost(book, TimePoint{0}, TimePoint{0}).v, 0);
}

TEST(DealOverheadTest, PartsAddUpAndFollowTheCost) {
  EXPECT_THAT(DealOverhead({100}, {{1}, {1}, {1}}).value(),
              ElementsAre(NanoCurrency{34}, NanoCurrency{33}, NanoCurrency{33}));
  EXPECT_THAT(DealOverhead({100}, {{3 * kUnit}, {0}, {kUnit}}).value(),
              ElementsAre(NanoCurrency{75}, NanoCurrency{0}, NanoCurrency{25}));
}

TEST(DealOverheadTest, StaysWithTheFleetWhereNobodyCostAnything) {
  EXPECT_FALSE(DealOverhead({100}, {}));
  EXPECT_FALSE(DealOverhead({100}, {{0}, {0}}));
}

TEST(BillingDifferenceTest, IsWhatTheProviderRoundsUp) {
  const std::int64_t quarter = kMsPerHour / 4;
  EXPECT_EQ(BillingDifference({4 * kUnit}, quarter, kMsPerHour).v, 3 * kUnit);
  EXPECT_EQ(BillingDifference({4 * kUnit}, kMsPerHour, kMsPerHour).v, 0);
  EXPECT_EQ(BillingDifference({4 * kUnit}, 0, kMsPerHour).v, 0);
  EXPECT_EQ(BillingDifference({4 * kUnit}, quarter, 0).v, 0);
}

}  // namespace
}  // namespace bimetal::core::cost
