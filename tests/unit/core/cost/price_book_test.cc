#include "core/cost/price_book.h"

#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/cost/rates.h"

namespace bimetal::core::cost {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::int64_t kUnit = 1'000'000'000;
constexpr auto kJanuary = "2026-01-01T00:00:00Z";
constexpr auto kFebruary = "2026-02-01T00:00:00Z";
constexpr auto kMarch = "2026-03-01T00:00:00Z";

TimePoint Time(const std::string& text) { return ParseTime(text).value(); }

api::Price* AddPrice(api::PriceBook& book, const char* from = kJanuary) {
  auto* price = book.mutable_spec()->add_prices();
  price->set_vendor("amd");
  price->set_model("M");
  price->set_from(from);
  return price;
}

api::Tariff* AddTariff(api::PriceBook& book, const char* per_kwh, const char* from = kJanuary) {
  auto* tariff = book.mutable_spec()->add_tariffs();
  tariff->set_zone("north");
  tariff->set_from(from);
  tariff->set_per_kilowatt_hour(per_kwh);
  return tariff;
}

api::PlatformLabour* AddLabour(api::PriceBook& book, const char* vendor = "amd") {
  auto* labour = book.mutable_spec()->add_platform_labour();
  labour->set_vendor(vendor);
  labour->set_from(kJanuary);
  labour->set_hours_per_month("73.05");
  labour->set_wage_per_hour("100");
  labour->set_devices(16);
  return labour;
}

api::PriceBook Empty() {
  api::PriceBook book;
  book.mutable_spec()->set_currency("USD");
  return book;
}

// Bought machines whose joules are priced by the tariff of zone north.
api::PriceBook Owned() {
  api::PriceBook book = Empty();
  auto* price = AddPrice(book);
  auto* owned = price->mutable_owned();
  owned->set_capital("250000");
  owned->set_residual_percent(25);
  owned->set_life_months(48);
  owned->set_financing("30000");
  owned->set_fixed_per_month("1461");
  owned->set_devices(8);
  price->set_energy_zone("north");
  AddTariff(book, "0.12")->set_pue("1.3");
  return book;
}

std::string ErrorOf(const api::PriceBook& book) {
  const auto read = PriceBookFromApi(book);
  EXPECT_FALSE(read);
  return read ? std::string() : read.error().message;
}

PriceBook Read(const api::PriceBook& book) {
  auto read = PriceBookFromApi(book);
  EXPECT_TRUE(read) << read.error().message;
  return read ? std::move(*read) : PriceBook();
}

Rates Of(const PriceBook& book, const std::string& at, std::string pool = "",
         std::string purchase = "") {
  return RatesAt(book,
                 {.vendor = Vendor::kAmd,
                  .model = "M",
                  .pool = std::move(pool),
                  .purchase = std::move(purchase)},
                 Time(at));
}

// ((250000 x 0.75 + 30000) / (4 x 8766) + 1461 x 12 / 8766) / 8 = 1.025410..., exactly
// (217500 / 35064 + 2) / 8.
TEST(OwnedPerHourTest, IsTheFormulaOfCalendarHoursInIntegers) {
  const auto rate = OwnedPerHour({250'000 * kUnit}, 25, {30'000 * kUnit}, {1461 * kUnit}, 48, 8);
  EXPECT_EQ(rate.v, (217'500 * kUnit / 8 + 35064 / 2) / 35064 + kUnit / 4);
  // A year of every hour is what was paid, to the rounding of a rate.
  const auto simple = OwnedPerHour({8766 * kUnit}, 0, {}, {}, 12, 1);
  EXPECT_EQ(simple.v, kUnit);
}

TEST(OwnedPerHourTest, StandsTheLargestAmounts) {
  EXPECT_GT(OwnedPerHour({9'200'000'000 * kUnit}, 0, {9'200'000'000 * kUnit},
                         {9'200'000'000 * kUnit}, 240, 1)
                .v,
            0);
}

// 500 W x 1 h x PUE 1.3 x 0.12 = 0.078.
TEST(EnergyCostTest, IsJoulesTimesPueTimesTariff) {
  EXPECT_EQ(EnergyCost(1'800'000'000, 1300, {120'000'000}), NanoCurrency{78'000'000});
  EXPECT_EQ(EnergyCost(0, 1300, {120'000'000}), NanoCurrency{0});
  EXPECT_EQ(EnergyCost(INT64_MAX, 3000, {INT64_MAX}), NanoCurrency{INT64_MAX});
}

// 73.05 h x 100 / (16 x 730.5 h) = 0.625.
TEST(PlatformLabourPerHourTest, SpreadsAMonthOverTheDevicesHours) {
  EXPECT_EQ(PlatformLabourPerHour(73'050'000'000, {100 * kUnit}, 16).v, 625'000'000);
}

TEST(PriceBookTest, ReadsOwnedHardwareWithAMeteredTariff) {
  const PriceBook book = Read(Owned());
  const Rates rates = Of(book, kJanuary);
  EXPECT_EQ(rates.missing, "");
  EXPECT_EQ(rates.hardware,
            OwnedPerHour({250'000 * kUnit}, 25, {30'000 * kUnit}, {1461 * kUnit}, 48, 8));
  EXPECT_TRUE(rates.metered);
  EXPECT_EQ(rates.per_kilowatt_hour.v, 120'000'000);
  EXPECT_EQ(rates.pue_milli, 1300);
  EXPECT_EQ(rates.energy.v, 0);
  EXPECT_FALSE(rates.until);
}

TEST(PriceBookTest, AssumedPowerGivesAFlatFigureBesideTheTariff) {
  api::PriceBook book = Owned();
  book.mutable_spec()->mutable_prices(0)->set_assumed_watts(500);
  EXPECT_EQ(Of(Read(book), kJanuary).energy.v, 78'000'000);
}

TEST(PriceBookTest, DividesTheRentOfAMachineByItsDevices) {
  api::PriceBook book = Empty();
  auto* rented = AddPrice(book)->mutable_rented();
  rented->set_price_per_hour("19.60");
  rented->set_devices(8);
  rented->set_billing_seconds(3600);
  const Rates rates = Of(Read(book), kJanuary);
  EXPECT_EQ(rates.hardware.v, 2'450'000'000);
  EXPECT_EQ(rates.billing_ms, kMsPerHour);
}

TEST(PriceBookTest, RefusesElectricityOnTopOfAnAllInRent) {
  api::PriceBook book = Empty();
  auto* price = AddPrice(book);
  price->mutable_rented()->set_price_per_hour("2");
  price->mutable_rented()->set_devices(1);
  price->set_energy_per_hour("0.1");
  EXPECT_EQ(ErrorOf(book),
            "spec.prices[0].energyPerHour: is on top of a rent that includes electricity; remove "
            "it, or set rented.includesEnergy to false");
  price->mutable_rented()->set_includes_energy(false);
  EXPECT_TRUE(PriceBookFromApi(book));
}

TEST(PriceBookTest, APriceNeedsExactlyOneForm) {
  api::PriceBook book = Empty();
  AddPrice(book);
  EXPECT_THAT(ErrorOf(book), HasSubstr("a model without a price is not free"));
  book = Owned();
  book.mutable_spec()->mutable_prices(0)->set_hardware_per_hour("2");
  EXPECT_THAT(ErrorOf(book), HasSubstr("more than one of hardwarePerHour, owned and rented"));
}

TEST(PriceBookTest, NamesTheFieldAndTheRemedyOfWhatIsAbsurd) {
  const auto error = [](auto spoil) {
    api::PriceBook book = Owned();
    spoil(*book.mutable_spec());
    return ErrorOf(book);
  };
  EXPECT_THAT(error([](auto& s) { s.mutable_prices(0)->mutable_owned()->set_capital("-5"); }),
              HasSubstr("spec.prices[0].owned.capital: \"-5\" is negative"));
  EXPECT_THAT(error([](auto& s) { s.mutable_prices(0)->mutable_owned()->clear_capital(); }),
              HasSubstr("spec.prices[0].owned.capital: is empty"));
  EXPECT_THAT(
      error([](auto& s) { s.mutable_prices(0)->mutable_owned()->set_residual_percent(100); }),
      HasSubstr("spec.prices[0].owned.residualPercent: 100 is over 99"));
  EXPECT_THAT(error([](auto& s) { s.mutable_prices(0)->mutable_owned()->set_life_months(0); }),
              HasSubstr("spec.prices[0].owned.lifeMonths"));
  EXPECT_THAT(error([](auto& s) { s.mutable_prices(0)->mutable_owned()->set_devices(0); }),
              HasSubstr("spec.prices[0].owned.devices"));
  EXPECT_THAT(error([](auto& s) { s.mutable_prices(0)->set_purchase("Borrowed"); }),
              HasSubstr("spec.prices[0].purchase: \"Borrowed\" is not known"));
  EXPECT_THAT(error([](auto& s) { s.mutable_prices(0)->set_purchase("Spot"); }),
              HasSubstr("contradicts owned"));
  EXPECT_THAT(error([](auto& s) { s.mutable_prices(0)->set_to(kJanuary); }),
              HasSubstr("spec.prices[0].to: "));
  EXPECT_THAT(error([](auto& s) { s.mutable_prices(0)->set_energy_zone("south"); }),
              HasSubstr("no tariff is of zone \"south\""));
  EXPECT_THAT(error([](auto& s) { s.mutable_prices(0)->set_energy_per_hour("1"); }),
              HasSubstr("same electricity"));
  EXPECT_THAT(error([](auto& s) {
                s.mutable_prices(0)->clear_energy_zone();
                s.mutable_prices(0)->set_assumed_watts(500);
              }),
              HasSubstr("spec.prices[0].assumedWatts: has no meaning"));
  for (const char* pue : {"0.9", "3.1", "1.2345", "x", "-1"}) {
    EXPECT_THAT(error([&](auto& s) { s.mutable_tariffs(0)->set_pue(pue); }),
                HasSubstr("spec.tariffs[0].pue: "));
  }
  EXPECT_THAT(error([](auto& s) { s.mutable_tariffs(0)->set_from_hour(7); }),
              HasSubstr("spec.tariffs[0].toHour: is left out"));
  EXPECT_THAT(error([](auto& s) { s.mutable_prices(0)->set_currency("EUR"); }),
              HasSubstr("spec.exchangeRates has no rate"));
}

TEST(PriceBookTest, ReportsInOneCurrencyAtTheBooksRate) {
  api::PriceBook book = Empty();
  auto* price = AddPrice(book);
  price->set_hardware_per_hour("2");
  price->set_currency("EUR");
  auto* rate = book.mutable_spec()->add_exchange_rates();
  rate->set_currency("EUR");
  rate->set_rate("1.085");
  EXPECT_EQ(Of(Read(book), kJanuary).hardware.v, 2'170'000'000);
  rate->set_rate("0");
  EXPECT_THAT(ErrorOf(book), HasSubstr("spec.exchangeRates[0].rate: is 0"));
  rate->set_rate("1");
  rate->set_currency("USD");
  EXPECT_THAT(ErrorOf(book), HasSubstr("the book's own"));
}

TEST(PriceBookTest, EntriesEndWhereTheNextBeginsOrWhereTheySay) {
  api::PriceBook book = Empty();
  AddPrice(book, kFebruary)->set_hardware_per_hour("2");
  AddPrice(book, kJanuary)->set_hardware_per_hour("1");
  PriceBook read = Read(book);
  EXPECT_EQ(Of(read, kJanuary).hardware.v, kUnit);
  EXPECT_EQ(Of(read, kJanuary).until, Time(kFebruary));
  EXPECT_EQ(Of(read, kMarch).hardware.v, 2 * kUnit);
  book.mutable_spec()->mutable_prices(0)->set_to(kMarch);
  read = Read(book);
  EXPECT_EQ(Of(read, kMarch).missing, "no price for amd M from 2026-03-01T00:00:00Z on");
  EXPECT_EQ(Of(read, "2025-12-31T23:59:59Z").missing,
            "no price for amd M before 2026-01-01T00:00:00Z");
  book.mutable_spec()->mutable_prices(1)->set_to("2026-01-15T00:00:00Z");
  EXPECT_EQ(Of(Read(book), "2026-01-20T00:00:00Z").missing,
            "no price for amd M from 2026-01-15T00:00:00Z to 2026-02-01T00:00:00Z");
}

TEST(PriceBookTest, RefusesPricesThatOverlap) {
  api::PriceBook book = Empty();
  AddPrice(book, kJanuary)->set_hardware_per_hour("1");
  AddPrice(book, kFebruary)->set_hardware_per_hour("2");
  book.mutable_spec()->mutable_prices(0)->set_to(kMarch);
  EXPECT_EQ(ErrorOf(book),
            "spec.prices[1]: overlaps spec.prices[0] from 2026-02-01T00:00:00Z on; end one before "
            "the other begins");
  book.mutable_spec()->mutable_prices(1)->set_pool("own");
  EXPECT_TRUE(PriceBookFromApi(book));
}

TEST(PriceBookTest, ThePoolsOwnPriceGoesFirstThenThePurchases) {
  api::PriceBook book = Empty();
  AddPrice(book)->set_hardware_per_hour("1");
  auto* pool = AddPrice(book);
  pool->set_hardware_per_hour("2");
  pool->set_pool("p");
  auto* spot = AddPrice(book);
  spot->set_hardware_per_hour("3");
  spot->set_purchase("Spot");
  const PriceBook read = Read(book);
  EXPECT_EQ(Of(read, kJanuary, "p").hardware.v, 2 * kUnit);
  EXPECT_EQ(Of(read, kJanuary, "p", "Spot").hardware.v, 2 * kUnit);
  EXPECT_EQ(Of(read, kJanuary, "q", "Spot").hardware.v, 3 * kUnit);
  EXPECT_EQ(Of(read, kJanuary, "q", "Owned").hardware.v, kUnit);
  EXPECT_THAT(Of(read, kJanuary, "q").missing, HasSubstr("several purchases"));
}

TEST(PriceBookTest, TariffsChangeByTheHourAlsoOverMidnight) {
  api::PriceBook book = Owned();
  auto* day = book.mutable_spec()->mutable_tariffs(0);
  day->set_from_hour(6);
  day->set_to_hour(22);
  auto* night = AddTariff(book, "0.05");
  night->set_from_hour(22);
  night->set_to_hour(6);
  const PriceBook read = Read(book);
  EXPECT_EQ(Of(read, "2026-01-10T21:59:59Z").per_kilowatt_hour.v, 120'000'000);
  EXPECT_EQ(Of(read, "2026-01-10T21:59:59Z").until, Time("2026-01-10T22:00:00Z"));
  EXPECT_EQ(Of(read, "2026-01-10T22:00:00Z").per_kilowatt_hour.v, 50'000'000);
  EXPECT_EQ(Of(read, "2026-01-10T22:00:00Z").until, Time("2026-01-11T06:00:00Z"));
  EXPECT_EQ(Of(read, "2026-01-11T05:59:59Z").per_kilowatt_hour.v, 50'000'000);
  EXPECT_THAT(Review(read), Not(Contains(Field(&Finding::reason, "TariffGap"))));
}

TEST(PriceBookTest, RefusesTariffsThatShareAnHour) {
  api::PriceBook book = Owned();
  auto* evening = AddTariff(book, "0.2");
  evening->set_from_hour(17);
  evening->set_to_hour(21);
  EXPECT_THAT(ErrorOf(book), HasSubstr("spec.tariffs[1]: overlaps spec.tariffs[0]"));
  evening->set_zone("south");
  EXPECT_TRUE(PriceBookFromApi(book));
}

TEST(PriceBookTest, TimeWithoutATariffIsUnpricedNotFree) {
  api::PriceBook book = Owned();
  book.mutable_spec()->mutable_tariffs(0)->set_from(kFebruary);
  const PriceBook read = Read(book);
  EXPECT_THAT(Of(read, kJanuary).missing, HasSubstr("no tariff of zone north"));
  EXPECT_EQ(Of(read, kJanuary).until, Time(kFebruary));
  EXPECT_THAT(Review(read), Contains(Finding{"TariffGap",
                                             "zone north has no tariff from 2026-01-01T00:00:00Z "
                                             "on for hour 0 UTC; what runs then is shown as "
                                             "unpriced: add one"}));
}

TEST(PriceBookTest, PlatformLabourIsPerVendorAndPool) {
  api::PriceBook book = Owned();
  AddLabour(book);
  auto* own = AddLabour(book);
  own->set_pool("p");
  own->set_devices(8);
  AddLabour(book, "nvidia")->set_devices(1);
  const PriceBook read = Read(book);
  EXPECT_FALSE(Of(Read(Owned()), kJanuary).labour_told);
  EXPECT_TRUE(Of(read, kJanuary).labour_told);
  EXPECT_EQ(Of(read, kJanuary).labour.v, 625'000'000);
  EXPECT_EQ(Of(read, kJanuary, "p").labour.v, 1'250'000'000);
  AddLabour(book);
  EXPECT_THAT(ErrorOf(book), HasSubstr("spec.platformLabour[3]: overlaps spec.platformLabour[0]"));
}

TEST(PriceBookTest, RefusesTheSameLabourTwice) {
  api::PriceBook book = Owned();
  book.mutable_spec()->mutable_prices(0)->set_labour_per_hour("1");
  AddLabour(book);
  EXPECT_EQ(ErrorOf(book),
            "spec.prices[0].labourPerHour: prices the same work as spec.platformLabour[0]; remove "
            "one");
}

TEST(PriceBookTest, ReadsWorkloadLabourAndOverheads) {
  api::PriceBook book = Owned();
  auto* port = book.mutable_spec()->add_workload_labour();
  port->set_workload("chat");
  port->set_vendor("amd");
  port->set_hours("200");
  port->set_wage_per_hour("120");
  port->set_planned_units(1'000'000);
  port->set_upkeep_hours_per_month("2.5");
  auto* overhead = book.mutable_spec()->add_overheads();
  overhead->set_name("monitoring");
  overhead->set_from(kJanuary);
  overhead->set_per_month("730.5");
  const PriceBook read = Read(book);
  EXPECT_EQ(read.workload_labour[0].total.v, 24'000 * kUnit);
  EXPECT_EQ(read.workload_labour[0].upkeep_per_month.v, 300 * kUnit);
  EXPECT_EQ(read.overheads[0].per_month.v, 730 * kUnit + kUnit / 2);
}

std::vector<std::string> Reasons(const PriceBook& book) {
  std::vector<std::string> reasons;
  for (const auto& finding : Review(book)) reasons.push_back(finding.reason);
  return reasons;
}

TEST(ReviewTest, AWholeBookHasNothingToSay) {
  api::PriceBook book = Owned();
  AddLabour(book);
  EXPECT_THAT(Review(Read(book)), IsEmpty());
}

TEST(ReviewTest, NamesWhatALawfulBookLeavesOpen) {
  EXPECT_THAT(Reasons(Read(Owned())), ElementsAre("LabourNotSet"));
  api::PriceBook book = Empty();
  book.mutable_spec()->set_example(true);
  auto* price = AddPrice(book);
  price->set_hardware_per_hour("0");
  price->set_to(kFebruary);
  EXPECT_THAT(Reasons(Read(book)), ElementsAre("EnergyNotPriced", "ExampleFigures", "LabourNotSet",
                                               "PriceGap", "PriceIsZero"));
}

TEST(ReviewTest, DoubtsPricesOutOfProportion) {
  api::PriceBook book = Owned();
  AddLabour(book);
  book.mutable_spec()->mutable_tariffs(0)->set_per_kilowatt_hour("120");  // a megawatt hour's
  EXPECT_THAT(Reasons(Read(book)), ElementsAre("EnergyAboveHardware"));
  book = Owned();
  AddLabour(book);
  auto* eight = AddPrice(book, kFebruary);
  eight->set_hardware_per_hour("20");
  eight->set_energy_zone("north");
  EXPECT_THAT(Reasons(Read(book)), ElementsAre("PriceJump"));
}

// Against a walk over every hour: books that are read never hold two prices of a series at once,
// and what a lookup says is missing is what a person would find missing.
TEST(PriceBookProperty, OverlapsAreRefusedAndGapsAreMissingAndToldOf) {
  std::mt19937_64 random(26);
  const auto up = [&](std::uint64_t n) { return static_cast<std::int64_t>(random() % n); };
  const std::int64_t base = Time(kJanuary).ms;
  int accepted = 0, refused = 0;
  for (int round = 0; round < 3000; ++round) {
    api::PriceBook book = Empty();
    struct Dated {
      std::int64_t from, to;
    };
    std::vector<Dated> dated;
    for (std::int64_t i = 1 + up(3); i > 0; --i) {
      const std::int64_t from = up(20), to = up(3) == 0 ? 99 : from + 1 + up(8);
      auto* price = AddPrice(book, FormatTime(TimePoint{base + from * kMsPerHour}).c_str());
      if (to != 99) price->set_to(FormatTime(TimePoint{base + to * kMsPerHour}));
      price->set_hardware_per_hour("1");
      dated.push_back({from, to});
    }
    for (auto& one : dated) {
      if (one.to != 99) continue;
      for (const auto& other : dated) {
        if (other.from > one.from) one.to = std::min(one.to, other.from);
      }
    }
    bool overlap = false, gap = false;
    std::vector<int> holds(40, 0);
    for (std::int64_t hour = 0; hour < 40; ++hour) {
      for (const auto& one : dated) {
        if (one.from <= hour && hour < one.to) ++holds[static_cast<std::size_t>(hour)];
      }
      overlap = overlap || holds[static_cast<std::size_t>(hour)] > 1;
    }
    const std::int64_t first = std::min_element(dated.begin(), dated.end(), [](auto& a, auto& b) {
                                 return a.from < b.from;
                               })->from;
    for (std::int64_t hour = first; hour < 40; ++hour) {
      gap = gap || holds[static_cast<std::size_t>(hour)] == 0;
    }
    const auto read = PriceBookFromApi(book);
    ASSERT_EQ(read.has_value(), !overlap) << round;
    ++(read ? accepted : refused);
    if (!read) continue;
    const auto reasons = Reasons(*read);
    ASSERT_EQ(std::count(reasons.begin(), reasons.end(), "PriceGap") > 0, gap) << round;
    for (std::int64_t hour = 0; hour < 40; ++hour) {
      const auto rates = RatesAt(*read, {.vendor = Vendor::kAmd, .model = "M"},
                                 TimePoint{base + hour * kMsPerHour});
      ASSERT_EQ(rates.missing.empty(), holds[static_cast<std::size_t>(hour)] == 1) << round;
      if (rates.until) {
        ASSERT_GT(rates.until->ms, base + hour * kMsPerHour);
      }
    }
  }
  EXPECT_GT(accepted, 300);
  EXPECT_GT(refused, 300);
}

}  // namespace
}  // namespace bimetal::core::cost
