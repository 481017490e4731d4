#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "core/base/time.h"

// EASY backfilling: the head of a line that does not fit is promised the earliest time at which it
// will, and whoever overtakes it must leave that promise whole. Kept node by node, because devices
// that are free on different nodes are no room for one pod.
namespace bimetal::core::queue::order {

// Devices of a node that are held until `until`; nullopt: nobody knows.
struct Occupied {
  std::int64_t devices = 0;
  std::optional<TimePoint> until;
};

// One node of a device class (a pool) as a waiting gang sees it.
struct NodeOutlook {
  std::int64_t free = 0;  // usable devices that nobody holds now
  std::vector<Occupied> occupied;
};

// A gang of equal pods; pods may share a node, one pod never spans two.
struct GangShape {
  std::int64_t pods = 1;
  std::int64_t devices_per_pod = 1;
};

// What was promised to a head of line on one class.
struct Reservation {
  TimePoint start;
  // By index of node, for the nodes on which it will run: devices that are free at `start` beside
  // its own. Jobs that still run at `start` may take no more than these of such a node.
  std::map<std::size_t, std::int64_t> spare;
};

// Devices of one node that a job is about to take.
struct Taking {
  std::size_t node = 0;
  std::int64_t devices = 0;
};

// The earliest time, not before `now`, at which the gang fits if nothing else starts and all end as
// foreseen (an end before `now` counts as `now`). Of the nodes that have room then, those that are
// left fullest are taken, ties by index. nullopt: devices that are held without a known end stand
// in the way, or the class is too small. Pure; work grows as devices * log(devices).
std::optional<Reservation> Reserve(const std::vector<NodeOutlook>& nodes, const GangShape& gang,
                                   TimePoint now);

// True where a job that takes `taking` now and ends at `end` (nullopt: unknown) leaves the
// reservation whole: it has ended by `start`, or takes only spare devices. Pure.
bool LeavesWhole(const Reservation& reservation, const std::vector<Taking>& taking,
                 std::optional<TimePoint> end);

// REQUIRES: LeavesWhole(*reservation, taking, end). Counts the job that has started.
void Start(Reservation* reservation, const std::vector<Taking>& taking,
           std::optional<TimePoint> end);

// One way in which a head of line could run.
struct Option {
  const std::vector<NodeOutlook>* nodes = nullptr;  // of the class; not null
  GangShape gang;
  std::optional<Millis> run;  // run time on this class, nullopt: unknown
};

// The option of the earliest finish and its reservation.
struct Promise {
  std::size_t option = 0;
  Reservation reservation;
};

// Reserves on the option that ends first; where a run time is unknown, on the one that starts
// first among all. Ties go to the earlier start, then to the lower index. With `kept`, what the
// head was promised before: an option that starts later than `kept` is taken only where none else
// is possible, so with exact run times no head starts later than first promised. nullopt: no
// option can be promised anything. Pure.
std::optional<Promise> ReserveEarliestFinish(const std::vector<Option>& options, TimePoint now,
                                             std::optional<TimePoint> kept);

}  // namespace bimetal::core::queue::order
