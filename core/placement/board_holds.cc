// What a board is told and asked beside the search: of jobs that might go, and places that are
// kept.
#include <algorithm>

#include "core/model/saturate.h"
#include "core/placement/board.h"

namespace bimetal::core::placement {

void Board::Shift(const NodeName& node, std::int64_t devices, const Resources& requests) {
  const auto slot = SlotOf(node);
  if (!slot) return;
  Room& room = (*rooms_)[slots_[*slot].room];
  room.used = room.used + requests;
  if (devices != 0) SetHeld(*slot, SaturatingAdd(slots_[*slot].held, devices));
}

bool Board::CanHold(const Job& job, const Variant& variant, const std::vector<PodPlacement>& pods) {
  const Mask& match = MatchMask(variant);
  std::vector<const Mask*> allowed;
  for (const Role& role : job.roles) allowed.push_back(&RoleMask(role));
  struct Need {
    std::int64_t devices = 0;
    Resources requests;
  };
  std::map<std::size_t, Need> needs;
  for (const PodPlacement& pod : pods) {
    const auto slot = SlotOf(pod.node);
    if (!slot || pod.role >= job.roles.size()) return false;
    if (!match[*slot] || !(*allowed[pod.role])[*slot]) return false;
    Need& need = needs[*slot];
    need.devices = SaturatingAdd(need.devices, variant.devices_per_pod);
    need.requests = need.requests + job.roles[pod.role].requests;
  }
  return std::all_of(needs.begin(), needs.end(), [&](const auto& entry) {
    const Slot& slot = slots_[entry.first];
    const Room& room = (*rooms_)[slot.room];
    return entry.second.devices <= slot.free &&
           (world_.unlimited || Fits(entry.second.requests, room.node->allocatable, room.used));
  });
}

bool Board::IsOverbooked(const NodeName& node) const {
  const auto slot = SlotOf(node);
  if (!slot) return false;
  const Room& room = (*rooms_)[slots_[*slot].room];
  const Resources& capacity = room.node->allocatable;
  return slots_[*slot].held > slots_[*slot].usable || room.used.cpu_milli > capacity.cpu_milli ||
         room.used.memory_bytes > capacity.memory_bytes || room.used.pods > capacity.pods;
}

Board::Sum Board::InReach() const {
  Sum sum;
  for (const Slot& slot : slots_) {
    const Node& node = *(*rooms_)[slot.room].node;
    if (!node.ready || node.cordoned) continue;
    sum.free = SaturatingAdd(sum.free, slot.free);
    sum.usable = SaturatingAdd(sum.usable, slot.usable);
  }
  return sum;
}

}  // namespace bimetal::core::placement
