#include "core/placement/board.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include "core/model/saturate.h"
#include "core/placement/shape.h"

namespace bimetal::core::placement {
namespace {

// Masks of rare shapes must not pile up over a long cycle.
constexpr std::size_t kMaxMasks = 256;

std::int64_t Left(std::int64_t capacity, std::int64_t used) {
  return std::max<std::int64_t>(0, Saturate(static_cast<__int128>(capacity) - used));
}

std::int64_t TimesThatFit(std::int64_t need, std::int64_t capacity, std::int64_t used) {
  if (need <= 0) return std::numeric_limits<std::int64_t>::max();
  return Left(capacity, used) / need;
}

Resources Times(const Resources& need, std::int64_t n) {
  return Resources{.cpu_milli = SaturatingMultiply(need.cpu_milli, n),
                   .memory_bytes = SaturatingMultiply(need.memory_bytes, n),
                   .pods = SaturatingMultiply(need.pods, n)};
}

}  // namespace

std::vector<Room> MakeRooms(const std::vector<Node>& nodes, const Books& books) {
  std::vector<Room> rooms;
  rooms.reserve(nodes.size());
  for (const Node& node : nodes) rooms.push_back(Room{.node = &node, .used = {}, .held = {}});
  std::stable_sort(rooms.begin(), rooms.end(),
                   [](const Room& a, const Room& b) { return a.node->name < b.node->name; });
  const auto last = std::unique(rooms.begin(), rooms.end(), [](const Room& a, const Room& b) {
    return a.node->name == b.node->name;
  });
  rooms.erase(last, rooms.end());
  for (Room& room : rooms) {
    const auto use = books.find(room.node->name);
    if (use == books.end()) continue;
    room.used = use->second.used;
    room.held = use->second.held;
  }
  return rooms;
}

Board::Board(std::vector<Room>* rooms, const std::vector<std::size_t>& members, Vendor vendor)
    : rooms_(rooms), vendor_(vendor) {
  slots_.reserve(members.size());
  for (const std::size_t member : members) {
    const Room& room = (*rooms_)[member];
    const auto held = room.held.find(vendor);
    slots_.push_back(Slot{.room = member,
                          .usable = UsableOn(*room.node),
                          .held = held == room.held.end() ? 0 : WholeDevices(held->second),
                          .free = 0});
  }
  if (!members.empty()) {
    const Node& first = *(*rooms_)[members.front()].node;
    if (const auto found = first.devices.find(vendor); found != first.devices.end()) {
      pool_ = found->second.pool;
    }
  }
  Reindex();
}

Board Board::Under(const World& world) const {
  Board other(rooms_, {}, vendor_);
  other.world_ = world;
  other.pool_ = pool_;
  other.own_rooms_ = std::make_unique<std::vector<Room>>();
  other.own_rooms_->reserve(slots_.size());
  for (const Slot& slot : slots_) {
    const Room& room = (*rooms_)[slot.room];
    other.own_rooms_->push_back(
        Room{.node = room.node, .used = world.nobody_holds ? Resources{} : room.used, .held = {}});
    other.slots_.push_back(Slot{.room = other.own_rooms_->size() - 1,
                                .usable = other.UsableOn(*room.node),
                                .held = world.nobody_holds ? 0 : slot.held,
                                .free = 0});
  }
  other.rooms_ = other.own_rooms_.get();
  other.Reindex();
  return other;
}

void Board::Reindex() {
  by_free_.clear();
  total_free_ = 0;
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    slots_[i].free = Left(slots_[i].usable, slots_[i].held);
    by_free_.emplace(slots_[i].free, i);
    total_free_ = SaturatingAdd(total_free_, slots_[i].free);
  }
}

std::int64_t Board::UsableOn(const Node& node) const {
  if (!world_.all_open) return UsableDevices(node, vendor_);
  const auto found = node.devices.find(vendor_);
  if (found == node.devices.end()) return 0;
  const auto& devices = found->second.devices;
  return std::count_if(devices.begin(), devices.end(),
                       [](const Device& d) { return d.capacity >= kWholeDevice; });
}

// The kubelet picks the device, so every one that it may pick must do.
bool Board::MatchesAll(const Node& node, const Variant& variant) const {
  const auto found = node.devices.find(vendor_);
  if (found == node.devices.end()) return false;
  const auto& devices = found->second.devices;
  return std::all_of(devices.begin(), devices.end(), [&](const Device& device) {
    return !(device.open || world_.all_open) || Matches(device, variant);
  });
}

bool Board::Allows(const Node& node, const Role& role) const {
  for (const auto& [key, value] : role.node_selector) {
    const auto label = node.labels.find(key);
    if (label == node.labels.end() || label->second != value) return false;
  }
  if (world_.any_state) return true;
  if (!node.ready || node.cordoned) return false;
  return std::all_of(node.taints.begin(), node.taints.end(), [&](const Taint& taint) {
    if (taint.effect != "NoSchedule" && taint.effect != "NoExecute") return true;
    if (world_.all_open && taint.key == kUnvalidatedTaint) return true;
    return Tolerates(role.tolerations, taint);
  });
}

const Board::Mask& Board::MatchMask(const Variant& variant) {
  const auto [at, added] = match_masks_.try_emplace(ShapeOfDevices(variant));
  if (!added) return at->second;
  for (const Slot& slot : slots_) {
    at->second.push_back(MatchesAll(*(*rooms_)[slot.room].node, variant));
  }
  return at->second;
}

const Board::Mask& Board::RoleMask(const Role& role) {
  const auto [at, added] = role_masks_.try_emplace(ShapeOfConstraints(role));
  if (!added) return at->second;
  for (const Slot& slot : slots_) {
    at->second.push_back(Allows(*(*rooms_)[slot.room].node, role));
  }
  return at->second;
}

std::int64_t Board::PodsThatFit(std::size_t index, const RoleShape& role) const {
  const Slot& slot = slots_[index];
  if (!(*match_)[index] || !(*role.allowed)[index]) return 0;
  const std::int64_t by_devices = slot.free / devices_per_pod_;
  if (world_.unlimited) return by_devices;
  const Room& room = (*rooms_)[slot.room];
  const Resources& capacity = room.node->allocatable;
  return std::min(
      {by_devices, TimesThatFit(role.need.cpu_milli, capacity.cpu_milli, room.used.cpu_milli),
       TimesThatFit(role.need.memory_bytes, capacity.memory_bytes, room.used.memory_bytes),
       TimesThatFit(role.need.pods, capacity.pods, room.used.pods)});
}

void Board::SetHeld(std::size_t index, std::int64_t held) {
  Slot& slot = slots_[index];
  by_free_.erase({slot.free, index});
  total_free_ -= slot.free;
  slot.held = held;
  slot.free = Left(slot.usable, held);
  total_free_ += slot.free;
  by_free_.emplace(slot.free, index);
}

void Board::Take(std::size_t index, const RoleShape& role, std::int64_t pods) {
  Room& room = (*rooms_)[slots_[index].room];
  taken_.push_back(Taken{.slot = index, .role = role.role, .pods = pods, .used_before = room.used});
  room.used = room.used + Times(role.need, pods);
  SetHeld(index, slots_[index].held + pods * devices_per_pod_);
  touched_.insert(index);
}

void Board::Undo() {
  for (; !taken_.empty(); taken_.pop_back()) {
    const Taken& last = taken_.back();
    (*rooms_)[slots_[last.slot].room].used = last.used_before;
    SetHeld(last.slot, slots_[last.slot].held - last.pods * devices_per_pod_);
  }
  touched_.clear();
}

// The fullest node that takes all `pods`, ties by name.
bool Board::PlaceOnOneNode(const RoleShape& role, std::int64_t pods) {
  const std::int64_t devices = SaturatingMultiply(pods, devices_per_pod_);
  for (auto at = by_free_.lower_bound({devices, 0}); at != by_free_.end(); ++at) {
    if (PodsThatFit(at->second, role) < pods) continue;
    Take(at->second, role, pods);
    return true;
  }
  return false;
}

// Puts as many of `pods` as fit on the slots `from` (fullest first), on as few nodes as possible:
// the roomiest first, the rest where it fits best. Returns how many are left over.
std::int64_t Board::Fill(const RoleShape& role, std::int64_t pods,
                         const std::vector<std::size_t>& from) {
  std::vector<std::int64_t> fit;
  fit.reserve(from.size());
  for (const std::size_t slot : from) fit.push_back(PodsThatFit(slot, role));
  while (pods > 0) {
    const auto most = std::max_element(fit.begin(), fit.end());
    if (most == fit.end() || *most == 0) break;
    const std::int64_t level = std::min(*most, pods);
    for (std::size_t i = 0; i < from.size() && pods >= level; ++i) {
      if (fit[i] < level) continue;
      Take(from[i], role, level);
      fit[i] = 0;
      pods -= level;
      if (pods == 0) break;
    }
  }
  return pods;
}

bool Board::PlaceRole(const RoleShape& role) {
  std::int64_t pods = role.replicas;
  if (!touched_.empty()) {  // the other roles' nodes first: fewer nodes in all
    std::vector<std::size_t> near(touched_.begin(), touched_.end());
    std::stable_sort(near.begin(), near.end(),
                     [&](std::size_t a, std::size_t b) { return slots_[a].free < slots_[b].free; });
    pods = Fill(role, pods, near);
  }
  if (pods == 0 || PlaceOnOneNode(role, pods)) return true;
  std::vector<std::size_t> all;
  for (auto at = by_free_.lower_bound({devices_per_pod_, 0}); at != by_free_.end(); ++at) {
    all.push_back(at->second);
  }
  return Fill(role, pods, all) == 0;
}

bool Board::TryOrder(const std::vector<RoleShape>& order) {
  for (const RoleShape& role : order) {
    if (PlaceRole(role)) continue;
    Undo();
    return false;
  }
  return true;
}

std::vector<Board::RoleShape> Board::ShapesOf(const Job& job) {
  std::vector<RoleShape> shapes;
  for (std::size_t i = 0; i < job.roles.size(); ++i) {
    shapes.push_back(RoleShape{.role = i,
                               .need = job.roles[i].requests,
                               .replicas = job.roles[i].replicas,
                               .allowed = &RoleMask(job.roles[i])});
  }
  return shapes;
}

std::vector<PodPlacement> Board::Placements() const {
  std::vector<Taken> sorted = taken_;
  std::sort(sorted.begin(), sorted.end(), [](const Taken& a, const Taken& b) {
    return std::tie(a.role, a.slot) < std::tie(b.role, b.slot);
  });
  std::vector<PodPlacement> pods;
  int index = 0;
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    if (i > 0 && sorted[i].role != sorted[i - 1].role) index = 0;
    const NodeName& node = (*rooms_)[slots_[sorted[i].slot].room].node->name;
    for (std::int64_t n = 0; n < sorted[i].pods; ++n) {
      pods.push_back(PodPlacement{.role = sorted[i].role, .index = index++, .node = node});
    }
  }
  return pods;
}

std::optional<std::vector<PodPlacement>> Board::Find(const Job& job, const Variant& variant) {
  BIMETAL_CHECK(variant.devices_per_pod > 0);
  if (total_free_ < DevicesNeeded(job, variant)) return std::nullopt;
  if (match_masks_.size() > kMaxMasks) match_masks_.clear();
  if (role_masks_.size() > kMaxMasks) role_masks_.clear();
  devices_per_pod_ = variant.devices_per_pod;
  match_ = &MatchMask(variant);

  // Greedy by role is not complete, so a gang of several roles gets more than one try: the
  // hungriest role first, then the one with the fewest nodes to choose from, then as written.
  std::vector<RoleShape> order = ShapesOf(job);
  const std::vector<RoleShape> as_written = order;
  std::stable_sort(order.begin(), order.end(), [](const RoleShape& a, const RoleShape& b) {
    return std::tie(a.need.cpu_milli, a.need.memory_bytes) >
           std::tie(b.need.cpu_milli, b.need.memory_bytes);
  });
  bool placed = TryOrder(order);
  if (!placed && order.size() > 1) {
    const auto choice = [](const RoleShape& role) {
      return std::count(role.allowed->begin(), role.allowed->end(), true);
    };
    std::stable_sort(order.begin(), order.end(),
                     [&](const RoleShape& a, const RoleShape& b) { return choice(a) < choice(b); });
    placed = TryOrder(order) || TryOrder(as_written);
  }
  if (!placed) return std::nullopt;
  std::vector<PodPlacement> pods = Placements();
  Undo();
  return pods;
}

void Board::Book(const Job& job, const Variant& variant, const std::vector<PodPlacement>& pods) {
  for (const PodPlacement& pod : pods) {
    const auto slot = std::lower_bound(
        slots_.begin(), slots_.end(), pod.node,
        [&](const Slot& s, const NodeName& name) { return (*rooms_)[s.room].node->name < name; });
    BIMETAL_CHECK(slot != slots_.end());
    Room& room = (*rooms_)[slot->room];
    room.used = room.used + job.roles[pod.role].requests;
    SetHeld(static_cast<std::size_t>(slot - slots_.begin()), slot->held + variant.devices_per_pod);
  }
}

}  // namespace bimetal::core::placement
