#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/ids.h"
#include "core/base/time.h"
#include "core/cost/account.h"
#include "core/cost/price_book.h"

// What a unit of work costs (notes: cost model 3.1). A cost and its units are of the same attempts,
// failed ones too.
namespace bimetal::core::cost {

// A cumulative count that a program shows of itself: steps, samples, tokens.
struct UnitReading {
  std::string replica;  // uid of the pod
  std::string engine;   // index of the engine in it, "" where there is one
  TimePoint at;
  std::int64_t value = 0;
};

struct UnitCounts {
  struct Last {
    TimePoint at;
    std::int64_t value = 0;
  };
  std::map<std::pair<std::string, std::string>, Last> last;  // by replica and engine
  std::int64_t total = 0;
  std::int64_t resets = 0;
};

// Takes one reading in; returns the units that it adds. A value below the last is a program that
// began again, and counts whole: each replica and engine by itself, for sums of counters lose what
// a restart hides (summing first told 100 for a true 1000). `born`: the program began within what
// is counted, so its first value counts too. Readings not later than the last one, and negative
// ones, change nothing. Pure.
std::int64_t Count(UnitCounts& counts, const UnitReading& reading, bool born);

// The two bases. They are different types because they are never added: the first is the bill, the
// second is the part of it in which the program had work in flight.
struct AllocationCost {
  NanoCurrency v;
  auto operator<=>(const AllocationCost&) const = default;
};
struct ActiveCost {
  NanoCurrency v;
  auto operator<=>(const ActiveCost&) const = default;
};

// cost x active / allocated, rounded once. `active` is time with work in flight as the program
// tells it, never a device's busy ratio, which means something else on each vendor's devices.
ActiveCost ActivePart(AllocationCost cost, Millis active, Millis allocated);
// The rest: what waiting for work cost.
NanoCurrency PriceOfWaiting(AllocationCost cost, ActiveCost active);

// Cost of `per` units, rounded once. nullopt where there are no units: not 0, not infinity.
std::optional<NanoCurrency> CostPer(NanoCurrency cost, std::int64_t units,
                                    std::int64_t per = 1'000'000);

// What of an attempt's running rows lies after its last durable checkpoint and is done again, when
// it failed, was preempted or lost its node: all of them where there was none. A row across the
// checkpoint counts in proportion to time, rounded once. `rows` may hold other rows.
Amounts LostWork(const std::vector<Row>& rows, const Uid& job, std::int64_t attempt,
                 std::optional<TimePoint> checkpoint);

// Porting and tuning by the unit, plus upkeep by time: total x units / planned units + upkeep x
// time / month, each rounded once.
NanoCurrency WorkloadLabourCost(const WorkloadLabour& labour, std::int64_t units, Millis time);

// How many units pay for a port: porting x per / (incumbent - challenger), rounded up, where both
// cost so much for `per` units. nullopt where the challenger is not cheaper, or the number does not
// fit: it never pays.
std::optional<std::int64_t> BreakEvenUnits(NanoCurrency porting, NanoCurrency incumbent,
                                           NanoCurrency challenger, std::int64_t per = 1);

}  // namespace bimetal::core::cost
