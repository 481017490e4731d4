#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/base/ids.h"
#include "core/base/time.h"
#include "core/cost/price_book.h"

// What a device costs at an instant, and until when that stays so.
namespace bimetal::core::cost {

// A month of the ledger: 8766 / 12 hours.
inline constexpr std::int64_t kMsPerHour = 3'600'000;
inline constexpr std::int64_t kMsPerMonth = 2'629'800'000;

// Which prices hold for a device. `pool` and `purchase` are "" where they are not known.
struct DeviceKind {
  Vendor vendor = Vendor::kNvidia;
  std::string model = {};
  std::string pool = {};
  std::string purchase = {};
};

struct Rates {
  NanoCurrency hardware, labour;   // of a device and hour
  NanoCurrency energy;             // of a device and hour: a flat figure, or that of assumed power
  bool metered = false;            // joules are priced by the tariff below
  NanoCurrency per_kilowatt_hour;  // of the tariff
  std::int64_t pue_milli = 1000;   // of the tariff
  bool labour_told = false;        // else labour is 0 because nobody told it
  std::int64_t billing_ms = 0;     // provider's rounding; 0: none told
  std::optional<TimePoint> until;  // the first instant at which something may differ
  std::string missing;  // not empty: there is no price, and why: "no price for amd X before ..."
};

// The rates at `at`. Of the prices that hold for the kind, one for its pool goes before one for
// every pool, then one for its purchase before one for every purchase. Where the purchase is not
// known and prices of several hold, none is taken. Pure.
Rates RatesAt(const PriceBook& book, const DeviceKind& kind, TimePoint at);

// ((capital x (1 - residual) + financing) / life + fixed per month) / devices, for an hour of the
// calendar, rounded once (notes: cost model 3.1; 8766 hours a year).
// REQUIRES: amounts >= 0, 0 <= residual_percent <= 100, life_months and devices > 0.
NanoCurrency OwnedPerHour(NanoCurrency capital, std::int64_t residual_percent,
                          NanoCurrency financing, NanoCurrency fixed_per_month,
                          std::int64_t life_months, std::int64_t devices);

// hours x wage / (devices x 730.5 h); `nano_hours` in billionths of an hour. Rounded once.
// REQUIRES: devices > 0, nano_hours at most 10^16.
NanoCurrency PlatformLabourPerHour(std::int64_t nano_hours, NanoCurrency wage,
                                   std::int64_t devices);

// Joules x PUE x tariff, rounded once.
NanoCurrency EnergyCost(std::int64_t millijoules, std::int64_t pue_milli,
                        NanoCurrency per_kilowatt_hour);

}  // namespace bimetal::core::cost
