#include "core/validation/rates.h"

#include <cmath>
#include <limits>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace bimetal::core::validation {
namespace {

using ::testing::HasSubstr;

api::Verdict Bandwidth(double min, double p5, double median, double max) {
  api::Verdict verdict;
  verdict.set_check("hbm-triad");
  verdict.set_unit("GB/s");
  verdict.mutable_distribution()->set_samples(20);
  verdict.mutable_distribution()->set_min(min);
  verdict.mutable_distribution()->set_p5(p5);
  verdict.mutable_distribution()->set_median(median);
  verdict.mutable_distribution()->set_max(max);
  return verdict;
}

Result<Rate> Read(const api::Verdict& verdict) {
  return ReadRate(verdict, *FindRateCheck(verdict.check()));
}

TEST(RatesTest, NumbersBecomeThousandthsOnce) {
  const auto rate = Read(Bandwidth(2500.0004, 2512.4995, 2600.1234, 2700));
  ASSERT_TRUE(rate) << rate.error().message;
  EXPECT_EQ(rate->min.v, 2'500'000);
  EXPECT_EQ(rate->p5.v, 2'512'500);
  EXPECT_EQ(rate->median.v, 2'600'123);
  EXPECT_EQ(rate->judged, rate->p5);
}

TEST(RatesTest, OtherSpellingsOfTheUnitAreTheSameRate) {
  api::Verdict verdict = Bandwidth(1'000'000, 1'100'000, 1'200'000, 1'300'000);
  verdict.set_unit("MB/s");
  ASSERT_TRUE(Read(verdict));
  EXPECT_EQ(Read(verdict)->p5.v, 1'100'000);
}

TEST(RatesTest, WhatCannotBeJudgedIsRefusedWithTheReason) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinite = std::numeric_limits<double>::infinity();
  const auto refused = [](const api::Verdict& verdict, const std::string& why) {
    const auto rate = Read(verdict);
    ASSERT_FALSE(rate) << why;
    EXPECT_EQ(rate.error().code, ErrorCode::kInvalid);
    EXPECT_THAT(rate.error().message, HasSubstr(why));
  };
  refused(Bandwidth(1, nan, 3, 4), "not a finite number");
  refused(Bandwidth(1, 2, 3, infinite), "not a finite number");
  refused(Bandwidth(-1, 2, 3, 4), "negative");
  refused(Bandwidth(1, 2, 3, 1e300), "out of range");
  refused(Bandwidth(1, 3, 2, 4), "out of order");
  api::Verdict few = Bandwidth(1, 2, 3, 4);
  few.mutable_distribution()->set_samples(19);
  refused(few, "19 times");
  api::Verdict unit = Bandwidth(1, 2, 3, 4);
  unit.set_unit("TFLOPS");
  refused(unit, "unit");
  api::Verdict bare;
  bare.set_check("hbm-triad");
  bare.set_value("3000");
  refused(bare, "without a distribution");
}

TEST(RatesTest, NothingMeasuredIsToldApartFromBadlyMeasured) {
  api::Verdict verdict;
  verdict.set_check("peer-to-peer");
  EXPECT_EQ(Read(verdict).error().code, ErrorCode::kUnsupported);
}

TEST(RatesTest, ALatencyIsJudgedByItsHighPercentile) {
  api::Verdict verdict = Bandwidth(3, 3.5, 4, 9);
  verdict.set_check("launch-latency");
  verdict.set_unit("us");
  verdict.set_value("8.25");
  const auto rate = Read(verdict);
  ASSERT_TRUE(rate) << rate.error().message;
  EXPECT_EQ(rate->judged.v, 8250);
  for (const char* value : {"3.5", "12", "", "fast", "1e3", "9000000000000000"}) {
    verdict.set_value(value);
    EXPECT_FALSE(Read(verdict)) << value;
  }
}

TEST(RatesTest, DecimalsAreReadWhole) {
  EXPECT_EQ(ParseMilli("3885.5")->v, 3'885'500);
  EXPECT_EQ(ParseMilli("0")->v, 0);
  EXPECT_EQ(ParseMilli("1.2345")->v, 1235);
  EXPECT_EQ(ParseMilli("1.2344999")->v, 1234);
  EXPECT_EQ(ParseMilli("9000000000000000")->v, 9'000'000'000'000'000'000);
  for (const char* bad :
       {"", ".", "1.", ".5", "-1", "+1", "1e3", "1,5", " 1", "0x1", "1.2.3", "9000000000000001",
        "9000000000000000.9999", "99999999999999999999999999"}) {
    EXPECT_FALSE(ParseMilli(bad)) << bad;
  }
}

TEST(RatesTest, DecimalsSurviveTheWayToTextAndBack) {
  std::mt19937_64 random(4);
  for (int i = 0; i < 2000; ++i) {
    const Milli value{static_cast<std::int64_t>(random() >> (2 + random() % 60))};
    const auto back = ParseMilli(FormatMilli(value));
    ASSERT_TRUE(back) << FormatMilli(value);
    EXPECT_EQ(back->v, value.v);
  }
  EXPECT_EQ(FormatMilli(Milli{2'512'500}), "2512.5");
  EXPECT_EQ(FormatMilli(Milli{50}), "0.05");
  EXPECT_EQ(FormatMilli(Milli{0}), "0");
}

TEST(RatesTest, EveryRateCheckHasAUnit) {
  for (const char* check : {"hbm-copy", "hbm-dot", "host-to-device", "peer-to-peer", "collective",
                            "launch-latency", "gemm-rate-fp8-fnuz"}) {
    EXPECT_TRUE(FindRateCheck(check)) << check;
  }
  for (const char* check : {"memory-pattern", "gemm-bf16", "gemm-rate-", "hbm", "", "stress"}) {
    EXPECT_FALSE(FindRateCheck(check)) << check;
  }
}

}  // namespace
}  // namespace bimetal::core::validation
