#include "core/placement/search.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>

#include "core/model/saturate.h"

namespace bimetal::core::placement {
namespace {

// Bounds the work for a gang with several parts that cannot be had together.
constexpr int kMaxTries = 256;

std::int64_t TimesThatFit(std::int64_t need, std::int64_t capacity, std::int64_t used) {
  if (need <= 0) return std::numeric_limits<std::int64_t>::max();
  const std::int64_t left = Saturate(static_cast<__int128>(capacity) - used);
  return left <= 0 ? 0 : left / need;
}

Resources Times(const Resources& need, std::int64_t n) {
  return Resources{.cpu_milli = SaturatingMultiply(need.cpu_milli, n),
                   .memory_bytes = SaturatingMultiply(need.memory_bytes, n),
                   .pods = SaturatingMultiply(need.pods, n)};
}

// Parts with the least freedom go first: what must share a domain, then what must not, then what
// would rather.
int RankOf(const std::optional<TopologyMode>& mode) {
  if (!mode) return 3;
  switch (*mode) {
    case TopologyMode::kRequired:
      return 0;
    case TopologyMode::kSpread:
      return 1;
    case TopologyMode::kPreferred:
      return 2;
  }
  return 3;
}

}  // namespace

Board::Search::Search(Board* board, const Job& job, const Variant& variant)
    : board_(*board),
      topology_(*board->topology_),
      devices_per_pod_(variant.devices_per_pod),
      match_(board->MatchMask(variant)) {
  if (!MakeParts(job)) parts_.clear();
}

bool Board::Search::MakeParts(const Job& job) {
  for (std::size_t i = 0; i < job.roles.size(); ++i) {
    const Role& role = job.roles[i];
    RoleShape shape{.role = i,
                    .need = role.requests,
                    .replicas = role.replicas,
                    .allowed = &board_.RoleMask(role)};
    Part part;
    if (role.topology && !board_.world_.anywhere) {
      const auto level = topology_.Find(role.topology->level);
      if (!level) return false;
      part.mode = role.topology->mode;
      part.level = *level;
    }
    const auto shared = std::find_if(parts_.begin(), parts_.end(), [&](const Part& other) {
      return part.mode == TopologyMode::kRequired && other.mode == part.mode &&
             other.level == part.level;
    });
    if (shared != parts_.end()) {
      shared->roles.push_back(shape);
    } else {
      part.roles.push_back(shape);
      parts_.push_back(std::move(part));
    }
  }
  return true;
}

// Greedy by part is not complete, so a gang of several roles gets more than one try: the part with
// the least freedom and the hungriest role first, then the role with the fewest nodes to choose
// from, then as written.
bool Board::Search::Run() {
  if (parts_.empty()) return false;
  if (parts_.size() == 1 && parts_.front().roles.size() == 1) return TryOrder(parts_);
  const std::vector<Part> as_written = parts_;
  const auto sort_by = [this](auto key) {
    const auto before = [&](const RoleShape& a, const RoleShape& b) { return key(a) < key(b); };
    for (Part& part : parts_) std::stable_sort(part.roles.begin(), part.roles.end(), before);
    std::stable_sort(parts_.begin(), parts_.end(), [&](const Part& a, const Part& b) {
      return before(a.roles.front(), b.roles.front());
    });
  };
  sort_by([](const RoleShape& r) { return std::pair(-r.need.cpu_milli, -r.need.memory_bytes); });
  std::stable_sort(parts_.begin(), parts_.end(), [](const Part& a, const Part& b) {
    return std::tuple(RankOf(a.mode), b.level) < std::tuple(RankOf(b.mode), a.level);
  });
  if (TryOrder(parts_)) return true;
  std::vector<std::int64_t> choice(as_written.size());
  for (const Part& part : parts_) {
    for (const RoleShape& role : part.roles) {
      choice.resize(std::max(choice.size(), role.role + 1));
      choice[role.role] = std::count(role.allowed->begin(), role.allowed->end(), true);
    }
  }
  sort_by([&](const RoleShape& r) { return choice[r.role]; });
  return TryOrder(parts_) || TryOrder(as_written);
}

bool Board::Search::TryOrder(const std::vector<Part>& order) {
  tries_ = kMaxTries;
  if (PlaceFrom(order, 0)) return true;
  UndoTo(0);
  return false;
}

bool Board::Search::PlaceFrom(const std::vector<Part>& order, std::size_t first) {
  if (first == order.size()) return true;
  const Part& part = order[first];
  if (part.mode == TopologyMode::kRequired) return PlaceRequired(order, first);
  return PlacePart(part) && PlaceFrom(order, first + 1);
}

bool Board::Search::PlacePart(const Part& part) {
  const RoleShape& role = part.roles.front();
  if (part.mode == TopologyMode::kPreferred) return PlacePreferred(role, part.level);
  if (part.mode == TopologyMode::kSpread) return PlaceSpread(role, part.level);
  return PlaceAnywhere(role);
}

bool Board::Search::MayTake(std::size_t slot, const RoleShape& role) const {
  return match_[slot] && (*role.allowed)[slot];
}

std::int64_t Board::Search::Fit(std::size_t index, const RoleShape& role) const {
  const Slot& slot = board_.slots_[index];
  if (slot.free < devices_per_pod_ || !MayTake(index, role)) return 0;
  const std::int64_t by_devices = slot.free / devices_per_pod_;
  if (board_.world_.unlimited) return by_devices;
  const Room& room = (*board_.rooms_)[slot.room];
  const Resources& capacity = room.node->allocatable;
  return std::min(
      {by_devices, TimesThatFit(role.need.cpu_milli, capacity.cpu_milli, room.used.cpu_milli),
       TimesThatFit(role.need.memory_bytes, capacity.memory_bytes, room.used.memory_bytes),
       TimesThatFit(role.need.pods, capacity.pods, room.used.pods)});
}

std::int64_t Board::Search::FitIn(std::size_t level, std::size_t domain, const RoleShape& role,
                                  std::int64_t most) const {
  std::int64_t fit = 0;
  for (const auto slot : topology_.NodesOf(level, domain)) {
    fit += Fit(slot, role);
    if (fit >= most) return most;
  }
  return fit;
}

void Board::Search::Take(std::size_t index, const RoleShape& role, std::int64_t pods) {
  Room& room = (*board_.rooms_)[board_.slots_[index].room];
  taken_.push_back(Taken{.slot = index, .role = role.role, .pods = pods, .used_before = room.used});
  room.used = room.used + Times(role.need, pods);
  board_.SetHeld(index, board_.slots_[index].held + pods * devices_per_pod_);
}

void Board::Search::UndoTo(std::size_t mark) {
  for (; taken_.size() > mark; taken_.pop_back()) {
    const Taken& last = taken_.back();
    const Slot& slot = board_.slots_[last.slot];
    (*board_.rooms_)[slot.room].used = last.used_before;
    board_.SetHeld(last.slot, slot.held - last.pods * devices_per_pod_);
  }
}

std::vector<std::size_t> Board::Search::Touched() const {
  std::vector<std::size_t> slots;
  slots.reserve(taken_.size());
  for (const Taken& taken : taken_) slots.push_back(taken.slot);
  std::sort(slots.begin(), slots.end());
  slots.erase(std::unique(slots.begin(), slots.end()), slots.end());
  return slots;
}

// Puts as many of `pods` as fit on `from`, on as few nodes as possible: the roomiest first, the
// rest where it fits best. Returns how many are left over.
std::int64_t Board::Search::Fill(const RoleShape& role, std::int64_t pods,
                                 std::vector<Candidate> from) {
  std::sort(from.begin(), from.end(), [&](const Candidate& a, const Candidate& b) {
    return std::pair(board_.slots_[a.slot].free, a.slot) <
           std::pair(board_.slots_[b.slot].free, b.slot);
  });
  while (pods > 0) {
    std::int64_t most = 0;
    for (const Candidate& one : from) most = std::max(most, one.fit);
    if (most == 0) break;
    const std::int64_t level = std::min(most, pods);
    for (Candidate& one : from) {
      if (pods < level || pods == 0) break;
      if (one.fit < level) continue;
      Take(one.slot, role, level);
      one.fit = 0;
      pods -= level;
    }
  }
  return pods;
}

std::int64_t Board::Search::FillTouchedNodes(const RoleShape& role, std::int64_t pods) {
  std::vector<Candidate> near;
  for (const std::size_t slot : Touched()) {
    if (const std::int64_t fit = Fit(slot, role); fit > 0) near.push_back({slot, fit});
  }
  return Fill(role, pods, std::move(near));
}

// The fullest node that takes all `pods`, ties by name.
bool Board::Search::PlaceOnOneNode(const RoleShape& role, std::int64_t pods) {
  const FreeIndex& nodes = board_.by_free_[topology_.node_level()];
  const std::int64_t devices = SaturatingMultiply(pods, devices_per_pod_);
  std::size_t found = 0;
  const bool any = nodes.Any(devices, [&](std::size_t slot) {
    found = slot;
    return Fit(slot, role) >= pods;
  });
  if (any) Take(found, role, pods);
  return any;
}

bool Board::Search::PlaceAnywhere(const RoleShape& role) {
  std::int64_t pods = role.replicas;
  if (!taken_.empty()) pods = FillTouchedNodes(role, pods);  // fewer nodes in all
  if (pods == 0 || PlaceOnOneNode(role, pods)) return true;
  std::vector<Candidate> all;
  board_.by_free_[topology_.node_level()].Any(devices_per_pod_, [&](std::size_t slot) {
    if (const std::int64_t fit = Fit(slot, role); fit > 0) all.push_back({slot, fit});
    return false;
  });
  return Fill(role, pods, std::move(all)) == 0;
}

std::vector<PodPlacement> Board::Search::Placements() const {
  // Ranks run domain by domain of the narrowest level that has a label, and node by node in it.
  const std::size_t node_level = topology_.node_level();
  const auto place = [&](const Taken& taken) {
    const auto domain = node_level == 0 ? 0 : topology_.DomainOf(node_level - 1, taken.slot);
    return std::tuple(taken.role, domain, taken.slot);
  };
  std::vector<Taken> sorted = taken_;
  std::sort(sorted.begin(), sorted.end(),
            [&](const Taken& a, const Taken& b) { return place(a) < place(b); });
  std::vector<PodPlacement> pods;
  int index = 0;
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    if (i > 0 && sorted[i].role != sorted[i - 1].role) index = 0;
    const NodeName& node = board_.NodeOf(sorted[i].slot).name;
    for (std::int64_t n = 0; n < sorted[i].pods; ++n) {
      pods.push_back(PodPlacement{.role = sorted[i].role, .index = index++, .node = node});
    }
  }
  return pods;
}

}  // namespace bimetal::core::placement
