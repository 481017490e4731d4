#include "operator/controllers/pool_prices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/fakes/fake_clock.h"

namespace bimetal::op {
namespace {

using ::testing::HasSubstr;

class PoolPricingTest : public testing::Test {
 protected:
  PoolPricingTest() {
    pool_.mutable_metadata()->set_name("nvidia");
    pool_.mutable_spec()->set_price_book_name("book");
  }
  void Book(const std::string& hardware, const std::string& labour = "0.10") {
    auto* price = books_["book"].mutable_spec()->add_prices();
    books_["book"].mutable_spec()->set_currency("EUR");
    price->set_vendor("nvidia");
    price->set_model("H100");
    price->set_from("2026-01-01T00:00:00Z");
    price->set_hardware_per_hour(hardware);
    price->set_energy_per_hour("0.20");
    if (!labour.empty()) price->set_labour_per_hour(labour);
  }
  PoolPricing Judge(const std::set<std::string>& models = {"H100"}) const {
    return JudgePricing(pool_, core::Vendor::kNvidia, models, books_, test::FakeClock().Now());
  }

  api::GPUPool pool_;
  std::map<std::string, api::PriceBook> books_;
};

TEST_F(PoolPricingTest, APricedPoolSaysSoAndNothingElse) {
  Book("2.50");
  const auto said = Judge();
  EXPECT_EQ(said.status, "True");
  EXPECT_EQ(said.reason, "Priced");
  EXPECT_EQ(said.message, "");
}

TEST_F(PoolPricingTest, WithoutABookItNamesTheField) {
  pool_.mutable_spec()->clear_price_book_name();
  EXPECT_EQ(Judge().reason, "NoPriceBook");
  EXPECT_THAT(Judge().message, HasSubstr("spec.priceBookName"));
}

TEST_F(PoolPricingTest, ABookThatIsNotThereIsNamed) {
  EXPECT_EQ(Judge().reason, "PriceBookNotFound");
  EXPECT_THAT(Judge().message, HasSubstr("\"book\""));
}

TEST_F(PoolPricingTest, ABookThatCannotBeReadSaysWhichEntry) {
  Book("-1");
  EXPECT_EQ(Judge().status, "False");
  EXPECT_EQ(Judge().reason, "PriceBookInvalid");
  EXPECT_THAT(Judge().message, HasSubstr("spec.prices[0].hardwarePerHour"));
}

TEST_F(PoolPricingTest, AModelWithoutAPriceIsAnErrorAndNotZero) {
  Book("2.50");
  EXPECT_EQ(Judge({"H100", "B200"}).reason, "PriceMissing");
  EXPECT_THAT(Judge({"H100", "B200"}).message, HasSubstr("B200"));
  EXPECT_EQ(Judge({"A", "B", "C", "D", "E"}).status, "False");
  EXPECT_THAT(Judge({"A", "B", "C", "D", "E"}).message, HasSubstr("and 2 more"));
}

TEST_F(PoolPricingTest, WhatAsksForAPersonIsToldOfAPricedPool) {
  Book("0");
  EXPECT_EQ(Judge().status, "True");
  EXPECT_NE(Judge().reason, "Priced");
  EXPECT_NE(Judge().message, "");
}

}  // namespace
}  // namespace bimetal::op
