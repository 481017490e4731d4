#include "core/cost/ratio.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace bimetal::core::cost {
namespace {

using ::testing::ElementsAre;

constexpr auto kMax = std::numeric_limits<std::int64_t>::max();
constexpr auto kMin = std::numeric_limits<std::int64_t>::min();

TEST(RatioTest, IsInLowestTermsAndComparesExactly) {
  EXPECT_EQ(Ratio::Of(2, 4), Ratio::Of(1, 2));
  EXPECT_EQ(Ratio::Of(0, 9), Ratio());
  EXPECT_EQ(Ratio::Of(-6, 4).numerator(), -3);
  EXPECT_LT(Ratio::Of(kMax - 1, kMax), Ratio::One());
  EXPECT_LT(Ratio::Of(-1, 3), Ratio::Of(1, kMax));
}

TEST(RatioTest, AddsSubtractsAndMultipliesExactly) {
  EXPECT_EQ(Add(Ratio::Of(1, 3), Ratio::Of(1, 6)).value(), Ratio::Of(1, 2));
  EXPECT_EQ(Subtract(Ratio::One(), Ratio::Of(1, 3)).value(), Ratio::Of(2, 3));
  EXPECT_EQ(Multiply(Ratio::Of(3, 7), Ratio::Of(7, 9)).value(), Ratio::Of(1, 3));
  EXPECT_EQ(Add(Ratio::Of(1, kMax), Ratio::Of(kMax - 1, kMax)).value(), Ratio::One());
}

TEST(RatioTest, RefusesWhatNeedsMoreBitsInsteadOfRounding) {
  EXPECT_FALSE(Add(Ratio::Of(1, kMax), Ratio::Of(1, kMax - 1)));
  EXPECT_FALSE(Multiply(Ratio::Of(1, kMax), Ratio::Of(1, 2)));
  EXPECT_FALSE(Add(Ratio::Of(kMax, 1), Ratio::Of(kMax, 1)));
}

TEST(RoundHalfEvenTest, RoundsTiesToTheEvenNeighbourOnBothSidesOfZero) {
  const auto round = [](std::int64_t n, std::int64_t d) {
    return static_cast<std::int64_t>(RoundHalfEven(n, d));
  };
  EXPECT_EQ(round(1, 2), 0);
  EXPECT_EQ(round(3, 2), 2);
  EXPECT_EQ(round(5, 2), 2);
  EXPECT_EQ(round(-1, 2), 0);
  EXPECT_EQ(round(-3, 2), -2);
  EXPECT_EQ(round(-5, 2), -2);
  EXPECT_EQ(round(4, 3), 1);
  EXPECT_EQ(round(5, 3), 2);
  EXPECT_EQ(round(-5, 3), -2);
}

TEST(RoundHalfEvenTest, StandsTheLargestDenominators) {
  const __int128 huge = (static_cast<__int128>(1) << 126) + 1;
  EXPECT_EQ(static_cast<std::int64_t>(RoundHalfEven(huge - 1, huge)), 1);
  EXPECT_EQ(static_cast<std::int64_t>(RoundHalfEven(huge / 2, huge)), 0);
  EXPECT_EQ(MultiplyDivide(kMax, kMax, kMax), kMax);
  EXPECT_EQ(MultiplyDivide(kMax, kMax, 1), kMax);
  EXPECT_EQ(MultiplyDivide(kMin, kMax, 1), kMin);
}

TEST(ApportionTest, GivesWhatIsLeftToThoseWhoLostMostThenToTheEarlier) {
  const auto third = Ratio::Of(1, 3);
  EXPECT_THAT(Apportion(100, {third, third, third}), ElementsAre(34, 33, 33));
  EXPECT_THAT(Apportion(-100, {third, third, third}), ElementsAre(-34, -33, -33));
  EXPECT_THAT(Apportion(1, {Ratio::Of(1, 4), Ratio::Of(3, 4)}), ElementsAre(0, 1));
  EXPECT_THAT(Apportion(7, {Ratio(), Ratio::One()}), ElementsAre(0, 7));
  EXPECT_THAT(Apportion(kMax, {Ratio::Of(1, 2), Ratio::Of(1, 2)}),
              ElementsAre(kMax / 2 + 1, kMax / 2));
}

TEST(ApportionTest, ByWeightDealsNothingWhereThereIsNoWeight) {
  EXPECT_THAT(ApportionByWeight(10, {0, 0}), ElementsAre(0, 0));
  EXPECT_THAT(ApportionByWeight(10, {3, 0, 6}), ElementsAre(3, 0, 7));
  EXPECT_THAT(ApportionByWeight(kMax, {kMax, kMax}), ElementsAre(kMax / 2 + 1, kMax / 2));
}

TEST(ApportionProperty, PartsAddUpAreWithinOneUnitAndKeepTheSign) {
  std::mt19937_64 random(20260301);
  const auto up = [&](std::int64_t n) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n));
  };
  for (int round = 0; round < 5000; ++round) {
    std::vector<Ratio> shares;
    Ratio rest = Ratio::One();
    for (std::int64_t i = up(7); i > 0; --i) {
      const Ratio share = Ratio::Of(up(4), 840);
      shares.push_back(share);
      rest = Subtract(rest, share).value();
    }
    shares.push_back(rest);
    const std::int64_t total = (up(2) == 0 ? -1 : 1) * up(up(2) == 0 ? 50 : kMax);
    const auto parts = Apportion(total, shares);
    __int128 sum = 0;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      sum += parts[i];
      ASSERT_TRUE(parts[i] == 0 || (parts[i] < 0) == (total < 0));
      const __int128 off = static_cast<__int128>(parts[i]) * shares[i].denominator() -
                           static_cast<__int128>(total) * shares[i].numerator();
      ASSERT_LT(off < 0 ? -off : off, shares[i].denominator());
    }
    ASSERT_TRUE(sum == total) << round;
  }
}

}  // namespace
}  // namespace bimetal::core::cost
