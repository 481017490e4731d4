// Which price holds, and the formulas behind it.
#include "core/cost/rates.h"

#include <algorithm>
#include <utility>

#include "core/cost/ratio.h"
#include "core/model/saturate.h"

namespace bimetal::core::cost {
namespace {

using Wide = __int128;

constexpr int kHoursOfDay = 24;

// Keeps the earliest of what it is given after `at`.
class Earliest {
 public:
  explicit Earliest(TimePoint at) : at_(at) {}
  void See(TimePoint t) {
    if (t > at_ && (!first_ || t < *first_)) first_ = t;
  }
  template <class Dated>
  void SeeEnds(const Dated& entry) {
    See(entry.from);
    if (entry.to) See(*entry.to);
  }
  std::optional<TimePoint> first() const { return first_; }

 private:
  TimePoint at_;
  std::optional<TimePoint> first_;
};

bool Allows(const std::string& wanted, const std::string& has) {
  return wanted.empty() || wanted == has;
}

std::string Name(const DeviceKind& kind) {
  return std::string(VendorName(kind.vendor)) + " " +
         (kind.model.empty() ? "devices of unknown model" : kind.model);
}

bool SameSeries(const Price& a, const Price& b) {
  return a.pool == b.pool && a.purchase == b.purchase;
}

// Prices that are or will be or were for the kind, in the book's order.
std::vector<const Price*> Candidates(const PriceBook& book, const DeviceKind& kind) {
  std::vector<const Price*> out;
  for (const Price& price : book.prices) {
    const bool fits = price.vendor == kind.vendor && price.model == kind.model &&
                      Allows(price.pool, kind.pool) &&
                      (kind.purchase.empty() || Allows(price.purchase, kind.purchase));
    if (fits) out.push_back(&price);
  }
  return out;
}

// The latest of each series that has begun, where it has not ended.
std::vector<const Price*> Holding(const std::vector<const Price*>& candidates, TimePoint at) {
  std::vector<const Price*> latest;
  for (const Price* price : candidates) {
    if (price->from > at) continue;
    const auto known = std::find_if(latest.begin(), latest.end(),
                                    [&](const Price* other) { return SameSeries(*price, *other); });
    if (known == latest.end()) {
      latest.push_back(price);
    } else if ((*known)->from <= price->from) {
      *known = price;
    }
  }
  std::erase_if(latest, [&](const Price* price) { return price->to && *price->to <= at; });
  return latest;
}

// Of what holds, the price that is nearest to the device; nullptr where that is open.
const Price* Nearest(const std::vector<const Price*>& holding, const DeviceKind& kind) {
  const auto rank = [&](const Price* price) {
    return std::pair(!price->pool.empty(), !kind.purchase.empty() && !price->purchase.empty());
  };
  const Price* best = nullptr;
  bool open = false;
  for (const Price* price : holding) {
    if (best == nullptr || rank(price) > rank(best)) {
      best = price;
      open = false;
    } else if (rank(price) == rank(best)) {
      open = true;
    }
  }
  return open ? nullptr : best;
}

std::string Missing(const std::vector<const Price*>& candidates, const DeviceKind& kind,
                    TimePoint at) {
  const std::string none = "no price for " + Name(kind);
  Earliest next(at);
  std::optional<TimePoint> ended;
  for (const Price* price : candidates) {
    next.See(price->from);
    if (price->to && *price->to <= at && (!ended || *ended < *price->to)) ended = price->to;
  }
  const std::string from = ended ? " from " + FormatTime(*ended) : "";
  if (next.first()) {
    return none + (ended ? from + " to " : " before ") + FormatTime(*next.first());
  }
  return none + (ended ? from + " on" : "");
}

int HourOfDay(TimePoint at) {
  const std::int64_t hour = at.ms / kMsPerHour - (at.ms % kMsPerHour < 0 ? 1 : 0);
  return static_cast<int>(((hour % kHoursOfDay) + kHoursOfDay) % kHoursOfDay);
}

const Tariff* TariffAt(const PriceBook& book, const std::string& zone, TimePoint at, int hour) {
  const Tariff* best = nullptr;
  for (const Tariff& tariff : book.tariffs) {
    const bool holds = tariff.zone == zone && tariff.from <= at &&
                       (!tariff.to || at < *tariff.to) && (tariff.hours >> hour & 1U) != 0;
    if (holds && (best == nullptr || best->from < tariff.from)) best = &tariff;
  }
  return best;
}

// The tariff at `at`, and in `next` when another may begin.
const Tariff* FindTariff(const PriceBook& book, const std::string& zone, TimePoint at,
                         Earliest& next) {
  for (const Tariff& tariff : book.tariffs) {
    if (tariff.zone == zone) next.SeeEnds(tariff);
  }
  const int hour = HourOfDay(at);
  const Tariff* now = TariffAt(book, zone, at, hour);
  const std::int64_t into = ((at.ms % kMsPerHour) + kMsPerHour) % kMsPerHour;
  for (int ahead = 1; ahead < kHoursOfDay; ++ahead) {
    if (TariffAt(book, zone, at, (hour + ahead) % kHoursOfDay) == now) continue;
    next.See(TimePoint{Saturate(static_cast<Wide>(at.ms) - into + ahead * kMsPerHour)});
    break;
  }
  return now;
}

NanoCurrency PlatformLabourAt(const PriceBook& book, const DeviceKind& kind, TimePoint at,
                              Earliest& next, bool& told) {
  const PlatformLabour* best = nullptr;
  for (const PlatformLabour& labour : book.platform_labour) {
    if (labour.vendor != kind.vendor || !Allows(labour.pool, kind.pool)) continue;
    next.SeeEnds(labour);
    if (labour.from > at || (labour.to && *labour.to <= at)) continue;
    const auto rank = [](const PlatformLabour& one) {
      return std::pair(!one.pool.empty(), one.from);
    };
    if (best == nullptr || rank(*best) < rank(labour)) best = &labour;
  }
  told = best != nullptr;
  return best == nullptr ? NanoCurrency{0} : best->per_hour;
}

void PriceEnergy(const PriceBook& book, const Price& price, TimePoint at, Earliest& next,
                 Rates& rates) {
  rates.energy = price.energy;
  if (price.energy_zone.empty()) return;
  const Tariff* tariff = FindTariff(book, price.energy_zone, at, next);
  if (tariff == nullptr) {
    rates.missing = "no tariff of zone " + price.energy_zone + " from " + FormatTime(at);
    if (next.first()) rates.missing += " to " + FormatTime(*next.first());
    return;
  }
  rates.metered = true;
  rates.per_kilowatt_hour = tariff->per_kilowatt_hour;
  rates.pue_milli = tariff->pue_milli;
  // mW for an hour are 3600 mJ each.
  rates.energy = EnergyCost(SaturatingMultiply(price.assumed_mw, kMsPerHour / 1000),
                            tariff->pue_milli, tariff->per_kilowatt_hour);
}

}  // namespace

Rates RatesAt(const PriceBook& book, const DeviceKind& kind, TimePoint at) {
  Rates rates;
  Earliest next(at);
  const auto candidates = Candidates(book, kind);
  for (const Price* price : candidates) next.SeeEnds(*price);
  const auto holding = Holding(candidates, at);
  const Price* price = Nearest(holding, kind);
  if (price == nullptr) {
    rates.missing = holding.empty() ? Missing(candidates, kind, at)
                                    : "several purchases have a price for " + Name(kind) +
                                          "; name the pool of each";
    rates.until = next.first();
    return rates;
  }
  rates.hardware = price->hardware;
  rates.billing_ms = price->billing_ms;
  rates.labour.v =
      SaturatingAdd(price->labour.v, PlatformLabourAt(book, kind, at, next, rates.labour_told).v);
  rates.labour_told = rates.labour_told || price->labour_told;
  PriceEnergy(book, *price, at, next, rates);
  rates.until = next.first();
  return rates;
}

NanoCurrency OwnedPerHour(NanoCurrency capital, std::int64_t residual_percent,
                          NanoCurrency financing, NanoCurrency fixed_per_month,
                          std::int64_t life_months, std::int64_t devices) {
  // Twice the cost of the life in hundredths, over twice its hours (a month has 1461 / 2).
  const Wide life = static_cast<Wide>(capital.v) * (100 - residual_percent) +
                    static_cast<Wide>(financing.v) * 100 +
                    static_cast<Wide>(fixed_per_month.v) * 100 * life_months;
  const Wide hours = static_cast<Wide>(life_months) * 1461 * 100 * devices;
  return NanoCurrency{Saturate(RoundHalfEven(life * 2, hours))};
}

NanoCurrency PlatformLabourPerHour(std::int64_t nano_hours, NanoCurrency wage,
                                   std::int64_t devices) {
  // 10^16 x 9.2x10^18 x 2 fit 128 bits.
  return NanoCurrency{Saturate(RoundHalfEven(static_cast<Wide>(nano_hours) * wage.v * 2,
                                             static_cast<Wide>(devices) * 1461 * 1'000'000'000))};
}

NanoCurrency EnergyCost(std::int64_t millijoules, std::int64_t pue_milli,
                        NanoCurrency per_kilowatt_hour) {
  // mJ x thousandths, against the 3.6x10^9 mJ of a kilowatt hour. What exceeds 128 bits is absurd
  // and stops at the end.
  const Wide energy = static_cast<Wide>(millijoules) * pue_milli;
  constexpr Wide kPer = static_cast<Wide>(kMsPerHour) * 1000 * 1000;
  Wide product = 0;
  if (__builtin_mul_overflow(energy, static_cast<Wide>(per_kilowatt_hour.v), &product)) {
    return NanoCurrency{Saturate((static_cast<Wide>(1) << 126))};
  }
  return NanoCurrency{Saturate(RoundHalfEven(product, kPer))};
}

}  // namespace bimetal::core::cost
