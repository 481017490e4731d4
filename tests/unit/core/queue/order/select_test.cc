#include "core/queue/order/select.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

namespace bimetal::core::queue::order {
namespace {

using Order = std::vector<std::size_t>;
using Maybe = std::optional<std::int64_t>;

Candidate Of(Maybe throughput, Maybe price, std::int64_t devices = 1) {
  Candidate candidate;
  candidate.devices = devices;
  candidate.throughput_milli = throughput;
  candidate.nano_per_hour = price;
  return candidate;
}

constexpr auto kAllPolicies = {SelectionPolicy::kInOrder, SelectionPolicy::kEarliestStart,
                               SelectionPolicy::kLowestCost, SelectionPolicy::kBestValue};

TEST(StartOrderTest, InOrderIsTheOrderOfTheList) {
  EXPECT_EQ(StartOrder(SelectionPolicy::kInOrder, {Of(1, 900), Of(9000, 1)}), (Order{0, 1}));
}

TEST(StartOrderTest, EarliestStartTriesTheFastestFirst) {
  EXPECT_EQ(StartOrder(SelectionPolicy::kEarliestStart, {Of(700, 1), Of(1000, 9), Of(900, {})}),
            (Order{1, 2, 0}));
}

TEST(StartOrderTest, BestValueTriesTheCheapestWorkFirstWhateverItsPriceAnHour) {
  // 3.00 at 1000 is dearer than 2.00 at 700; the third needs twice the devices.
  EXPECT_EQ(StartOrder(SelectionPolicy::kBestValue,
                       {Of(1000, 3'000), Of(700, 2'000), Of(1000, 1'600, 2)}),
            (Order{1, 0, 2}));
}

TEST(StartOrderTest, LowestCostWaitsForTheCheapest) {
  EXPECT_EQ(StartOrder(SelectionPolicy::kLowestCost, {Of(1000, 3), Of(1000, 2), Of(2000, 4)}),
            (Order{1, 2}));
}

TEST(StartOrderTest, AVariantThatCanNeverStartIsNotWaitedFor) {
  Candidate cheap = Of(1000, 1);
  cheap.possible = false;
  EXPECT_EQ(StartOrder(SelectionPolicy::kLowestCost, {cheap, Of(1000, 5)}), (Order{1}));
}

TEST(StartOrderTest, NothingIsGuessed) {
  // One throughput is unknown: prices alone count.
  EXPECT_EQ(StartOrder(SelectionPolicy::kBestValue, {Of(9000, 3), Of({}, 2)}), (Order{1, 0}));
  EXPECT_EQ(StartOrder(SelectionPolicy::kEarliestStart, {Of({}, 3), Of(9000, 2)}), (Order{0, 1}));
  // A missing price is never taken for a low one.
  EXPECT_EQ(StartOrder(SelectionPolicy::kBestValue, {Of(1, {}), Of(1, 2)}), (Order{1, 0}));
  EXPECT_EQ(StartOrder(SelectionPolicy::kLowestCost, {Of(1, {}), Of(1, 2)}), (Order{1}));
  EXPECT_EQ(StartOrder(SelectionPolicy::kLowestCost, {Of(1, {}), Of(1, {})}), (Order{0, 1}));
}

TEST(StartOrderTest, WhatIsDearerThanTheJobPaysOrHasNoPriceIsLeftOutByEveryPolicy) {
  Candidate dear = Of(1000, 6), unpriced = Of(1000, {}), just = Of(1000, 5);
  for (Candidate* one : {&dear, &unpriced, &just}) one->max_nano_per_hour = 5;
  for (const SelectionPolicy policy : kAllPolicies) {
    EXPECT_EQ(StartOrder(policy, {dear, unpriced, just}), (Order{2}));
    EXPECT_EQ(StartOrder(policy, {dear}), Order{});
    EXPECT_EQ(StartOrder(policy, {}), Order{});
  }
}

TEST(StartOrderTest, ExtremesNeitherOverflowNorDivideByZero) {
  const std::int64_t huge = std::numeric_limits<std::int64_t>::max();
  for (const SelectionPolicy policy : kAllPolicies) {
    EXPECT_EQ(StartOrder(policy, {Of(huge, huge, huge), Of(huge, huge, huge)}), (Order{0, 1}));
    EXPECT_EQ(StartOrder(policy, {Of(0, 0, 0), Of(-1, 0, -1)}), (Order{0, 1}));
  }
}

TEST(StartOrderProperty, BestValueNeverPutsTheDearerWorkFirst) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 500; ++round) {
    std::vector<Candidate> all;
    for (int i = 0; i < 8; ++i) {
      all.push_back(Of(static_cast<std::int64_t>(1 + random() % 4000),
                       static_cast<std::int64_t>(random() % 5'000'000),
                       static_cast<std::int64_t>(1 + random() % 64)));
    }
    const Order order = StartOrder(SelectionPolicy::kBestValue, all);
    ASSERT_EQ(order.size(), all.size());
    const auto cost = [&](std::size_t i) {
      return static_cast<double>(*all[i].nano_per_hour * all[i].devices) /
             static_cast<double>(*all[i].throughput_milli);
    };
    for (std::size_t i = 1; i < order.size(); ++i) {
      EXPECT_LE(cost(order[i - 1]), cost(order[i]) * (1 + 1e-9)) << "seed 7, round " << round;
    }
  }
}

TEST(WorthWaitingTest, ComparesFinishesAndNeverWaitsForWhatNobodyKnows) {
  const Candidate slow = Of(500, {}), fast = Of(1000, {});
  const TimePoint now{};
  EXPECT_TRUE(WorthWaiting(slow, fast, now, now + Seconds(90), Seconds(100)));
  EXPECT_FALSE(WorthWaiting(slow, fast, now, now + Seconds(100), Seconds(100))) << "no gain";
  EXPECT_FALSE(WorthWaiting(slow, fast, now, now + Seconds(90), std::nullopt));
  EXPECT_FALSE(WorthWaiting(slow, Of({}, {}), now, now, Seconds(100)));
  EXPECT_FALSE(WorthWaiting(slow, Of(0, {}), now, now, Seconds(100)));
}

TEST(PricesAtTest, TakesThePriceThatHoldsNowAndSumsItsParts) {
  const auto price = [](const char* model, std::int64_t from, std::int64_t hardware) {
    return cost::Price{.vendor = Vendor::kAmd,
                       .model = model,
                       .from = TimePoint{from},
                       .hardware = {hardware},
                       .energy = {20},
                       .labour = {3}};
  };
  cost::PriceBook book{.currency = "EUR",
                       .prices = {price("A", 10, 100), price("A", 20, 200), price("B", 30, 1)}};
  EXPECT_EQ(PricesAt(book, TimePoint{25}), (std::vector<DevicePrice>{{Vendor::kAmd, "A", 223}}));
  EXPECT_EQ(PricesAt(book, TimePoint{19}), (std::vector<DevicePrice>{{Vendor::kAmd, "A", 123}}));
  book.prices[0].hardware.v = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(PricesAt(book, TimePoint{10})[0].nano_per_hour,
            std::numeric_limits<std::int64_t>::max());
}

TEST(VariantOrderTest, TakesTheLowestPriceAmongTheModelsOfAVariant) {
  Job job;
  job.roles.emplace_back();
  job.variants.resize(2);
  job.variants[0].vendor = Vendor::kNvidia;
  job.variants[1].vendor = Vendor::kAmd;
  job.selection = SelectionPolicy::kBestValue;
  const std::vector<DevicePrice> prices = {
      {Vendor::kNvidia, "Big", 300}, {Vendor::kNvidia, "Small", 100}, {Vendor::kAmd, "Other", 200}};
  EXPECT_EQ(VariantOrder(job, prices, {}), (Order{0, 1}));
  job.variants[0].models = {"Big"};
  EXPECT_EQ(VariantOrder(job, prices, {}), (Order{1, 0}));
  job.variants[0].relative_throughput_milli = 2000;
  job.variants[1].relative_throughput_milli = 1000;
  EXPECT_EQ(VariantOrder(job, prices, {}), (Order{0, 1}));
  job.variants[0].max_nano_per_hour = 250;
  EXPECT_EQ(VariantOrder(job, prices, {}), (Order{1}));
  EXPECT_EQ(VariantOrder(job, prices, {true, false}), Order{});
}

TEST(RunTimeTest, IsWorkOverThroughput) {
  EXPECT_EQ(RunTime(Seconds(10), 500), Seconds(20));
  EXPECT_EQ(RunTime(Seconds(10), 0), std::nullopt);
  EXPECT_EQ(RunTime(Millis{std::numeric_limits<std::int64_t>::max()}, 1),
            Millis{std::numeric_limits<std::int64_t>::max()});
}

}  // namespace
}  // namespace bimetal::core::queue::order
