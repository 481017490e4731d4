#include "core/placement/board.h"

#include <algorithm>
#include <utility>

#include "core/model/saturate.h"
#include "core/placement/search.h"
#include "core/placement/shape.h"

namespace bimetal::core::placement {
namespace {

// Masks of rare shapes must not pile up over a long cycle.
constexpr std::size_t kMaxMasks = 256;

}  // namespace

std::vector<Room> MakeRooms(const std::vector<Node>& nodes, Books books) {
  std::vector<Room> rooms;
  rooms.reserve(nodes.size());
  for (const Node& node : nodes) rooms.push_back(Room{.node = &node, .used = {}, .held = {}});
  const auto before = [](const Room& a, const Room& b) { return a.node->name < b.node->name; };
  const auto same = [](const Room& a, const Room& b) { return a.node->name == b.node->name; };
  // Callers keep their nodes sorted, mostly.
  if (!std::is_sorted(rooms.begin(), rooms.end(), before)) {
    std::stable_sort(rooms.begin(), rooms.end(), before);
  }
  rooms.erase(std::unique(rooms.begin(), rooms.end(), same), rooms.end());
  auto use = books.begin();
  for (Room& room : rooms) {
    while (use != books.end() && use->first < room.node->name) ++use;
    if (use == books.end() || use->first != room.node->name) continue;
    room.used = use->second.used;
    room.held = std::move(use->second.held);
  }
  return rooms;
}

Board::Board(std::vector<Room>* rooms, const std::vector<std::size_t>& members, Vendor vendor,
             const std::vector<std::string>& topology_keys)
    : rooms_(rooms), vendor_(vendor) {
  slots_.reserve(members.size());
  std::vector<const Node*> nodes;
  nodes.reserve(members.size());
  for (const std::size_t member : members) {
    const Room& room = (*rooms_)[member];
    const auto held = room.held.find(vendor);
    slots_.push_back(Slot{.room = member,
                          .usable = UsableOn(*room.node),
                          .held = held == room.held.end() ? 0 : WholeDevices(held->second),
                          .free = 0});
    nodes.push_back(room.node);
  }
  if (!nodes.empty()) {
    const auto& devices = nodes.front()->devices;
    if (const auto found = devices.find(vendor); found != devices.end()) pool_ = found->second.pool;
  }
  topology_ = std::make_shared<const Topology>(topology_keys, nodes);
  Reindex();
}

Board Board::Under(const World& world) const {
  Board other(rooms_, {}, vendor_);
  other.world_ = world;
  other.pool_ = pool_;
  other.topology_ = topology_;
  other.own_rooms_ = std::make_unique<std::vector<Room>>();
  other.own_rooms_->reserve(slots_.size());
  other.slots_.reserve(slots_.size());
  for (const Slot& slot : slots_) {
    const Room& room = (*rooms_)[slot.room];
    other.own_rooms_->push_back(
        Room{.node = room.node, .used = world.nobody_holds ? Resources{} : room.used, .held = {}});
    other.slots_.push_back(Slot{.room = other.own_rooms_->size() - 1,
                                .usable = world.all_open ? other.UsableOn(*room.node) : slot.usable,
                                .held = world.nobody_holds ? 0 : slot.held,
                                .free = 0});
  }
  other.rooms_ = other.own_rooms_.get();
  other.Reindex();
  return other;
}

void Board::Reindex() {
  total_free_ = 0;
  for (Slot& slot : slots_) {
    slot.free = std::max<std::int64_t>(0, slot.usable - slot.held);
    total_free_ += slot.free;
  }
  const std::size_t node_level = topology_->node_level();
  free_.assign(node_level, {});
  by_free_.clear();
  for (std::size_t level = 0; level < node_level; ++level) {
    auto& free = free_[level];
    free.assign(topology_->DomainsIn(level), 0);
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      const auto domain = topology_->DomainOf(level, i);
      if (domain != Topology::kNowhere) free[domain] += slots_[i].free;
    }
    by_free_.emplace_back(free);
  }
  std::vector<std::int64_t> free;
  free.reserve(slots_.size());
  for (const Slot& slot : slots_) free.push_back(slot.free);
  by_free_.emplace_back(free);
}

void Board::SetHeld(std::size_t index, std::int64_t held) {
  Slot& slot = slots_[index];
  const std::int64_t free = std::max<std::int64_t>(0, slot.usable - held);
  const std::int64_t more = free - slot.free;
  slot.held = held;
  if (more == 0) return;
  const std::size_t node_level = topology_->node_level();
  for (std::size_t level = 0; level < node_level; ++level) {
    const auto domain = topology_->DomainOf(level, index);
    if (domain == Topology::kNowhere) break;  // nor of any narrower level
    std::int64_t& sum = free_[level][domain];
    by_free_[level].Move(domain, sum, sum + more);
    sum += more;
  }
  by_free_[node_level].Move(index, slot.free, free);
  slot.free = free;
  total_free_ += more;
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
  if (found == node.devices.end() || !MayProve(found->second, variant)) return false;
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
  if (!AffinityAllows(role.node_affinity, node)) return false;
  if (world_.any_state) return true;
  if (!node.ready || node.cordoned) return false;
  if (std::binary_search(role.avoid.begin(), role.avoid.end(), node.name)) return false;
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

std::optional<std::vector<PodPlacement>> Board::Find(const Job& job, const Variant& variant) {
  BIMETAL_CHECK(variant.devices_per_pod > 0);
  if (total_free_ < DevicesNeeded(job, variant)) return std::nullopt;
  if (match_masks_.size() > kMaxMasks) match_masks_.clear();
  if (role_masks_.size() > kMaxMasks) role_masks_.clear();
  Search search(this, job, variant);
  if (!search.Run()) return std::nullopt;
  return search.Placements();
}

std::optional<std::size_t> Board::SlotOf(const NodeName& node) const {
  const auto slot = std::lower_bound(
      slots_.begin(), slots_.end(), node,
      [&](const Slot& s, const NodeName& name) { return (*rooms_)[s.room].node->name < name; });
  if (slot == slots_.end() || (*rooms_)[slot->room].node->name != node) return std::nullopt;
  return static_cast<std::size_t>(slot - slots_.begin());
}

void Board::Book(const Job& job, const Variant& variant, const std::vector<PodPlacement>& pods) {
  std::optional<std::size_t> slot;
  for (std::size_t i = 0; i < pods.size(); ++i) {  // ranks run node by node
    if (i == 0 || pods[i].node != pods[i - 1].node) slot = SlotOf(pods[i].node);
    BIMETAL_CHECK(slot.has_value());
    Room& room = (*rooms_)[slots_[*slot].room];
    room.used = room.used + job.roles[pods[i].role].requests;
    SetHeld(*slot, slots_[*slot].held + variant.devices_per_pod);
  }
}

}  // namespace bimetal::core::placement
