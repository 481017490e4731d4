#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/fleet.pb.h"
#include "core/base/ids.h"
#include "core/base/result.h"
#include "core/base/time.h"
#include "core/model/vendor.h"

// A price book as read: every amount in billionths of the book's currency, exchanged where the
// entry named another. Entries with `to` end there; those without end where the next of their kind
// begins.
namespace bimetal::core::cost {

// Prices of one device and hour.
struct Price {
  Vendor vendor = Vendor::kNvidia;
  std::string model = {};
  TimePoint from = {};
  NanoCurrency hardware = {}, energy = {}, labour = {};
  std::optional<TimePoint> to = {};
  std::string pool = {};         // "": every pool
  std::string purchase = {};     // Owned | OnDemand | Reserved | Spot, "": every
  std::string energy_zone = {};  // whose tariff prices the joules; "": `energy` by the hour
  std::int64_t assumed_mw = 0;   // milliwatts where none is measured; 0: none assumed
  std::int64_t billing_ms = 0;   // to which the provider rounds up; 0: not told
  bool labour_told = false;      // by the entry itself
  bool energy_told = false;      // a figure, a zone, or a rent that includes it
};

inline constexpr std::uint32_t kWholeDay = (1U << 24) - 1;  // every hour, as Tariff::hours

// What a kilowatt hour costs in a zone. `hours` has bit h for the hour of the day h, UTC.
struct Tariff {
  std::string zone;
  TimePoint from;
  std::optional<TimePoint> to;
  std::uint32_t hours = 0;
  NanoCurrency per_kilowatt_hour;
  std::int64_t pue_milli = 1000;
};

// Labour on a vendor's stack for one device and hour.
struct PlatformLabour {
  Vendor vendor = Vendor::kNvidia;
  std::string pool;  // "": every pool
  TimePoint from;
  std::optional<TimePoint> to;
  NanoCurrency per_hour;
};

// Labour on a workload: `total` is spread over `planned_units`.
struct WorkloadLabour {
  std::string workload;
  Vendor vendor = Vendor::kNvidia;
  NanoCurrency total;
  std::int64_t planned_units = 1;
  NanoCurrency upkeep_per_month;
};

struct Overhead {
  std::string name;
  TimePoint from;
  std::optional<TimePoint> to;
  NanoCurrency per_month;  // of 730.5 hours
};

struct PriceBook {
  std::string currency = {};
  std::vector<Price> prices = {};  // sorted by vendor, model, from, pool, purchase
  std::vector<Tariff> tariffs = {};
  std::vector<PlatformLabour> platform_labour = {};
  std::vector<WorkloadLabour> workload_labour = {};
  std::vector<Overhead> overheads = {};
  bool example = false;  // figures that are nobody's: shown with whatever comes of them
};

// Error kInvalid names the entry and the remedy: "spec.prices[2].hardwarePerHour: "-1" is
// negative; use 0 or more". Refused are also entries of one kind that overlap, and electricity on
// top of a rent that includes it.
Result<PriceBook> PriceBookFromApi(const api::PriceBook& book);

// What is lawful in a book and yet asks for a person: `reason` is one of PriceGap, TariffGap,
// PriceIsZero, PriceJump, EnergyNotPriced, EnergyAboveHardware, LabourNotSet, ExampleFigures; the
// message names the entry and the remedy.
struct Finding {
  std::string reason, message;
  auto operator<=>(const Finding&) const = default;
};

// Sorted, each once. Pure.
std::vector<Finding> Review(const PriceBook& book);

}  // namespace bimetal::core::cost
