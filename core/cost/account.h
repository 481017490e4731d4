#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/ids.h"
#include "core/base/result.h"
#include "core/base/time.h"
#include "core/cost/energy.h"
#include "core/cost/price_book.h"
#include "core/cost/rates.h"
#include "core/cost/ratio.h"

// From what happened to a device to closed rows of the ledger (notes: cost model 3.1 to 3.4). Every
// instant of every device is in exactly one state for each part of it, and every row is money.
//
// How rounding is kept from losing or making money:
// - Within an hour (UTC) under one set of rates, a whole device has a running total for each
//   component: rate x time since that hour or those rates began, rounded once, half to even. A
//   stretch of it costs the difference of two running totals. So it does not matter where a stretch
//   is cut: the parts of an hour always add up to the hour, rounded once.
// - Where a stretch has several holders, what the device cost is dealt out by shares (Apportion):
//   each gets its exact part rounded down, the billionths left over go one each to those who lost
//   most by it, and the earlier in the order of the rows where two lost the same. So jobs, idle,
//   reserved, fragmented, draining, unhealthy and offline add up to the device's cost exactly, none
//   is negative, and each row is within two billionths of its exact value.
namespace bimetal::core::cost {

enum class DeviceState {
  kAllocated,
  kIdle,
  kReserved,    // kept for a job that has not started
  kFragmented,  // free, yet no profile or gang can use it
  kDraining,
  kUnhealthy,
  kOffline,
};
// "allocated", "idle", ...
std::string_view DeviceStateName(DeviceState state);

enum class Phase { kStartup, kRunning, kTeardown };
// "startup", "running", "teardown".
std::string_view PhaseName(Phase phase);

// A holder had a part of the device in [begin, end): from its bind to its release, whatever the
// device's health. Startup until `running`, teardown from `teardown` on.
struct Holding {
  std::string id;  // of the event it comes from: the same id twice counts once
  Uid job;
  std::int64_t attempt = 0;
  Ratio share = Ratio::One();
  TimePoint begin, end;
  std::optional<TimePoint> running = {}, teardown = {};
  bool operator==(const Holding&) const = default;
};

// What the part of the device that nobody held was in [begin, end): any state but kAllocated and
// kIdle, the latter being what is left. Where several meet: offline, unhealthy, draining, reserved,
// fragmented, in this order.
struct Condition {
  DeviceState state = DeviceState::kOffline;
  TimePoint begin, end;
};

// From `from` on the device was divided so that profiles can use `usable` of it; the rest, as far
// as it is free, is fragmented. All of it is usable before the first.
struct Layout {
  TimePoint from;
  Ratio usable = Ratio::One();
};

// One physical device in the window [begin, end). What lies outside the window is left out, except
// energy since the hour began, from which running totals start. The order of lists is of no
// meaning.
struct DeviceTimeline {
  DeviceId device;
  DeviceKind kind;
  TimePoint begin, end;
  std::vector<Holding> holdings = {};
  std::vector<Condition> conditions = {};
  std::vector<Layout> layouts = {};
  std::vector<EnergySpan> energy = {};  // of the whole device, by one meter; may not overlap
};

struct Amounts {
  std::int64_t device_ms = 0;    // share x time, dealt out like money
  std::int64_t unpriced_ms = 0;  // of these without a price
  std::int64_t unmetered_ms =
      0;  // of these without a joule told nor assumed where joules are priced
  std::int64_t millijoules = 0;
  NanoCurrency hardware, energy, labour;
  NanoCurrency Total() const;
  void Add(const Amounts& other);  // stops at the ends of int64
  bool operator==(const Amounts&) const = default;
};

// A closed row. `holding`, `job`, `attempt` and `phase` have a meaning where it is allocated.
struct Row {
  DeviceId device;
  TimePoint begin, end;
  DeviceState state = DeviceState::kIdle;
  std::string holding;
  Uid job;
  std::int64_t attempt = 0;
  Phase phase = Phase::kStartup;
  Ratio share;
  Amounts amounts;
  EnergySource energy_source = EnergySource::kMeasured;  // the worst of the row
  std::string missing;  // why there is no price; then money is 0 and unpriced_ms is not
};

// The rows of a device, in order of time, then of holders (job, attempt, holding), then of what is
// left. Cut at every change of holder, phase, state, layout, price and tariff and at every hour.
// Without a book everything is unpriced. Error kData, naming the device and the instant, where
// shares add up to more than 1, an id stands for two different holdings, or energy overlaps:
// nothing is billed rather than billed twice. Pure.
Result<std::vector<Row>> CloseRows(const DeviceTimeline& timeline, const PriceBook* book);

// What the whole device cost, whoever had it: what CloseRows' rows must add up to, and do. The
// operator's books balance where Sum(rows) equals this. Errors as above, as to energy.
Result<Amounts> DeviceCost(const DeviceTimeline& timeline, const PriceBook* book);

Amounts Sum(const std::vector<Row>& rows);

}  // namespace bimetal::core::cost
