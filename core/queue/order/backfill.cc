#include "core/queue/order/backfill.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace bimetal::core::queue::order {
namespace {

std::int64_t FreeAt(const NodeOutlook& node, TimePoint t) {
  std::int64_t free = node.free;
  for (const Occupied& held : node.occupied) {
    if (held.until && *held.until <= t) free += held.devices;
  }
  return free;
}

bool FitsAt(const std::vector<NodeOutlook>& nodes, const GangShape& gang, TimePoint t) {
  std::int64_t pods = 0;
  for (const NodeOutlook& node : nodes) {
    pods += std::max<std::int64_t>(0, FreeAt(node, t)) / gang.devices_per_pod;
    if (pods >= gang.pods) return true;
  }
  return false;
}

// Instants after `now` at which something ends, ascending; `now` itself first.
std::vector<TimePoint> Instants(const std::vector<NodeOutlook>& nodes, TimePoint now) {
  std::vector<TimePoint> instants = {now};
  for (const NodeOutlook& node : nodes) {
    for (const Occupied& held : node.occupied) {
      if (held.until && *held.until > now) instants.push_back(*held.until);
    }
  }
  std::sort(instants.begin(), instants.end());
  instants.erase(std::unique(instants.begin(), instants.end()), instants.end());
  return instants;
}

}  // namespace

std::optional<Reservation> Reserve(const std::vector<NodeOutlook>& nodes, const GangShape& gang,
                                   TimePoint now) {
  if (gang.pods < 1 || gang.devices_per_pod < 1) return std::nullopt;
  const std::vector<TimePoint> instants = Instants(nodes, now);
  // Devices only become free as time goes on, so the instants are split by one boundary.
  const auto first = std::partition_point(instants.begin(), instants.end(),
                                          [&](TimePoint t) { return !FitsAt(nodes, gang, t); });
  if (first == instants.end()) return std::nullopt;

  Reservation reservation{.start = *first, .spare = {}};
  std::vector<std::pair<std::int64_t, std::size_t>> room;  // (free at the start, node)
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const std::int64_t free = FreeAt(nodes[i], *first);
    if (free >= gang.devices_per_pod) room.emplace_back(free, i);
  }
  std::sort(room.begin(), room.end());
  std::int64_t left = gang.pods;
  for (const auto& [free, node] : room) {
    if (left == 0) break;
    const std::int64_t here = std::min(left, free / gang.devices_per_pod);
    reservation.spare[node] = free - here * gang.devices_per_pod;
    left -= here;
  }
  return reservation;
}

bool LeavesWhole(const Reservation& reservation, const std::vector<Taking>& taking,
                 std::optional<TimePoint> end) {
  if (end && *end <= reservation.start) return true;
  std::map<std::size_t, std::int64_t> need;
  for (const Taking& one : taking) need[one.node] += one.devices;
  return std::all_of(need.begin(), need.end(), [&](const auto& one) {
    const auto spare = reservation.spare.find(one.first);
    return spare == reservation.spare.end() || one.second <= spare->second;
  });
}

void Start(Reservation* reservation, const std::vector<Taking>& taking,
           std::optional<TimePoint> end) {
  if (end && *end <= reservation->start) return;
  for (const Taking& one : taking) {
    const auto spare = reservation->spare.find(one.node);
    if (spare != reservation->spare.end()) spare->second -= one.devices;
  }
}

std::optional<Promise> ReserveEarliestFinish(const std::vector<Option>& options, TimePoint now,
                                             std::optional<TimePoint> kept) {
  std::vector<Promise> possible;
  for (std::size_t i = 0; i < options.size(); ++i) {
    auto reservation = Reserve(*options[i].nodes, options[i].gang, now);
    if (reservation) possible.push_back(Promise{i, std::move(*reservation)});
  }
  const bool all_known = std::all_of(options.begin(), options.end(),
                                     [](const Option& option) { return option.run.has_value(); });
  const auto rank = [&](const Promise& promise) {
    const TimePoint start = promise.reservation.start;
    const TimePoint finish = all_known ? start + *options[promise.option].run : start;
    return std::tuple(kept && start > *kept, finish, start, promise.option);
  };
  const auto best =
      std::min_element(possible.begin(), possible.end(),
                       [&](const Promise& a, const Promise& b) { return rank(a) < rank(b); });
  if (best == possible.end()) return std::nullopt;
  return std::move(*best);
}

}  // namespace bimetal::core::queue::order
