#include "core/cost/share.h"

#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace bimetal::core::cost {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(AmdPartitionShareTest, DividesThePackageByItsMode) {
  EXPECT_EQ(AmdPartitionShare("SPX/NPS1").value(), Ratio::One());
  EXPECT_EQ(AmdPartitionShare("DPX").value(), Ratio::Of(1, 2));
  EXPECT_EQ(AmdPartitionShare("QPX").value(), Ratio::Of(1, 4));
  EXPECT_EQ(AmdPartitionShare("CPX/NPS4").value(), Ratio::Of(1, 8));
  EXPECT_EQ(AmdPartitionShare("CPX", 6).value(), Ratio::Of(1, 6));
  EXPECT_EQ(AmdPartitionShare("TPX", 6).value(), Ratio::Of(1, 3));
  EXPECT_EQ(DieShare(2), Ratio::Of(1, 2));
}

TEST(AmdPartitionShareTest, RefusesUnknownModesAndUnevenDies) {
  EXPECT_THAT(AmdPartitionShare("off").error().message, HasSubstr("SPX, DPX"));
  EXPECT_FALSE(AmdPartitionShare(""));
  EXPECT_EQ(AmdPartitionShare("TPX", 8).error().code, ErrorCode::kUnsupported);
  EXPECT_FALSE(AmdPartitionShare("SPX", 0));
}

TEST(MigProfileTest, ReadsTheNamesOfEveryGeneration) {
  EXPECT_EQ(MigProfile("1g.5gb", 40).value(), (MigInstance{1, 1}));
  EXPECT_EQ(MigProfile("1g.10gb+me", 80).value(), (MigInstance{1, 1}));
  EXPECT_EQ(MigProfile("1g.20gb", 80).value(), (MigInstance{1, 2}));
  EXPECT_EQ(MigProfile("3g.40gb", 80).value(), (MigInstance{3, 4}));
  EXPECT_EQ(MigProfile("4g.40gb", 80).value(), (MigInstance{4, 4}));
  EXPECT_EQ(MigProfile("1g.18gb", 141).value(), (MigInstance{1, 1}));
  EXPECT_EQ(MigProfile("3g.71gb", 141).value(), (MigInstance{3, 4}));
  EXPECT_EQ(MigProfile("7g.180gb", 180).value(), (MigInstance{7, 8}));
  EXPECT_EQ(MigProfile("2g.12gb", 24, {4, 4}).value(), (MigInstance{2, 2}));
}

TEST(MigProfileTest, RefusesOtherTextAndInstancesLargerThanTheDevice) {
  for (const char* text : {"", "g.5gb", "1g", "1g.5", "1g.5gbx", "1234567g.5gb", "-1g.5gb"}) {
    EXPECT_FALSE(MigProfile(text, 80)) << text;
  }
  EXPECT_FALSE(MigProfile("8g.80gb", 80));
  EXPECT_FALSE(MigProfile("7g.80gb", 40));
  EXPECT_FALSE(MigProfile("0g.10gb", 80));
  EXPECT_FALSE(MigProfile("1g.10gb", 0));
}

TEST(MigSharesTest, AreDominantWhereTheyFit) {
  EXPECT_THAT(MigShares({{1, 1}, {3, 4}}).value(), ElementsAre(Ratio::Of(1, 7), Ratio::Of(1, 2)));
  EXPECT_THAT(MigShares({{7, 8}}).value(), ElementsAre(Ratio::One()));
  EXPECT_THAT(MigShares({}).value(), ElementsAre());
}

// 4g + 3g: 4/7 + 4/8 = 15/14; 2g + 2g + 3g: 2/7 + 2/7 + 1/2 = 15/14.
TEST(MigSharesTest, AreNormalisedWhereLegalLayoutsExceedTheDevice) {
  EXPECT_THAT(MigShares({{4, 4}, {3, 4}}).value(), ElementsAre(Ratio::Of(8, 15), Ratio::Of(7, 15)));
  EXPECT_THAT(MigShares({{2, 2}, {2, 2}, {3, 4}}).value(),
              ElementsAre(Ratio::Of(4, 15), Ratio::Of(4, 15), Ratio::Of(7, 15)));
}

TEST(MigSharesTest, WhatNoProfileCanUseIsLeftOver) {
  const auto shares = MigShares(std::vector<MigInstance>(6, {1, 1})).value();
  EXPECT_EQ(RestOfDevice(shares).value(), Ratio::Of(1, 7));
}

TEST(ReplicaShareTest, DividesDevicesAndInstances) {
  EXPECT_EQ(ReplicaShare(4).value(), Ratio::Of(1, 4));
  EXPECT_EQ(ReplicaShare(3, Ratio::Of(8, 15)).value(), Ratio::Of(8, 45));
  EXPECT_FALSE(ReplicaShare(0));
  EXPECT_FALSE(ReplicaShare(1001));
}

TEST(RestOfDeviceTest, RefusesMoreThanTheDevice) {
  EXPECT_EQ(RestOfDevice({}).value(), Ratio::One());
  EXPECT_THAT(RestOfDevice({Ratio::Of(2, 3), Ratio::Of(1, 2)}).error().message, HasSubstr("7/6"));
}

TEST(SharesProperty, NoLayoutOfInstancesExceedsTheDevice) {
  std::mt19937_64 random(9);
  for (int round = 0; round < 5000; ++round) {
    std::vector<MigInstance> layout;
    for (std::uint64_t i = random() % 8; i > 0; --i) {
      layout.push_back({static_cast<std::int64_t>(random() % 7 + 1),
                        static_cast<std::int64_t>(random() % 8 + 1)});
    }
    const auto shares = MigShares(layout);
    ASSERT_TRUE(shares);
    ASSERT_TRUE(RestOfDevice(*shares)) << round;
  }
}

}  // namespace
}  // namespace bimetal::core::cost
