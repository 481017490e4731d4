// The part of the search that knows of domains.
#include <algorithm>
#include <map>
#include <utility>

#include "core/model/saturate.h"
#include "core/placement/search.h"

namespace bimetal::core::placement {

std::vector<Board::Search::Candidate> Board::Search::CandidatesIn(const RoleShape& role,
                                                                  std::size_t level,
                                                                  std::size_t domain) const {
  std::vector<Candidate> out;
  for (const std::size_t slot : topology_.NodesOf(level, domain)) {
    if (const std::int64_t fit = Fit(slot, role); fit > 0) out.push_back({slot, fit});
  }
  return out;
}

// Puts all `pods` into a domain: on nodes that the gang has already, then on the fullest node that
// takes the rest, then on as few as possible.
bool Board::Search::PlaceIn(const RoleShape& role, std::int64_t pods, std::size_t level,
                            std::size_t domain) {
  if (!taken_.empty()) {
    std::vector<Candidate> near;
    for (const std::size_t slot : Touched()) {
      if (topology_.DomainOf(level, slot) != domain) continue;
      if (const std::int64_t fit = Fit(slot, role); fit > 0) near.push_back({slot, fit});
    }
    pods = Fill(role, pods, std::move(near));
  }
  return pods == 0 || Fill(role, pods, CandidatesIn(role, level, domain)) == 0;
}

// Domains with enough free devices for all roles of a Required part: those that the gang is in
// already, then the fullest first.
std::vector<std::size_t> Board::Search::RequiredDomains(const Part& part) const {
  std::int64_t pods = 0;
  for (const RoleShape& role : part.roles) pods = SaturatingAdd(pods, role.replicas);
  std::vector<std::size_t> domains;
  board_.by_free_[part.level].Any(SaturatingMultiply(pods, devices_per_pod_),
                                  [&](std::size_t domain) {
                                    domains.push_back(domain);
                                    return false;
                                  });
  if (!taken_.empty()) {
    std::vector<std::size_t> near;
    for (const std::size_t slot : Touched()) near.push_back(topology_.DomainOf(part.level, slot));
    std::sort(near.begin(), near.end());
    std::stable_partition(domains.begin(), domains.end(), [&](std::size_t domain) {
      return std::binary_search(near.begin(), near.end(), domain);
    });
  }
  return domains;
}

bool Board::Search::PlaceRequired(const std::vector<Part>& order, std::size_t first) {
  const Part& part = order[first];
  const std::size_t mark = taken_.size();
  for (const std::size_t domain : RequiredDomains(part)) {
    const bool has_room = std::all_of(part.roles.begin(), part.roles.end(), [&](const auto& role) {
      return FitIn(part.level, domain, role, role.replicas) >= role.replicas;
    });
    if (!has_room) continue;
    if (tries_-- <= 0) return false;
    const bool placed = std::all_of(part.roles.begin(), part.roles.end(), [&](const auto& role) {
      return PlaceIn(role, role.replicas, part.level, domain);
    });
    if (placed && PlaceFrom(order, first + 1)) return true;
    UndoTo(mark);
  }
  return false;
}

// The domains of `level` inside a wider domain, with room for the role; nodes in none go to
// `homeless`.
std::vector<Board::Search::DomainRoom> Board::Search::RoomsIn(
    const RoleShape& role, std::size_t level, std::size_t outer, std::size_t outer_domain,
    std::vector<Candidate>* homeless) const {
  std::map<std::size_t, DomainRoom> rooms;
  for (const std::size_t slot : topology_.NodesOf(outer, outer_domain)) {
    const std::int64_t fit = Fit(slot, role);
    if (fit == 0) continue;
    const auto domain = topology_.DomainOf(level, slot);
    if (domain == Topology::kNowhere) {
      homeless->push_back({slot, fit});
      continue;
    }
    DomainRoom& room = rooms[domain];
    room.domain = domain;
    room.fit += fit;
    room.free = board_.free_[level][domain];
  }
  std::vector<DomainRoom> out;
  for (const auto& [domain, room] : rooms) out.push_back(room);
  return out;
}

// Puts `pods` into as few of the domains as possible: the roomiest first, the rest into the fullest
// that takes it; what is left over to nodes in no domain.
bool Board::Search::FillDomains(const RoleShape& role, std::int64_t pods, std::size_t level,
                                std::vector<DomainRoom> rooms, std::vector<Candidate> homeless) {
  std::sort(rooms.begin(), rooms.end(), [](const DomainRoom& a, const DomainRoom& b) {
    return std::pair(-a.fit, a.domain) < std::pair(-b.fit, b.domain);
  });
  for (auto at = rooms.begin(); at != rooms.end() && pods > 0; ++at) {
    if (at->fit < pods) {
      if (!PlaceIn(role, at->fit, level, at->domain)) return false;
      pods -= at->fit;
      continue;
    }
    const auto smaller =
        std::find_if(at, rooms.end(), [&](const DomainRoom& room) { return room.fit < pods; });
    const auto fullest = std::min_element(at, smaller, [](const auto& a, const auto& b) {
      return std::pair(a.free, a.domain) < std::pair(b.free, b.domain);
    });
    return PlaceIn(role, pods, level, fullest->domain);
  }
  return pods == 0 || Fill(role, pods, std::move(homeless)) == 0;
}

// What fits into domains of the level that the gang is in already, the roomiest first.
std::int64_t Board::Search::FillTouchedDomains(const RoleShape& role, std::int64_t pods,
                                               std::size_t level) {
  std::vector<DomainRoom> near;
  for (const std::size_t slot : Touched()) {
    const auto domain = topology_.DomainOf(level, slot);
    if (domain != Topology::kNowhere) near.push_back({.domain = domain, .fit = 0, .free = 0});
  }
  const auto by_domain = [](const auto& a, const auto& b) { return a.domain < b.domain; };
  const auto same = [](const auto& a, const auto& b) { return a.domain == b.domain; };
  std::sort(near.begin(), near.end(), by_domain);
  near.erase(std::unique(near.begin(), near.end(), same), near.end());
  std::int64_t room = 0;
  for (DomainRoom& one : near) {
    one.fit = FitIn(level, one.domain, role, pods);
    one.free = board_.free_[level][one.domain];
    room += one.fit;
  }
  const std::int64_t here = std::min(room, pods);
  return here > 0 && FillDomains(role, here, level, std::move(near), {}) ? pods - here : pods;
}

// Into as few domains as possible: all into the fullest that takes all; else the domains of the
// narrowest wider level that does, and so on, up to the whole pool.
bool Board::Search::PlacePreferred(const RoleShape& role, std::size_t level) {
  if (level == topology_.node_level()) return PlaceAnywhere(role);
  std::int64_t pods = role.replicas;
  if (!taken_.empty()) {
    pods = FillTouchedNodes(role, pods);
    if (pods > 0) pods = FillTouchedDomains(role, pods, level);
    if (pods == 0) return true;
  }
  const std::int64_t devices = SaturatingMultiply(pods, devices_per_pod_);
  for (std::size_t wider = level + 1; wider-- > 0;) {
    std::size_t domain = 0;
    const bool any = board_.by_free_[wider].Any(devices, [&](std::size_t one) {
      domain = one;
      return FitIn(wider, one, role, pods) >= pods;
    });
    if (!any) continue;
    if (wider == level) return PlaceIn(role, pods, level, domain);
    std::vector<Candidate> homeless;
    auto rooms = RoomsIn(role, level, wider, domain, &homeless);
    return FillDomains(role, pods, level, std::move(rooms), std::move(homeless));
  }
  std::vector<DomainRoom> rooms;
  for (std::size_t domain = 0; domain < topology_.DomainsIn(level); ++domain) {
    const std::int64_t free = board_.free_[level][domain];
    if (free < devices_per_pod_) continue;
    if (const auto fit = FitIn(level, domain, role, pods); fit > 0) {
      rooms.push_back({.domain = domain, .fit = fit, .free = free});
    }
  }
  auto homeless = CandidatesIn(role, level, topology_.DomainsIn(level));
  return FillDomains(role, pods, level, std::move(rooms), std::move(homeless));
}

std::vector<std::size_t> Board::Search::DomainsFor(std::size_t level, const RoleShape& role) const {
  std::vector<std::size_t> domains;
  for (std::size_t domain = 0; domain < topology_.DomainsIn(level); ++domain) {
    const auto nodes = topology_.NodesOf(level, domain);
    const bool usable = std::any_of(nodes.begin(), nodes.end(), [&](std::size_t slot) {
      return board_.slots_[slot].usable >= devices_per_pod_ && MayTake(slot, role);
    });
    if (usable) domains.push_back(domain);
  }
  return domains;
}

// As evenly as the free devices allow, and never more than an even share in one domain. The domains
// with the least room are served first, so that what they lack falls on those with more.
bool Board::Search::PlaceSpread(const RoleShape& role, std::size_t level) {
  std::vector<DomainRoom> rooms;
  for (const std::size_t domain : DomainsFor(level, role)) {
    rooms.push_back(
        {.domain = domain, .fit = FitIn(level, domain, role, role.replicas), .free = 0});
  }
  if (rooms.empty()) return false;
  const auto count = static_cast<std::int64_t>(rooms.size());
  const std::int64_t bound = (role.replicas + count - 1) / count;
  std::sort(rooms.begin(), rooms.end(), [](const DomainRoom& a, const DomainRoom& b) {
    return std::pair(a.fit, b.domain) < std::pair(b.fit, a.domain);
  });
  std::int64_t pods = role.replicas, left = count;
  for (const DomainRoom& room : rooms) {
    const std::int64_t share = std::min(room.fit, pods / left);
    --left;
    pods -= share;
    if (share > bound || (left == 0 && pods > 0)) return false;
    if (share > 0 && !PlaceIn(role, share, level, room.domain)) return false;
  }
  return true;
}

}  // namespace bimetal::core::placement
