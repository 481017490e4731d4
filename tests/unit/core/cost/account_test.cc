#include "core/cost/account.h"

#include <algorithm>
#include <limits>
#include <map>
#include <random>
#include <tuple>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/cost/share.h"

namespace bimetal::core::cost {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kUnit = 1'000'000'000;
constexpr std::int64_t kHour = kMsPerHour;

PriceBook BookOf(std::int64_t hardware, std::int64_t labour = 0) {
  PriceBook book{.currency = "USD"};
  book.prices.push_back({.vendor = Vendor::kNvidia,
                         .model = "X",
                         .from = TimePoint{0},
                         .hardware = {hardware},
                         .labour = {labour}});
  return book;
}

DeviceTimeline DeviceFor(std::int64_t begin, std::int64_t end) {
  return {.device = {"gpu-1"},
          .kind = {.vendor = Vendor::kNvidia, .model = "X"},
          .begin = TimePoint{begin},
          .end = TimePoint{end}};
}

Holding HoldingOf(const std::string& job, std::int64_t begin, std::int64_t end,
                  Ratio share = Ratio::One(), std::int64_t attempt = 1) {
  return {.id = job + "/" + std::to_string(attempt) + "/" + std::to_string(begin),
          .job = {job},
          .attempt = attempt,
          .share = share,
          .begin = TimePoint{begin},
          .end = TimePoint{end}};
}

std::vector<Row> Rows(const DeviceTimeline& timeline, const PriceBook& book) {
  auto rows = CloseRows(timeline, &book);
  EXPECT_TRUE(rows) << rows.error().message;
  if (!rows) return {};
  EXPECT_EQ(Sum(*rows), DeviceCost(timeline, &book).value());
  return *rows;
}

template <class Predicate>
Amounts SumWhere(const std::vector<Row>& rows, Predicate predicate) {
  Amounts sum;
  for (const Row& row : rows) {
    if (predicate(row)) sum.Add(row.amounts);
  }
  return sum;
}

Amounts OfJob(const std::vector<Row>& rows, const std::string& job) {
  return SumWhere(rows, [&](const Row& row) { return row.job.value == job; });
}

Amounts InState(const std::vector<Row>& rows, DeviceState state) {
  return SumWhere(rows, [&](const Row& row) { return row.state == state; });
}

TEST(CloseRowsTest, EightDevicesForThreeHoursAtTwoAreFortyEightExactly) {
  Amounts sum;
  for (int i = 0; i < 8; ++i) {
    auto device = DeviceFor(0, 3 * kHour);
    device.holdings = {HoldingOf("j", 0, 3 * kHour)};
    sum.Add(Sum(Rows(device, BookOf(2 * kUnit))));
  }
  EXPECT_EQ(sum.Total().v, 48 * kUnit);
  EXPECT_EQ(sum.device_ms, 24 * kHour);
}

TEST(CloseRowsTest, FiveHundredWattsForAnHourCostJoulesTimesPueTimesTariff) {
  PriceBook book = BookOf(0);
  book.prices[0].energy_zone = "north";
  book.tariffs.push_back(
      {"north", TimePoint{0}, std::nullopt, (1U << 24) - 1, {120'000'000}, 1300});
  auto device = DeviceFor(0, kHour);
  device.holdings = {HoldingOf("j", 0, kHour)};
  device.energy = {{TimePoint{0}, TimePoint{kHour}, 1'800'000'000}};
  const auto rows = Rows(device, book);
  EXPECT_EQ(OfJob(rows, "j").energy.v, 78'000'000);
  EXPECT_EQ(OfJob(rows, "j").millijoules, 1'800'000'000);
  EXPECT_EQ(rows[0].energy_source, EnergySource::kMeasured);
}

TEST(CloseRowsTest, APriceStepInsideAnHourIsNeitherLostNorCountedTwice) {
  PriceBook book = BookOf(kHour);
  book.prices.push_back(book.prices[0]);
  book.prices[1].from = TimePoint{1000};
  book.prices[1].hardware = {2 * kHour};
  const auto cost = [&](std::int64_t begin, std::int64_t end) {
    auto device = DeviceFor(begin, end);
    device.holdings = {HoldingOf("j", begin, end)};
    return Sum(Rows(device, book)).hardware.v;
  };
  EXPECT_EQ(cost(0, 1000), 1000);
  EXPECT_EQ(cost(1000, 2000), 2000);
  EXPECT_EQ(cost(0, 2000), 3000);
  EXPECT_EQ(cost(999, 1001), 3);
}

TEST(CloseRowsTest, PriceAndTariffChangeTogetherAndApart) {
  PriceBook book = BookOf(kUnit);
  book.prices[0].energy_zone = "north";
  book.prices.push_back(book.prices[0]);
  book.prices[1].from = TimePoint{kHour + kHour / 2};
  book.prices[1].hardware = {2 * kUnit};
  book.tariffs.push_back({"north", TimePoint{0}, std::nullopt, 0b11, {kUnit / 10}, 1000});
  book.tariffs.push_back({"north", TimePoint{0}, std::nullopt, 0b1100, {kUnit / 5}, 2000});
  auto device = DeviceFor(0, 4 * kHour);
  device.energy = {{TimePoint{0}, TimePoint{4 * kHour}, 4 * 3'600'000'000}};  // 1 kW
  const Amounts sum = Sum(Rows(device, book));
  EXPECT_EQ(sum.hardware.v, kUnit * 3 / 2 + 2 * kUnit * 5 / 2);
  EXPECT_EQ(sum.energy.v, 2 * kUnit / 10 + 2 * 2 * kUnit / 5);
}

TEST(CloseRowsTest, SharersPayTheirPartAndTheRestIsIdle) {
  auto device = DeviceFor(0, kHour);
  device.holdings = {HoldingOf("a", 0, kHour, Ratio::Of(1, 4)),
                     HoldingOf("b", 0, kHour, Ratio::Of(1, 4))};
  const auto rows = Rows(device, BookOf(4 * kUnit, kUnit));
  EXPECT_EQ(OfJob(rows, "a").Total().v, kUnit + kUnit / 4);
  EXPECT_EQ(InState(rows, DeviceState::kIdle).Total().v, 2 * kUnit + kUnit / 2);
}

TEST(CloseRowsTest, SlicesThatNoProfileCanUseAreFragmentedAndUnallocatedInstancesIdle) {
  const auto shares = MigShares(std::vector<MigInstance>(6, {1, 1})).value();  // 6/7 of a device
  auto device = DeviceFor(0, kHour);
  device.layouts = {{TimePoint{0}, Ratio::Of(6, 7)}};
  for (int i = 0; i < 4; ++i) {
    device.holdings.push_back(HoldingOf("j" + std::to_string(i), 0, kHour, shares[0]));
  }
  const auto rows = Rows(device, BookOf(7 * kUnit));
  EXPECT_EQ(InState(rows, DeviceState::kAllocated).hardware.v, 4 * kUnit);
  EXPECT_EQ(InState(rows, DeviceState::kIdle).hardware.v, 2 * kUnit);
  EXPECT_EQ(InState(rows, DeviceState::kFragmented).hardware.v, kUnit);
}

TEST(CloseRowsTest, BillionthsLeftOverGoToWhoLostMostAndThenToTheEarlier) {
  auto device = DeviceFor(0, kHour);
  device.holdings = {HoldingOf("b", 0, kHour, Ratio::Of(1, 3)),
                     HoldingOf("a", 0, kHour, Ratio::Of(1, 3)),
                     HoldingOf("c", 0, kHour, Ratio::Of(1, 3))};
  const auto rows = Rows(device, BookOf(100));
  EXPECT_EQ(OfJob(rows, "a").hardware.v, 34);
  EXPECT_EQ(OfJob(rows, "b").hardware.v, 33);
  EXPECT_EQ(OfJob(rows, "c").hardware.v, 33);
}

TEST(CloseRowsTest, StartupIsChargedFromTheBindAndTeardownUntilTheRelease) {
  auto device = DeviceFor(0, 1000);
  auto holding = HoldingOf("j", 100, 900);
  holding.running = TimePoint{300};
  holding.teardown = TimePoint{850};
  device.holdings = {holding};
  const auto rows = Rows(device, BookOf(kHour));
  const auto phase = [&](Phase p) {
    return SumWhere(rows,
                    [&](const Row& row) {
                      return row.state == DeviceState::kAllocated && row.phase == p;
                    })
        .hardware.v;
  };
  EXPECT_EQ(phase(Phase::kStartup), 200);
  EXPECT_EQ(phase(Phase::kRunning), 550);
  EXPECT_EQ(phase(Phase::kTeardown), 50);
  EXPECT_EQ(InState(rows, DeviceState::kIdle).hardware.v, 200);
}

TEST(CloseRowsTest, AnotherAttemptIsChargedToTheSameJob) {
  auto device = DeviceFor(0, 1000);
  device.holdings = {HoldingOf("j", 0, 400), HoldingOf("j", 600, 1000, Ratio::One(), 2)};
  const auto rows = Rows(device, BookOf(kHour));
  EXPECT_EQ(OfJob(rows, "j").hardware.v, 800);
  EXPECT_EQ(SumWhere(rows, [](const Row& row) { return row.attempt == 2; }).hardware.v, 400);
}

TEST(CloseRowsTest, TheSameNameUnderAnotherUidIsAnotherJob) {
  auto device = DeviceFor(0, 1000);
  device.holdings = {HoldingOf("uid-1", 0, 500), HoldingOf("uid-2", 500, 1000)};
  const auto rows = Rows(device, BookOf(kHour));
  EXPECT_EQ(OfJob(rows, "uid-1").hardware.v, 500);
  EXPECT_EQ(OfJob(rows, "uid-2").hardware.v, 500);
}

TEST(CloseRowsTest, AnUnhealthyDeviceIsTheJobsUntilItsRelease) {
  auto device = DeviceFor(0, 1000);
  device.holdings = {HoldingOf("j", 0, 600)};
  device.conditions = {{DeviceState::kUnhealthy, TimePoint{200}, TimePoint{1000}}};
  const auto rows = Rows(device, BookOf(kHour));
  EXPECT_EQ(OfJob(rows, "j").hardware.v, 600);
  EXPECT_EQ(InState(rows, DeviceState::kUnhealthy).hardware.v, 400);
}

TEST(CloseRowsTest, OfConditionsThatMeetTheWorstTakesWhatIsFree) {
  auto device = DeviceFor(0, 600);
  device.conditions = {{DeviceState::kFragmented, TimePoint{0}, TimePoint{600}},
                       {DeviceState::kReserved, TimePoint{100}, TimePoint{600}},
                       {DeviceState::kDraining, TimePoint{200}, TimePoint{600}},
                       {DeviceState::kUnhealthy, TimePoint{300}, TimePoint{600}},
                       {DeviceState::kOffline, TimePoint{400}, TimePoint{500}}};
  const auto rows = Rows(device, BookOf(kHour));
  EXPECT_EQ(InState(rows, DeviceState::kFragmented).hardware.v, 100);
  EXPECT_EQ(InState(rows, DeviceState::kReserved).hardware.v, 100);
  EXPECT_EQ(InState(rows, DeviceState::kDraining).hardware.v, 100);
  EXPECT_EQ(InState(rows, DeviceState::kUnhealthy).hardware.v, 200);
  EXPECT_EQ(InState(rows, DeviceState::kOffline).hardware.v, 100);
}

TEST(CloseRowsTest, ALostNodeIsPostedToItsLastHeartbeatAndTheRestLaterWithoutADifference) {
  const PriceBook book = BookOf(1'234'567'891);
  auto whole = DeviceFor(500, 10'000);
  whole.holdings = {HoldingOf("j", 600, 9000)};
  auto before = whole, after = whole;
  before.end = after.begin = TimePoint{4321};
  Amounts parts = Sum(Rows(before, book));
  parts.Add(Sum(Rows(after, book)));
  EXPECT_EQ(parts, Sum(Rows(whole, book)));
}

TEST(CloseRowsTest, EventsToldTwiceCountOnce) {
  const PriceBook book = BookOf(1'234'567'891);
  auto once = DeviceFor(0, 5000);
  once.holdings = {HoldingOf("a", 0, 3000), HoldingOf("b", 3000, 4000)};
  once.energy = {{TimePoint{0}, TimePoint{1000}, 500}};
  auto twice = once;
  twice.holdings.insert(twice.holdings.end(), once.holdings.begin(), once.holdings.end());
  twice.energy.push_back(once.energy[0]);
  EXPECT_EQ(Sum(Rows(twice, book)), Sum(Rows(once, book)));
  EXPECT_EQ(OfJob(Rows(twice, book), "a"), OfJob(Rows(once, book), "a"));
}

TEST(CloseRowsTest, RefusesToBillADeviceTwice) {
  const PriceBook book = BookOf(kUnit);
  const auto error = [&](const DeviceTimeline& device) {
    const auto rows = CloseRows(device, &book);
    EXPECT_FALSE(rows);
    return rows ? std::string() : rows.error().message;
  };
  auto device = DeviceFor(0, 1000);
  device.holdings = {HoldingOf("a", 0, 600), HoldingOf("b", 599, 1000, Ratio::Of(1, 2))};
  EXPECT_THAT(error(device),
              HasSubstr("device gpu-1: shares add up to 3/2 at 1970-01-01T00:00:00.599"));
  device.holdings = {HoldingOf("a", 0, 600), HoldingOf("a", 0, 601)};
  EXPECT_THAT(error(device), HasSubstr("told in two ways"));
  device.holdings = {HoldingOf("a", 0, 600, Ratio::Of(3, 2))};
  EXPECT_THAT(error(device), HasSubstr("share outside"));
  device.holdings.clear();
  device.energy = {{TimePoint{0}, TimePoint{10}, 5}, {TimePoint{9}, TimePoint{20}, 5}};
  EXPECT_THAT(error(device), HasSubstr("told twice"));
  device =
      DeviceFor(std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max());
  EXPECT_THAT(error(device), HasSubstr("longer than"));
}

TEST(CloseRowsTest, TimeWithoutAPriceIsUnpricedNotFree) {
  PriceBook book = BookOf(kHour);
  book.prices[0].from = TimePoint{400};
  auto device = DeviceFor(0, 1000);
  device.holdings = {HoldingOf("j", 0, 1000)};
  const auto rows = Rows(device, book);
  EXPECT_EQ(OfJob(rows, "j").unpriced_ms, 400);
  EXPECT_EQ(OfJob(rows, "j").hardware.v, 600);
  EXPECT_THAT(rows[0].missing, HasSubstr("no price for nvidia X before"));
  const auto none = CloseRows(device, nullptr);
  EXPECT_EQ(Sum(*none).unpriced_ms, 1000);
  EXPECT_THAT((*none)[0].missing, HasSubstr("no price book applies"));
}

TEST(CloseRowsTest, EnergyNobodyMeteredIsAssumedOrShownAsUnmetered) {
  PriceBook book = BookOf(0);
  book.prices[0].energy_zone = "north";
  book.tariffs.push_back({"north", TimePoint{0}, std::nullopt, (1U << 24) - 1, {kUnit / 10}, 1000});
  auto device = DeviceFor(0, kHour);
  device.energy = {{TimePoint{0}, TimePoint{kHour / 2}, 1'800'000'000}};  // 1 kW for half an hour
  const Amounts shown = Sum(Rows(device, book));
  EXPECT_EQ(shown.unmetered_ms, kHour / 2);
  EXPECT_EQ(shown.energy.v, kUnit / 20);
  book.prices[0].assumed_mw = 500'000;
  const auto rows = Rows(device, book);
  EXPECT_EQ(Sum(rows).unmetered_ms, 0);
  EXPECT_EQ(Sum(rows).energy.v, kUnit / 20 + kUnit / 40);
  EXPECT_EQ(rows.back().energy_source, EnergySource::kEstimated);
}

TEST(CloseRowsTest, EnergyIsClippedToTheIntervalAndSplitByShares) {
  PriceBook book = BookOf(0);
  auto device = DeviceFor(250, 1000);
  device.holdings = {HoldingOf("j", 250, 500, Ratio::Of(1, 4))};
  device.energy = {{TimePoint{0}, TimePoint{1000}, 1000}};
  const auto rows = Rows(device, book);
  EXPECT_EQ(OfJob(rows, "j").millijoules, 63);  // of 62.5: idle lost as much, the job is earlier
  EXPECT_EQ(Sum(rows).millijoules, 750);
}

// A random schedule of one device: whole, divided by time or by partition, of either vendor.
struct Schedule {
  DeviceTimeline device;
  PriceBook book;
};

class Scheduler {
 public:
  explicit Scheduler(std::uint64_t seed) : random_(seed) {}

  Schedule Make() {
    Schedule out;
    const Vendor vendor = Up(2) == 0 ? Vendor::kNvidia : Vendor::kAmd;
    // Around an hour's boundary, or within an hour.
    const std::int64_t begin = (1 + Up(3)) * kHour - Up(200);
    out.device = {.device = {"d"},
                  .kind = {.vendor = vendor, .model = "X", .pool = "p"},
                  .begin = TimePoint{begin},
                  .end = TimePoint{begin + 1 + Up(300)}};
    MakeBook(vendor, begin, out.book);
    MakeHoldings(vendor, out.device);
    for (std::int64_t i = Up(4); i > 0; --i) {
      static constexpr DeviceState kStates[] = {DeviceState::kReserved, DeviceState::kFragmented,
                                                DeviceState::kDraining, DeviceState::kUnhealthy,
                                                DeviceState::kOffline};
      const TimePoint from{begin + Up(300)};
      out.device.conditions.push_back({kStates[Up(5)], from, from + Millis{Up(100)}});
    }
    MakeEnergy(out.device);
    return out;
  }

  std::int64_t Up(std::int64_t n) {
    return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(n));
  }
  std::mt19937_64& random() { return random_; }

 private:
  void MakeBook(Vendor vendor, std::int64_t begin, PriceBook& book) {
    book.currency = "USD";
    std::int64_t from = Up(4) == 0 ? begin + Up(50) : 0;
    for (std::int64_t i = 1 + Up(3); i > 0; --i) {
      book.prices.push_back({.vendor = vendor,
                             .model = "X",
                             .from = TimePoint{from},
                             .hardware = {Up(3) == 0 ? kHour / 2 : Up(9 * kUnit)},
                             .energy = {Up(kUnit)},
                             .labour = {Up(kUnit)}});
      if (Up(2) == 0) book.prices.back().energy_zone = "z";
      if (Up(2) == 0) book.prices.back().assumed_mw = Up(700'000);
      from = begin + Up(300);
    }
    std::sort(book.prices.begin(), book.prices.end(),
              [](const Price& a, const Price& b) { return a.from < b.from; });
    const auto hours = static_cast<std::uint32_t>(Up(1 << 4));
    book.tariffs.push_back({"z", TimePoint{0}, std::nullopt, hours, {Up(kUnit)}, 1000 + Up(900)});
    book.tariffs.push_back(
        {"z", TimePoint{0}, std::nullopt, ~hours & 0xFFFFFFU, {Up(kUnit)}, 1000 + Up(900)});
  }

  // Every part of the device has holders one after another.
  void MakeHoldings(Vendor vendor, DeviceTimeline& device) {
    std::vector<Ratio> parts = {Ratio::One()};
    if (vendor == Vendor::kAmd) {
      static constexpr const char* kModes[] = {"SPX", "DPX", "QPX", "CPX"};
      const Ratio share = AmdPartitionShare(kModes[Up(4)]).value();
      parts.assign(static_cast<std::size_t>(share.denominator()), share);
    } else if (Up(3) == 0) {
      static const std::vector<std::vector<MigInstance>> kLayouts = {
          {{4, 4}, {3, 4}}, {{2, 2}, {2, 2}, {3, 4}}, std::vector<MigInstance>(6, {1, 1})};
      parts = MigShares(kLayouts[static_cast<std::size_t>(Up(3))]).value();
      const Ratio rest = RestOfDevice(parts).value();
      device.layouts.push_back({TimePoint{0}, Subtract(Ratio::One(), rest).value()});
    } else if (Up(2) == 0) {
      const std::int64_t replicas = 2 + Up(10);
      parts.assign(static_cast<std::size_t>(replicas), ReplicaShare(replicas).value());
    }
    int id = 0;
    for (const Ratio& part : parts) {
      std::int64_t at = device.begin.ms - 20 + Up(100);
      for (std::int64_t i = Up(4); i > 0; --i) {
        Holding holding{.id = std::to_string(++id),
                        .job = {"job-" + std::to_string(Up(4))},
                        .attempt = Up(2),
                        .share = part,
                        .begin = TimePoint{at},
                        .end = TimePoint{at + Up(120)}};
        if (Up(2) == 0) holding.running = holding.begin + Millis{Up(60)};
        if (Up(2) == 0) holding.teardown = holding.begin + Millis{60 + Up(60)};
        device.holdings.push_back(holding);
        at = holding.end.ms + Up(2) * Up(50);
      }
    }
  }

  void MakeEnergy(DeviceTimeline& device) {
    if (Up(4) == 0) return;
    // Since the hour of the window's begin, from where running totals start.
    std::int64_t at = device.begin.ms / kHour * kHour;
    const std::int64_t sparse = device.begin.ms - 1 - Up(50);
    if (at < sparse) {
      device.energy.push_back({TimePoint{at}, TimePoint{sparse}, Up(1'000'000'000)});
      at = sparse;
    }
    while (at < device.end.ms) {
      const std::int64_t end = at + Up(40);
      device.energy.push_back({TimePoint{at}, TimePoint{end}, Up(40'000)});
      at = end + (Up(5) == 0 ? Up(30) : 0) + 1;
    }
  }

  std::mt19937_64 random_;
};

// Who has a part of the device at a millisecond, by the words of the rules, nothing of the code.
using Line = std::tuple<DeviceState, std::string, std::int64_t, Phase, std::string>;

std::map<Line, Ratio> PartsAt(const DeviceTimeline& device, std::int64_t ms) {
  std::map<Line, Ratio> parts;
  Ratio free = Ratio::One();
  for (const Holding& one : device.holdings) {
    if (ms < one.begin.ms || ms >= one.end.ms) continue;
    const Phase phase = one.teardown && ms >= one.teardown->ms ? Phase::kTeardown
                        : one.running && ms >= one.running->ms ? Phase::kRunning
                                                               : Phase::kStartup;
    parts[{DeviceState::kAllocated, one.job.value, one.attempt, phase, one.id}] = one.share;
    free = Subtract(free, one.share).value();
  }
  for (const DeviceState state :
       {DeviceState::kOffline, DeviceState::kUnhealthy, DeviceState::kDraining,
        DeviceState::kReserved, DeviceState::kFragmented}) {
    for (const Condition& one : device.conditions) {
      if (one.state != state || ms < one.begin.ms || ms >= one.end.ms) continue;
      if (free > Ratio()) parts[{state, "", 0, Phase::kStartup, ""}] = free;
      return parts;
    }
  }
  Ratio useless;
  if (!device.layouts.empty()) {
    useless = std::min(free, Subtract(Ratio::One(), device.layouts[0].usable).value());
  }
  if (useless > Ratio()) parts[{DeviceState::kFragmented, "", 0, Phase::kStartup, ""}] = useless;
  const Ratio idle = Subtract(free, useless).value();
  if (idle > Ratio()) parts[{DeviceState::kIdle, "", 0, Phase::kStartup, ""}] = idle;
  return parts;
}

// The price that holds at a millisecond, by a walk over the book.
const Price* PriceAt(const PriceBook& book, std::int64_t ms) {
  const Price* holds = nullptr;
  for (const Price& price : book.prices) {
    if (price.from.ms <= ms) holds = &price;
  }
  return holds;
}

// What a millisecond's electricity is, in joules and in money, by a walk over spans and tariffs.
struct Electricity {
  long double millijoules = 0, nano = 0;
};

Electricity ElectricityAt(const Schedule& schedule, const Price* price, std::int64_t ms) {
  Electricity out;
  bool covered = false;
  for (const EnergySpan& span : schedule.device.energy) {
    const std::int64_t length = span.end.ms - span.begin.ms;
    if (length == 0 && span.begin.ms == ms) {
      out.millijoules += static_cast<long double>(span.millijoules);
    } else if (span.begin.ms <= ms && ms < span.end.ms) {
      out.millijoules +=
          static_cast<long double>(span.millijoules) / static_cast<long double>(length);
      covered = true;
    }
  }
  if (price == nullptr) return out;
  if (price->energy_zone.empty()) {
    out.nano = static_cast<long double>(price->energy.v) / kHour;
    return out;
  }
  for (const Tariff& tariff : schedule.book.tariffs) {
    if ((tariff.hours >> ms / kHour % 24 & 1U) == 0) continue;
    const long double per_millijoule = static_cast<long double>(tariff.per_kilowatt_hour.v) *
                                       static_cast<long double>(tariff.pue_milli) / 3.6e12L;
    const long double assumed = static_cast<long double>(price->assumed_mw) / 1000;  // mJ in a ms
    out.nano = (out.millijoules + (covered ? 0 : assumed)) * per_millijoule;
  }
  return out;
}

__int128 RoundedOf(__int128 numerator, __int128 denominator) {
  const __int128 floor = numerator / denominator, rest = numerator % denominator;
  return floor + (rest * 2 > denominator || (rest * 2 == denominator && floor % 2 == 1) ? 1 : 0);
}

TEST(CloseRowsProperty, EqualsAWalkMillisecondByMillisecondOverBothVendorsDevices) {
  Scheduler scheduler(20260401);
  for (int round = 0; round < 800; ++round) {
    const Schedule schedule = scheduler.Make();
    const auto& device = schedule.device;
    const auto rows = CloseRows(device, &schedule.book);
    ASSERT_TRUE(rows) << rows.error().message;
    // Exact conservation, component by component.
    ASSERT_EQ(Sum(*rows), DeviceCost(device, &schedule.book).value()) << round;

    // The walk: hardware of the whole device by running totals since the hour or the price began,
    // and of each line as an exact fraction.
    std::map<std::pair<std::int64_t, const Price*>, __int128> before, until;  // rate x ms
    std::map<Line, long double> exact;
    std::map<Line, std::int64_t> cuts;
    std::int64_t unpriced = 0;
    Electricity electricity;
    for (std::int64_t ms = device.begin.ms; ms < device.end.ms; ++ms) {
      const Price* price = PriceAt(schedule.book, ms);
      const std::int64_t hour = ms / kHour * kHour;
      if (price == nullptr) {
        ++unpriced;
      } else {
        const auto key = std::pair(hour, price);
        if (!until.contains(key)) {
          const __int128 start =
              static_cast<__int128>(price->hardware.v) * (ms - std::max(hour, price->from.ms));
          before[key] = until[key] = start;
        }
        until[key] += price->hardware.v;
      }
      const Electricity more = ElectricityAt(schedule, price, ms);
      electricity.millijoules += more.millijoules;
      electricity.nano += more.nano;
      for (const auto& [line, share] : PartsAt(device, ms)) {
        exact[line] += (price == nullptr ? 0.0L : static_cast<long double>(price->hardware.v)) *
                       static_cast<long double>(share.numerator()) /
                       static_cast<long double>(share.denominator()) / kHour;
      }
    }
    __int128 hardware = 0;
    for (const auto& [key, numerator] : until) {
      hardware += RoundedOf(numerator, kHour) - RoundedOf(before[key], kHour);
    }
    const Amounts sum = Sum(*rows);
    ASSERT_EQ(sum.hardware.v, static_cast<std::int64_t>(hardware)) << round;
    ASSERT_EQ(sum.device_ms, (device.end - device.begin).v) << round;
    ASSERT_EQ(sum.unpriced_ms, unpriced) << round;
    // Joules are whole at both ends of a stretch, and an hour of assumed power is a whole amount.
    ASSERT_LE(std::abs(electricity.millijoules - static_cast<long double>(sum.millijoules)), 1.01L)
        << round;
    ASSERT_LE(std::abs(electricity.nano - static_cast<long double>(sum.energy.v)),
              3.0L * static_cast<long double>(until.size()) + 0.01L)
        << round;

    std::map<Line, long double> got;
    for (const Row& row : *rows) {
      const Line line{row.state, row.job.value, row.attempt, row.phase, row.holding};
      got[line] += static_cast<long double>(row.amounts.hardware.v);
      ++cuts[line];
      // Every row is what the oracle finds at its first and last millisecond.
      for (const std::int64_t ms : {row.begin.ms, row.end.ms - 1}) {
        const auto parts = PartsAt(device, ms);
        ASSERT_TRUE(parts.contains(line)) << round;
        ASSERT_EQ(parts.at(line), row.share) << round;
      }
      ASSERT_GE(row.amounts.hardware.v, 0);
      ASSERT_GE(row.amounts.energy.v, 0);
      ASSERT_GE(row.amounts.millijoules, 0);
    }
    ASSERT_EQ(got.size(), exact.size()) << round;
    for (const auto& [line, amount] : got) {
      ASSERT_LE(std::abs(amount - exact[line]), 2.0L * static_cast<long double>(cuts[line]) + 1e-3L)
          << round;
    }
  }
}

TEST(CloseRowsProperty, CuttingTheWindowMovesNothingAtAllOnTheDevice) {
  Scheduler scheduler(2);
  for (int round = 0; round < 1500; ++round) {
    const Schedule schedule = scheduler.Make();
    auto first = schedule.device, second = schedule.device;
    first.end = second.begin =
        schedule.device.begin +
        Millis{scheduler.Up((schedule.device.end - schedule.device.begin).v)};
    Amounts parts = Sum(CloseRows(first, &schedule.book).value());
    parts.Add(Sum(CloseRows(second, &schedule.book).value()));
    ASSERT_EQ(parts, Sum(CloseRows(schedule.device, &schedule.book).value())) << round;
  }
}

TEST(CloseRowsProperty, TheOrderAndTheNumberOfEventsChangeNothing) {
  Scheduler scheduler(3);
  for (int round = 0; round < 500; ++round) {
    Schedule schedule = scheduler.Make();
    const auto rows = CloseRows(schedule.device, &schedule.book).value();
    auto& device = schedule.device;
    const auto held = device.holdings;
    device.holdings.insert(device.holdings.end(), held.begin(), held.end());
    std::shuffle(device.holdings.begin(), device.holdings.end(), scheduler.random());
    std::shuffle(device.conditions.begin(), device.conditions.end(), scheduler.random());
    std::shuffle(device.energy.begin(), device.energy.end(), scheduler.random());
    const auto again = CloseRows(device, &schedule.book).value();
    ASSERT_EQ(again.size(), rows.size()) << round;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      ASSERT_EQ(again[i].amounts, rows[i].amounts) << round;
      ASSERT_EQ(again[i].holding, rows[i].holding) << round;
    }
  }
}

TEST(CloseRowsProperty, WhatADeviceCostsDoesNotHangOnWhoHadIt) {
  Scheduler scheduler(4);
  for (int round = 0; round < 500; ++round) {
    Schedule schedule = scheduler.Make();
    const Amounts used = Sum(CloseRows(schedule.device, &schedule.book).value());
    schedule.device.holdings.clear();
    schedule.device.conditions.clear();
    schedule.device.layouts.clear();
    const auto idle = CloseRows(schedule.device, &schedule.book).value();
    ASSERT_EQ(Sum(idle), used) << round;
    ASSERT_EQ(InState(idle, DeviceState::kIdle), used) << round;
  }
}

TEST(CloseRowsProperty, ScalingEveryPriceScalesTheCostToTheRounding) {
  Scheduler scheduler(5);
  for (int round = 0; round < 500; ++round) {
    Schedule schedule = scheduler.Make();
    const auto once = CloseRows(schedule.device, &schedule.book).value();
    for (Price& price : schedule.book.prices) price.hardware.v *= 7;
    const auto seven = CloseRows(schedule.device, &schedule.book).value();
    ASSERT_EQ(once.size(), seven.size());
    for (std::size_t i = 0; i < once.size(); ++i) {
      ASSERT_LE(std::abs(once[i].amounts.hardware.v * 7 - seven[i].amounts.hardware.v), 16)
          << round;
    }
  }
}

}  // namespace
}  // namespace bimetal::core::cost
