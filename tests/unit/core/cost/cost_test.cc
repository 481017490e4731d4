#include "core/cost/cost.h"

#include <limits>
#include <random>
#include <tuple>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace bimetal::core::cost {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::int64_t kUnit = 1'000'000'000;
constexpr std::int64_t kHour = 3'600'000;

Price PriceOf(const std::string& model, std::int64_t from_ms, std::int64_t hardware,
              std::int64_t energy = 0, std::int64_t labour = 0) {
  return Price{.vendor = Vendor::kNvidia,
               .model = model,
               .from = TimePoint{from_ms},
               .hardware = NanoCurrency{hardware},
               .energy = NanoCurrency{energy},
               .labour = NanoCurrency{labour}};
}

Interval IntervalOf(const std::string& model, std::int64_t devices, std::int64_t begin,
                    std::int64_t end) {
  return Interval{.vendor = Vendor::kNvidia,
                  .model = model,
                  .devices = devices,
                  .begin = TimePoint{begin},
                  .end = TimePoint{end}};
}

TEST(PriceIntervalsTest, EightDevicesForThreeHoursAtTwoAreFortyEightExactly) {
  const PriceBook book{.currency = "USD", .prices = {PriceOf("X", 0, 2 * kUnit)}};
  const Bill bill = PriceIntervals({IntervalOf("X", 8, 0, 3 * kHour)}, &book);
  EXPECT_EQ(bill.Total(), NanoCurrency{48 * kUnit});
  EXPECT_EQ(bill.device_ms, 24 * kHour);
  EXPECT_EQ(bill.unpriced_ms, 0);
  EXPECT_THAT(bill.missing, IsEmpty());
}

TEST(PriceIntervalsTest, FiveHundredWattsForAnHourCostWhatTheTariffSays) {
  // 500 W x PUE 1.3 x 0.12 a kWh = 0.078 an hour.
  const PriceBook book{.currency = "USD", .prices = {PriceOf("X", 0, 0, 78'000'000)}};
  const Bill bill = PriceIntervals({IntervalOf("X", 1, 0, kHour)}, &book);
  EXPECT_EQ(FormatMoney(bill.energy), "0.078");
}

TEST(PriceIntervalsTest, APriceChangeInsideAnIntervalSplitsItAtTheInstant) {
  const PriceBook book{.currency = "USD",
                       .prices = {PriceOf("X", 0, kHour), PriceOf("X", 1000, 2 * kHour)}};
  const auto cost = [&](std::int64_t begin, std::int64_t end) {
    return PriceIntervals({IntervalOf("X", 1, begin, end)}, &book).hardware.v;
  };
  EXPECT_EQ(cost(0, 1000), 1000);
  EXPECT_EQ(cost(1000, 2000), 2000);
  EXPECT_EQ(cost(0, 2000), 3000);
  EXPECT_EQ(cost(999, 1001), 3);
}

TEST(PriceIntervalsTest, RoundsHalfToEvenOncePerRow) {
  const auto cost = [](std::int64_t price, std::int64_t ms) {
    const PriceBook book{.currency = "USD", .prices = {PriceOf("X", 0, price)}};
    return PriceIntervals({IntervalOf("X", 1, 0, ms)}, &book).hardware.v;
  };
  EXPECT_EQ(cost(kHour / 2, 1), 0);      // 0.5
  EXPECT_EQ(cost(kHour / 2, 3), 2);      // 1.5
  EXPECT_EQ(cost(kHour / 2, 5), 2);      // 2.5
  EXPECT_EQ(cost(kHour / 2 + 1, 1), 1);  // just over 0.5
  EXPECT_EQ(cost(kHour / 2 - 1, 1), 0);
}

TEST(PriceIntervalsTest, TimeBeforeTheFirstPriceIsUnpricedNotFree) {
  const PriceBook book{.currency = "USD", .prices = {PriceOf("X", 1000, kUnit)}};
  const Bill bill = PriceIntervals({IntervalOf("X", 2, 0, 3000)}, &book);
  EXPECT_EQ(bill.device_ms, 6000);
  EXPECT_EQ(bill.unpriced_ms, 2000);
  EXPECT_THAT(bill.missing, ElementsAre("no price for nvidia X before 1970-01-01T00:00:01Z"));
}

TEST(PriceIntervalsTest, UnknownModelsAndMissingBooksAreNamedOnce) {
  const PriceBook book{.currency = "USD", .prices = {PriceOf("X", 0, kUnit)}};
  const Bill bill = PriceIntervals(
      {IntervalOf("Y", 1, 0, 10), IntervalOf("Y", 1, 20, 30), IntervalOf("", 1, 0, 10)}, &book);
  EXPECT_EQ(bill.unpriced_ms, bill.device_ms);
  EXPECT_THAT(bill.missing,
              ElementsAre("no price for nvidia Y", "no price for nvidia devices of unknown model"));
  EXPECT_THAT(PriceIntervals({IntervalOf("X", 1, 0, 10)}, nullptr).missing,
              ElementsAre(HasSubstr("no price book")));
}

TEST(PriceIntervalsTest, EmptyAndBackwardIntervalsCountAsNothing) {
  const PriceBook book{.currency = "USD", .prices = {PriceOf("X", 0, kUnit)}};
  const Bill bill = PriceIntervals({IntervalOf("X", 1, 5, 5), IntervalOf("X", 1, 5, 4),
                                    IntervalOf("X", 0, 0, 9), IntervalOf("X", -1, 0, 9)},
                                   &book);
  EXPECT_EQ(bill.device_ms, 0);
  EXPECT_EQ(bill.Total(), NanoCurrency{0});
}

TEST(PriceIntervalsTest, AbsurdSumsStopAtTheEnd) {
  constexpr auto kMax = std::numeric_limits<std::int64_t>::max();
  constexpr auto kMin = std::numeric_limits<std::int64_t>::min();
  const PriceBook book{.currency = "USD", .prices = {PriceOf("X", kMin, kMax, kMax, kMax)}};
  const Bill bill = PriceIntervals({IntervalOf("X", kMax, kMin, kMax)}, &book);
  EXPECT_EQ(bill.Total(), NanoCurrency{kMax});
  EXPECT_EQ(bill.device_ms, kMax);
}

// The oracle walks millisecond by millisecond and asks what price holds.
struct Oracle {
  std::int64_t device_ms = 0, unpriced_ms = 0, hardware = 0;
};

std::int64_t RoundHalfEven(__int128 numerator, std::int64_t denominator) {
  const __int128 floor = numerator / denominator, rest = numerator % denominator;
  const bool up = rest * 2 > denominator || (rest * 2 == denominator && floor % 2 == 1);
  return static_cast<std::int64_t>(floor + (up ? 1 : 0));
}

Oracle Walk(const std::vector<Interval>& intervals, const PriceBook& book) {
  Oracle oracle;
  for (const Interval& interval : intervals) {
    std::map<std::int64_t, __int128> rows;  // by `from` of the price
    for (std::int64_t ms = interval.begin.ms; ms < interval.end.ms; ++ms) {
      oracle.device_ms += interval.devices;
      const Price* holds = nullptr;
      for (const Price& price : book.prices) {
        if (price.model == interval.model && price.from.ms <= ms) holds = &price;
      }
      if (holds == nullptr) {
        oracle.unpriced_ms += interval.devices;
      } else {
        rows[holds->from.ms] += static_cast<__int128>(holds->hardware.v) * interval.devices;
      }
    }
    for (const auto& [from, numerator] : rows) oracle.hardware += RoundHalfEven(numerator, kHour);
  }
  return oracle;
}

TEST(PriceIntervalsProperty, EqualsAWalkMillisecondByMillisecond) {
  std::mt19937_64 random(20260131);
  const auto up = [&](std::int64_t n) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n));
  };
  for (int round = 0; round < 1000; ++round) {
    PriceBook book{.currency = "USD", .prices = {}};
    for (const char* model : {"X", "Y"}) {
      std::int64_t from = up(60);
      for (std::int64_t i = up(4); i > 0; --i) {
        book.prices.push_back(PriceOf(model, from, up(3) == 0 ? kHour / 2 : up(9'000'000'000)));
        from += 1 + up(40);
      }
    }
    std::vector<Interval> intervals;
    for (std::int64_t i = up(6); i > 0; --i) {
      const std::int64_t begin = up(100);
      intervals.push_back(IntervalOf(up(2) == 0 ? "X" : "Y", 1 + up(9), begin, begin + up(100)));
    }
    const Oracle oracle = Walk(intervals, book);
    const Bill bill = PriceIntervals(intervals, &book);
    ASSERT_EQ(bill.device_ms, oracle.device_ms) << round;
    ASSERT_EQ(bill.unpriced_ms, oracle.unpriced_ms) << round;
    ASSERT_EQ(bill.hardware.v, oracle.hardware) << round;
    std::reverse(intervals.begin(), intervals.end());
    ASSERT_EQ(PriceIntervals(intervals, &book).hardware, bill.hardware) << round;
  }
}

TEST(PriceIntervalsProperty, CuttingAnIntervalConservesTimeAndMovesMoneyByRoundingOnly) {
  std::mt19937_64 random(7);
  const PriceBook book{.currency = "USD", .prices = {PriceOf("X", 50, 1'234'567'891)}};
  for (int round = 0; round < 1000; ++round) {
    const auto cut = static_cast<std::int64_t>(random() % 9'999) + 1;
    const Bill whole = PriceIntervals({IntervalOf("X", 3, 0, 10'000)}, &book);
    const Bill parts =
        PriceIntervals({IntervalOf("X", 3, 0, cut), IntervalOf("X", 3, cut, 10'000)}, &book);
    EXPECT_EQ(parts.device_ms, whole.device_ms);
    EXPECT_EQ(parts.unpriced_ms, whole.unpriced_ms);
    EXPECT_LE(std::abs(parts.hardware.v - whole.hardware.v), 1);
  }
}

api::PriceBook GoodBook() {
  api::PriceBook book;
  book.mutable_spec()->set_currency("USD");
  for (const char* from : {"2026-02-01T00:00:00Z", "2026-01-01T00:00:00Z"}) {
    auto* price = book.mutable_spec()->add_prices();
    price->set_vendor("nvidia");
    price->set_model("X");
    price->set_from(from);
    price->set_hardware_per_hour("2.49");
    price->set_energy_per_hour("0.078");
  }
  return book;
}

TEST(PriceBookFromApiTest, SortsPricesAndReadsComponents) {
  const auto book = PriceBookFromApi(GoodBook());
  ASSERT_TRUE(book) << book.error().message;
  EXPECT_EQ(book->currency, "USD");
  EXPECT_LT(book->prices[0].from, book->prices[1].from);
  EXPECT_EQ(book->prices[0].hardware, NanoCurrency{2'490'000'000});
  EXPECT_EQ(book->prices[0].energy, NanoCurrency{78'000'000});
  EXPECT_EQ(book->prices[0].labour, NanoCurrency{0});
}

TEST(PriceBookFromApiTest, NamesTheEntryAndTheRemedy) {
  const auto error = [](auto spoil) {
    api::PriceBook book = GoodBook();
    spoil(*book.mutable_spec());
    const auto read = PriceBookFromApi(book);
    EXPECT_FALSE(read);
    return read ? std::string() : read.error().message;
  };
  EXPECT_THAT(error([](auto& s) { s.set_currency("dollars"); }), HasSubstr("spec.currency: "));
  EXPECT_THAT(error([](auto& s) { s.clear_prices(); }), HasSubstr("spec.prices: "));
  EXPECT_EQ(error([](auto& s) { s.mutable_prices(1)->set_hardware_per_hour("-1"); }),
            "spec.prices[1].hardwarePerHour: \"-1\" is negative; use 0 or more");
  EXPECT_THAT(error([](auto& s) { s.mutable_prices(0)->clear_hardware_per_hour(); }),
              HasSubstr("spec.prices[0].hardwarePerHour: "));
  EXPECT_THAT(error([](auto& s) { s.mutable_prices(0)->set_vendor("x"); }),
              HasSubstr("spec.prices[0].vendor: "));
  EXPECT_THAT(error([](auto& s) { s.mutable_prices(0)->clear_model(); }),
              HasSubstr("spec.prices[0].model: "));
  EXPECT_THAT(error([](auto& s) { s.mutable_prices(0)->set_from("soon"); }),
              HasSubstr("spec.prices[0].from: "));
  EXPECT_THAT(error([](auto& s) { *s.mutable_prices(1) = s.prices(0); }),
              HasSubstr("spec.prices[1]: "));
}

TEST(FormatMoneyTest, KeepsAtLeastTwoDecimalsAndLosesNothing) {
  EXPECT_EQ(FormatMoney(NanoCurrency{1'200'000'000}), "1.20");
  EXPECT_EQ(FormatMoney(NanoCurrency{12'300'000}), "0.0123");
  EXPECT_EQ(FormatMoney(NanoCurrency{0}), "0.00");
  EXPECT_EQ(FormatMoney(NanoCurrency{12'345'678}), "0.012345678");
  EXPECT_EQ(FormatMoney(NanoCurrency{-1}), "-0.000000001");
  EXPECT_EQ(FormatMoney(NanoCurrency{std::numeric_limits<std::int64_t>::min()}),
            "-9223372036.854775808");
}

TEST(FormatSecondsTest, ShowsMilliseconds) {
  EXPECT_EQ(FormatSeconds(12'345), "12.345");
  EXPECT_EQ(FormatSeconds(12'000), "12.000");
  EXPECT_EQ(FormatSeconds(7), "0.007");
  EXPECT_EQ(FormatSeconds(-1'500), "-1.500");
}

TEST(ParseMoneyTest, ReadsWhatFormatWritesAndRefusesTheRest) {
  for (const std::int64_t v : {std::int64_t{0}, std::int64_t{1}, kUnit, 9'200'000'000 * kUnit}) {
    EXPECT_EQ(ParseMoney(FormatMoney(NanoCurrency{v})).value(), NanoCurrency{v});
  }
  EXPECT_EQ(ParseMoney("2").value(), NanoCurrency{2 * kUnit});
  for (const char* bad : {"", "-1", "+1", ".5", "1.", "1e3", "1,5", " 1", "1 ", "NaN", "0x8",
                          "1..2", "1.0000000001", "9200000000.000000001", "99999999999999999999"}) {
    EXPECT_FALSE(ParseMoney(bad)) << bad;
  }
}

}  // namespace
}  // namespace bimetal::core::cost
