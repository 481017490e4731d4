// Reading a PriceBook.
#include <algorithm>
#include <map>
#include <string>
#include <tuple>

#include "core/cost/cost.h"
#include "core/cost/rates.h"
#include "core/cost/ratio.h"
#include "core/model/check.h"

namespace bimetal::core::cost {
namespace {

constexpr std::int64_t kOne = 1'000'000'000;
constexpr int kMaxPrices = 256;
constexpr int kMaxDated = 64;
constexpr std::int64_t kMaxMonthlyHours = 1'000'000;

bool IsCurrency(const std::string& text) {
  return text.size() == 3 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
}

Result<NanoCurrency> ReadDecimal(const std::string& text, const std::string& field) {
  BIMETAL_TRY(CheckText(field, text, 64));
  auto money = ParseMoney(text);
  if (!money) return tl::unexpected(WithContext(money.error(), field));
  return *money;
}

// Reads entries of one book, whose amounts may be in other currencies.
class Reader {
 public:
  Status ReadRates(const api::PriceBookSpec& spec);
  Result<Price> ReadPrice(const api::Price& from, const std::string& path) const;
  Result<Tariff> ReadTariff(const api::Tariff& from, const std::string& path) const;
  Result<PlatformLabour> ReadLabour(const api::PlatformLabour& from, const std::string& path) const;
  Result<WorkloadLabour> ReadLabour(const api::WorkloadLabour& from, const std::string& path) const;
  Result<Overhead> ReadOverhead(const api::Overhead& from, const std::string& path) const;

 private:
  // In the book's currency. Where the text is empty: an error if `required`, else 0.
  Result<NanoCurrency> Money(const std::string& text, const std::string& field,
                             const std::string& currency, bool required = true) const;
  Status CheckForm(const api::Price& from, const std::string& path) const;
  Result<NanoCurrency> Hardware(const api::Price& from, const std::string& path) const;

  std::string currency_;
  std::map<std::string, std::int64_t> rates_;  // billionths of the book's for one of the other
};

Status Reader::ReadRates(const api::PriceBookSpec& spec) {
  currency_ = spec.currency();
  BIMETAL_TRY(CheckCount("spec.exchangeRates", spec.exchange_rates_size(), 0, 16));
  for (int i = 0; i < spec.exchange_rates_size(); ++i) {
    const auto& from = spec.exchange_rates(i);
    const std::string path = At("spec.exchangeRates", i);
    if (!IsCurrency(from.currency())) {
      return FieldError(path + ".currency", Quoted(from.currency()) +
                                                " is no ISO 4217 code; use three capital letters "
                                                "such as EUR");
    }
    BIMETAL_TRY_ASSIGN(const NanoCurrency rate, ReadDecimal(from.rate(), path + ".rate"));
    if (rate.v == 0) return FieldError(path + ".rate", "is 0; use what one unit is worth");
    if (from.currency() == currency_) {
      return FieldError(path + ".currency", currency_ + " is the book's own; remove the entry");
    }
    if (!rates_.emplace(from.currency(), rate.v).second) {
      return FieldError(path + ".currency", from.currency() + " is there twice; remove one");
    }
  }
  return {};
}

Result<NanoCurrency> Reader::Money(const std::string& text, const std::string& field,
                                   const std::string& currency, bool required) const {
  if (text.empty() && !required) return NanoCurrency{0};
  BIMETAL_TRY_ASSIGN(const NanoCurrency money, ReadDecimal(text, field));
  if (currency.empty() || currency == currency_) return money;
  const auto rate = rates_.find(currency);
  if (rate == rates_.end()) {
    return FieldError(
        field, "is in " + Quoted(currency) + ", for which spec.exchangeRates has no rate; add one");
  }
  return NanoCurrency{MultiplyDivide(money.v, rate->second, kOne)};
}

Result<Vendor> ReadVendor(const std::string& text, const std::string& path) {
  auto vendor = ParseVendor(text);
  if (!vendor) return tl::unexpected(WithContext(vendor.error(), path + ".vendor"));
  return *vendor;
}

Result<TimePoint> ReadTime(const std::string& text, const std::string& field) {
  BIMETAL_TRY(CheckText(field, text, 64));
  auto time = ParseTime(text);
  if (!time) return tl::unexpected(WithContext(time.error(), field));
  return *time;
}

// From when until when an entry holds.
template <class To, class From>
Status ReadDates(const From& from, const std::string& path, To& to) {
  BIMETAL_TRY_ASSIGN(to.from, ReadTime(from.from(), path + ".from"));
  if (from.to().empty()) return {};
  BIMETAL_TRY_ASSIGN(to.to, ReadTime(from.to(), path + ".to"));
  if (*to.to <= to.from) {
    return FieldError(path + ".to", FormatTime(*to.to) +
                                        " is not after from; move it, or leave "
                                        "it out");
  }
  return {};
}

Status CheckDevices(std::int64_t devices, std::int64_t max, const std::string& path) {
  return CheckRange(path + ".devices", devices, 1, max, "use the number of devices");
}

Status CheckPurchase(const api::Price& from, const std::string& path) {
  const std::string& purchase = from.purchase();
  if (purchase.empty()) return {};
  if (purchase != "Owned" && purchase != "OnDemand" && purchase != "Reserved" &&
      purchase != "Spot") {
    return FieldError(path + ".purchase", Quoted(purchase) +
                                              " is not known; use Owned, OnDemand, Reserved or "
                                              "Spot");
  }
  if (purchase == "Owned" ? from.has_rented() : from.has_owned()) {
    return FieldError(path + ".purchase", purchase +
                                              " contradicts owned or rented; use Owned for what is "
                                              "owned and another for what is rented");
  }
  return {};
}

// As a rent does unless it says otherwise.
bool RentIncludesEnergy(const api::Price& from) {
  return from.has_rented() &&
         (!from.rented().has_includes_energy() || from.rented().includes_energy());
}

// Which fields may stand together.
Status Reader::CheckForm(const api::Price& from, const std::string& path) const {
  const int forms = (from.hardware_per_hour().empty() ? 0 : 1) + (from.has_owned() ? 1 : 0) +
                    (from.has_rented() ? 1 : 0);
  if (forms == 0) {
    return FieldError(path + ".hardwarePerHour",
                      "is empty; set it, or one of owned and rented: a model without a price is "
                      "not free");
  }
  if (forms > 1) {
    return FieldError(path, "has more than one of hardwarePerHour, owned and rented; keep one");
  }
  if (!from.energy_per_hour().empty() && !from.energy_zone().empty()) {
    return FieldError(path + ".energyZone",
                      "prices the same electricity as energyPerHour; remove one");
  }
  if (RentIncludesEnergy(from) && !(from.energy_per_hour().empty() && from.energy_zone().empty())) {
    return FieldError(path + (from.energy_zone().empty() ? ".energyPerHour" : ".energyZone"),
                      "is on top of a rent that includes electricity; remove it, or set "
                      "rented.includesEnergy to false");
  }
  if (from.has_assumed_watts()) {
    if (from.energy_zone().empty()) {
      return FieldError(path + ".assumedWatts",
                        "has no meaning without energyZone; remove it, or name a zone");
    }
    BIMETAL_TRY(CheckRange(path + ".assumedWatts", from.assumed_watts(), 1, 100'000,
                           "use the power of one device"));
  }
  return CheckPurchase(from, path);
}

Result<NanoCurrency> Reader::Hardware(const api::Price& from, const std::string& path) const {
  const std::string& currency = from.currency();
  if (from.has_rented()) {
    const auto& rented = from.rented();
    BIMETAL_TRY_ASSIGN(const NanoCurrency price,
                       Money(rented.price_per_hour(), path + ".rented.pricePerHour", currency));
    BIMETAL_TRY(CheckDevices(rented.devices(), 1024, path + ".rented"));
    return NanoCurrency{MultiplyDivide(price.v, 1, rented.devices())};
  }
  if (!from.has_owned()) {
    return Money(from.hardware_per_hour(), path + ".hardwarePerHour", currency);
  }
  const auto& owned = from.owned();
  const std::string at = path + ".owned";
  BIMETAL_TRY_ASSIGN(const NanoCurrency capital, Money(owned.capital(), at + ".capital", currency));
  BIMETAL_TRY_ASSIGN(const NanoCurrency financing,
                     Money(owned.financing(), at + ".financing", currency, false));
  BIMETAL_TRY_ASSIGN(const NanoCurrency fixed,
                     Money(owned.fixed_per_month(), at + ".fixedPerMonth", currency, false));
  BIMETAL_TRY(CheckRange(at + ".residualPercent", owned.residual_percent(), 0, 99,
                         "use what is left of capital, in hundredths"));
  BIMETAL_TRY(CheckRange(at + ".lifeMonths", owned.life_months(), 1, 240,
                         "use the months over which it is written off"));
  BIMETAL_TRY(CheckDevices(owned.devices(), 1024, at));
  return OwnedPerHour(capital, owned.residual_percent(), financing, fixed, owned.life_months(),
                      owned.devices());
}

Result<Price> Reader::ReadPrice(const api::Price& from, const std::string& path) const {
  Price price;
  BIMETAL_TRY_ASSIGN(price.vendor, ReadVendor(from.vendor(), path));
  BIMETAL_TRY(CheckText(path + ".model", from.model(), 256));
  price.model = from.model();
  BIMETAL_TRY(ReadDates(from, path, price));
  BIMETAL_TRY(CheckForm(from, path));
  BIMETAL_TRY_ASSIGN(price.hardware, Hardware(from, path));
  BIMETAL_TRY_ASSIGN(
      price.energy, Money(from.energy_per_hour(), path + ".energyPerHour", from.currency(), false));
  BIMETAL_TRY_ASSIGN(
      price.labour, Money(from.labour_per_hour(), path + ".labourPerHour", from.currency(), false));
  price.pool = from.pool();
  price.purchase = from.purchase();
  price.energy_zone = from.energy_zone();
  price.assumed_mw = std::int64_t{from.assumed_watts()} * 1000;
  if (from.rented().has_billing_seconds()) {
    BIMETAL_TRY(CheckRange(path + ".rented.billingSeconds", from.rented().billing_seconds(), 1,
                           2'678'400, "use 1 for the second, 3600 for the hour"));
    price.billing_ms = std::int64_t{from.rented().billing_seconds()} * 1000;
  }
  price.labour_told = !from.labour_per_hour().empty();
  price.energy_told = !from.energy_per_hour().empty() || !from.energy_zone().empty() ||
                      RentIncludesEnergy(from);
  return price;
}

// Bits of the hours from `first` to `end`, over midnight where the end is not later.
std::uint32_t Hours(int first, int end) {
  std::uint32_t hours = 0;
  const int last = end > first ? end : end + 24;
  for (int hour = first; hour < last; ++hour) hours |= 1U << hour % 24;
  return hours;
}

Result<Tariff> Reader::ReadTariff(const api::Tariff& from, const std::string& path) const {
  Tariff tariff;
  BIMETAL_TRY(CheckText(path + ".zone", from.zone(), 63));
  tariff.zone = from.zone();
  BIMETAL_TRY(ReadDates(from, path, tariff));
  if (from.has_from_hour() != from.has_to_hour()) {
    return FieldError(path + (from.has_from_hour() ? ".toHour" : ".fromHour"),
                      "is left out; set both hours, or neither for the whole day");
  }
  tariff.hours = kWholeDay;
  if (from.has_from_hour()) {
    BIMETAL_TRY(CheckRange(path + ".fromHour", from.from_hour(), 0, 23, "use an hour, UTC"));
    BIMETAL_TRY(CheckRange(path + ".toHour", from.to_hour(), 0, 24, "use an hour, UTC"));
    tariff.hours = Hours(from.from_hour(), from.to_hour());
  }
  BIMETAL_TRY_ASSIGN(tariff.per_kilowatt_hour,
                     Money(from.per_kilowatt_hour(), path + ".perKilowattHour", from.currency()));
  if (from.pue().empty()) return tariff;
  BIMETAL_TRY_ASSIGN(const NanoCurrency pue, ReadDecimal(from.pue(), path + ".pue"));
  constexpr std::int64_t kMilli = kOne / 1000;
  if (pue.v < kOne || pue.v > 3 * kOne || pue.v % kMilli != 0) {
    return FieldError(path + ".pue",
                      Quoted(from.pue()) +
                          " is no power usage effectiveness; use 1 to 3 with at most "
                          "three decimals");
  }
  tariff.pue_milli = pue.v / kMilli;
  return tariff;
}

Result<PlatformLabour> Reader::ReadLabour(const api::PlatformLabour& from,
                                          const std::string& path) const {
  PlatformLabour labour;
  BIMETAL_TRY_ASSIGN(labour.vendor, ReadVendor(from.vendor(), path));
  labour.pool = from.pool();
  BIMETAL_TRY(ReadDates(from, path, labour));
  BIMETAL_TRY_ASSIGN(const NanoCurrency hours,
                     ReadDecimal(from.hours_per_month(), path + ".hoursPerMonth"));
  BIMETAL_TRY(CheckRange(path + ".hoursPerMonth", hours.v / kOne, 0, kMaxMonthlyHours,
                         "use hours of work in a month"));
  BIMETAL_TRY_ASSIGN(const NanoCurrency wage,
                     Money(from.wage_per_hour(), path + ".wagePerHour", from.currency()));
  BIMETAL_TRY(CheckDevices(from.devices(), 1'000'000, path));
  labour.per_hour = PlatformLabourPerHour(hours.v, wage, from.devices());
  return labour;
}

Result<WorkloadLabour> Reader::ReadLabour(const api::WorkloadLabour& from,
                                          const std::string& path) const {
  WorkloadLabour labour;
  BIMETAL_TRY(CheckText(path + ".workload", from.workload(), 253));
  labour.workload = from.workload();
  BIMETAL_TRY_ASSIGN(labour.vendor, ReadVendor(from.vendor(), path));
  BIMETAL_TRY_ASSIGN(const NanoCurrency hours, ReadDecimal(from.hours(), path + ".hours"));
  BIMETAL_TRY_ASSIGN(const NanoCurrency wage,
                     Money(from.wage_per_hour(), path + ".wagePerHour", from.currency()));
  labour.total.v = MultiplyDivide(hours.v, wage.v, kOne);
  BIMETAL_TRY(CheckRange(path + ".plannedUnits", from.planned_units(), 1,
                         std::int64_t{9'000'000'000'000'000}, "use the units planned"));
  labour.planned_units = from.planned_units();
  if (from.upkeep_hours_per_month().empty()) return labour;
  BIMETAL_TRY_ASSIGN(const NanoCurrency upkeep,
                     ReadDecimal(from.upkeep_hours_per_month(), path + ".upkeepHoursPerMonth"));
  labour.upkeep_per_month.v = MultiplyDivide(upkeep.v, wage.v, kOne);
  return labour;
}

Result<Overhead> Reader::ReadOverhead(const api::Overhead& from, const std::string& path) const {
  Overhead overhead;
  BIMETAL_TRY(CheckText(path + ".name", from.name(), 253));
  overhead.name = from.name();
  BIMETAL_TRY(ReadDates(from, path, overhead));
  BIMETAL_TRY_ASSIGN(overhead.per_month,
                     Money(from.per_month(), path + ".perMonth", from.currency()));
  return overhead;
}

// Ends entries that have no end where the next of their series begins, and refuses two that hold at
// once. `clash(a, b)`: they would contradict each other in time that they share.
template <class Dated, class Series, class Clash>
Status Settle(std::vector<Dated>& entries, const std::string& list, Series series, Clash clash) {
  for (std::size_t i = 0; i < entries.size(); ++i) {
    Dated& one = entries[i];
    if (one.to) continue;
    for (const Dated& other : entries) {
      if (series(other) != series(one) || other.from <= one.from) continue;
      if (!one.to || other.from < *one.to) one.to = other.from;
    }
  }
  for (std::size_t i = 0; i < entries.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const Dated &a = entries[j], &b = entries[i];
      const TimePoint begin = std::max(a.from, b.from);
      const bool meet = (!a.to || begin < *a.to) && (!b.to || begin < *b.to);
      if (!meet || !clash(a, b)) continue;
      return FieldError(At(list, static_cast<int>(i)), "overlaps " + At(list, static_cast<int>(j)) +
                                                           " from " + FormatTime(begin) +
                                                           " on; end one before the other begins");
    }
  }
  return {};
}

auto SeriesOf(const Price& price) {
  return std::tie(price.vendor, price.model, price.pool, price.purchase);
}

Status ReadPrices(const Reader& reader, const api::PriceBookSpec& spec, PriceBook& book) {
  BIMETAL_TRY(CheckCount("spec.prices", spec.prices_size(), 1, kMaxPrices));
  for (int i = 0; i < spec.prices_size(); ++i) {
    const std::string path = At("spec.prices", i);
    BIMETAL_TRY_ASSIGN(Price price, reader.ReadPrice(spec.prices(i), path));
    const bool twice = std::any_of(book.prices.begin(), book.prices.end(), [&](const Price& other) {
      return SeriesOf(other) == SeriesOf(price) && other.from == price.from;
    });
    if (twice) {
      return FieldError(path, "vendor " + std::string(VendorName(price.vendor)) + ", model " +
                                  Quoted(price.model) + " and from " + FormatTime(price.from) +
                                  " are there twice; remove one");
    }
    book.prices.push_back(std::move(price));
  }
  return Settle(book.prices, "spec.prices", SeriesOf,
                [](const Price& a, const Price& b) { return SeriesOf(a) == SeriesOf(b); });
}

Status ReadTariffs(const Reader& reader, const api::PriceBookSpec& spec, PriceBook& book) {
  BIMETAL_TRY(CheckCount("spec.tariffs", spec.tariffs_size(), 0, kMaxDated));
  for (int i = 0; i < spec.tariffs_size(); ++i) {
    BIMETAL_TRY_ASSIGN(Tariff tariff, reader.ReadTariff(spec.tariffs(i), At("spec.tariffs", i)));
    book.tariffs.push_back(std::move(tariff));
  }
  BIMETAL_TRY(Settle(
      book.tariffs, "spec.tariffs", [](const Tariff& one) { return std::tie(one.zone, one.hours); },
      [](const Tariff& a, const Tariff& b) {
        return a.zone == b.zone && (a.hours & b.hours) != 0;
      }));
  for (int i = 0; i < spec.prices_size(); ++i) {
    const std::string& zone = spec.prices(i).energy_zone();
    const bool known = zone.empty() || std::any_of(book.tariffs.begin(), book.tariffs.end(),
                                                   [&](const Tariff& t) { return t.zone == zone; });
    if (!known) {
      return FieldError(At("spec.prices", i) + ".energyZone",
                        "no tariff is of zone " + Quoted(zone) + "; add one to spec.tariffs");
    }
  }
  return {};
}

Status ReadLabour(const Reader& reader, const api::PriceBookSpec& spec, PriceBook& book) {
  BIMETAL_TRY(CheckCount("spec.platformLabour", spec.platform_labour_size(), 0, kMaxDated));
  for (int i = 0; i < spec.platform_labour_size(); ++i) {
    BIMETAL_TRY_ASSIGN(PlatformLabour labour,
                       reader.ReadLabour(spec.platform_labour(i), At("spec.platformLabour", i)));
    book.platform_labour.push_back(std::move(labour));
  }
  const auto series = [](const PlatformLabour& one) { return std::tie(one.vendor, one.pool); };
  BIMETAL_TRY(Settle(book.platform_labour, "spec.platformLabour", series,
                     [&](const auto& a, const auto& b) { return series(a) == series(b); }));
  BIMETAL_TRY(CheckCount("spec.workloadLabour", spec.workload_labour_size(), 0, 256));
  for (int i = 0; i < spec.workload_labour_size(); ++i) {
    const std::string path = At("spec.workloadLabour", i);
    BIMETAL_TRY_ASSIGN(WorkloadLabour labour, reader.ReadLabour(spec.workload_labour(i), path));
    const bool twice = std::any_of(
        book.workload_labour.begin(), book.workload_labour.end(), [&](const auto& other) {
          return other.workload == labour.workload && other.vendor == labour.vendor;
        });
    if (twice) {
      return FieldError(path, "workload " + Quoted(labour.workload) + " on " +
                                  std::string(VendorName(labour.vendor)) +
                                  " is there twice; remove one");
    }
    book.workload_labour.push_back(std::move(labour));
  }
  return {};
}

Status ReadOverheads(const Reader& reader, const api::PriceBookSpec& spec, PriceBook& book) {
  BIMETAL_TRY(CheckCount("spec.overheads", spec.overheads_size(), 0, kMaxDated));
  for (int i = 0; i < spec.overheads_size(); ++i) {
    BIMETAL_TRY_ASSIGN(Overhead overhead,
                       reader.ReadOverhead(spec.overheads(i), At("spec.overheads", i)));
    book.overheads.push_back(std::move(overhead));
  }
  return Settle(
      book.overheads, "spec.overheads", [](const Overhead& one) { return one.name; },
      [](const Overhead& a, const Overhead& b) { return a.name == b.name; });
}

// Labour by the device-hour may come from the price or from platformLabour, not from both.
Status CheckLabourOnce(const PriceBook& book) {
  for (std::size_t i = 0; i < book.prices.size(); ++i) {
    const Price& price = book.prices[i];
    if (price.labour.v == 0) continue;
    for (std::size_t j = 0; j < book.platform_labour.size(); ++j) {
      const PlatformLabour& labour = book.platform_labour[j];
      const TimePoint begin = std::max(price.from, labour.from);
      const bool meet = labour.vendor == price.vendor &&
                        (labour.pool.empty() || price.pool.empty() || labour.pool == price.pool) &&
                        (!price.to || begin < *price.to) && (!labour.to || begin < *labour.to);
      if (!meet) continue;
      return FieldError(At("spec.prices", static_cast<int>(i)) + ".labourPerHour",
                        "prices the same work as " +
                            At("spec.platformLabour", static_cast<int>(j)) + "; remove one");
    }
  }
  return {};
}

}  // namespace

Result<PriceBook> PriceBookFromApi(const api::PriceBook& from) {
  const auto& spec = from.spec();
  PriceBook book;
  book.currency = spec.currency();
  book.example = spec.example();
  if (!IsCurrency(book.currency)) {
    return FieldError("spec.currency", Quoted(book.currency) +
                                           " is no ISO 4217 code; use three capital letters such "
                                           "as USD");
  }
  Reader reader;
  BIMETAL_TRY(reader.ReadRates(spec));
  BIMETAL_TRY(ReadPrices(reader, spec, book));
  BIMETAL_TRY(ReadTariffs(reader, spec, book));
  BIMETAL_TRY(ReadLabour(reader, spec, book));
  BIMETAL_TRY(ReadOverheads(reader, spec, book));
  BIMETAL_TRY(CheckLabourOnce(book));
  const auto key = [](const Price& price) {
    return std::tie(price.vendor, price.model, price.from, price.pool, price.purchase);
  };
  std::sort(book.prices.begin(), book.prices.end(),
            [&](const Price& a, const Price& b) { return key(a) < key(b); });
  return book;
}

}  // namespace bimetal::core::cost
