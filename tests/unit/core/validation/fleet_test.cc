#include "core/validation/fleet.h"

#include <algorithm>
#include <random>

#include <gtest/gtest.h>

namespace bimetal::core::validation {
namespace {

const FleetKey kKey{"H100", "", "", "hbm-triad"};

std::vector<NodeRate> Nodes(const std::vector<std::int64_t>& medians, int devices) {
  std::vector<NodeRate> rates;
  for (std::size_t i = 0; i < medians.size(); ++i) {
    rates.push_back({kKey, "node-" + std::to_string(i), Milli{medians[i]}, devices});
  }
  return rates;
}

TEST(FleetTest, TheMedianOfTheNodes) {
  const auto medians = MediansOf(Nodes({300, 100, 200}, 8));
  ASSERT_EQ(medians.count(kKey), 1u);
  EXPECT_EQ(medians.at(kKey).value.v, 200);
  EXPECT_EQ(medians.at(kKey).devices, 24);
  EXPECT_EQ(medians.at(kKey).nodes, 3);
  EXPECT_EQ(MediansOf(Nodes({400, 100, 300, 200}, 8)).at(kKey).value.v, 200);
}

TEST(FleetTest, TooFewNodesOrDevicesSayNothing) {
  EXPECT_TRUE(MediansOf(Nodes({300, 100}, 8)).empty());
  EXPECT_TRUE(MediansOf(Nodes({300, 100, 200, 200}, 1)).empty());
  EXPECT_FALSE(MediansOf(Nodes({300, 100, 200, 200, 200}, 1)).empty());
  // One node told of three times is one node.
  auto rates = Nodes({300, 100, 200}, 8);
  for (NodeRate& rate : rates) rate.node = "node";
  EXPECT_TRUE(MediansOf(rates).empty());
}

TEST(FleetTest, WhatMeasuredNothingIsLeftOut) {
  auto rates = Nodes({300, 0, 200, -5, 100}, 8);
  rates[2].devices = 0;
  EXPECT_TRUE(MediansOf(rates).empty());
}

TEST(FleetTest, KeysAreNotMixed) {
  auto rates = Nodes({300, 100, 200}, 8);
  rates[1].key.partition = "1g.10gb";
  EXPECT_TRUE(MediansOf(rates).empty());
  rates[1].key = kKey;
  rates[1].key.driver = "565";
  EXPECT_TRUE(MediansOf(rates).empty());
}

// Fewer than half of the nodes, however wrong, cannot move the median out of the others' range; and
// the order of the entries is no matter.
TEST(FleetTest, AMinorityCannotMoveTheMedian) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    std::mt19937_64 random(seed);
    const std::size_t nodes = 3 + random() % 40;
    const std::size_t wrong = random() % ((nodes + 1) / 2);
    std::vector<std::int64_t> medians;
    for (std::size_t i = 0; i < nodes; ++i) {
      medians.push_back(i < wrong ? static_cast<std::int64_t>(1 + random() % 1'000'000'000)
                                  : static_cast<std::int64_t>(1'000'000 + random() % 1'000));
    }
    auto rates = Nodes(medians, 8);
    std::shuffle(rates.begin(), rates.end(), random);
    const Milli median = MediansOf(rates).at(kKey).value;
    EXPECT_GE(median.v, 1'000'000) << "seed " << seed;
    EXPECT_LT(median.v, 1'001'000) << "seed " << seed;
    std::shuffle(rates.begin(), rates.end(), random);
    EXPECT_EQ(MediansOf(rates).at(kKey).value, median) << "seed " << seed;
  }
}

TEST(FleetTest, WholeDevicesOfTwoSpellingsAreOneKey) {
  DeviceFacts device;
  device.model = "MI300X";
  device.partition = "SPX/NPS1";
  DeviceFacts other = device;
  other.partition = "";
  EXPECT_EQ(KeyFor(device, "hbm-triad"), KeyFor(other, "hbm-triad"));
  other.partition = "CPX/NPS4";
  EXPECT_NE(KeyFor(device, "hbm-triad"), KeyFor(other, "hbm-triad"));
}

}  // namespace
}  // namespace bimetal::core::validation
