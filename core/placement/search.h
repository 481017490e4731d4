#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/placement/board.h"

namespace bimetal::core::placement {

// One search for a gang's place on a board. It takes what it tries from the board and gives all of
// it back when it ends. Loop thread only.
//
// A gang is placed part by part. Roles that require the same level are one part: they share one
// domain. Every other role is a part of its own. Which domain a Required part gets is searched,
// fullest first; the rest is greedy, in more than one order of the parts.
class Board::Search {
 public:
  Search(Board* board, const Job& job, const Variant& variant);
  ~Search() { UndoTo(0); }
  Search(const Search&) = delete;
  Search& operator=(const Search&) = delete;

  // True where a place was found; it holds its devices until the search ends.
  bool Run();
  std::vector<PodPlacement> Placements() const;

  struct RoleShape {
    std::size_t role = 0;
    Resources need;
    std::int64_t replicas = 0;
    const Mask* allowed = nullptr;
  };
  struct Part {
    std::optional<TopologyMode> mode;  // nullopt: anywhere
    std::size_t level = 0;
    std::vector<RoleShape> roles;
  };
  // In the order in which they are tried first. Empty where a role names an unknown level.
  const std::vector<Part>& parts() const { return parts_; }
  // Pods of the role that fit into a domain now, at most `most`.
  std::int64_t FitIn(std::size_t level, std::size_t domain, const RoleShape& role,
                     std::int64_t most) const;
  // Domains of the level in which a node may take the role's pods, whoever holds its devices.
  std::vector<std::size_t> DomainsFor(std::size_t level, const RoleShape& role) const;

 private:
  struct Taken {
    std::size_t slot = 0, role = 0;
    std::int64_t pods = 0;
    Resources used_before;
  };
  struct Candidate {
    std::size_t slot = 0;
    std::int64_t fit = 0;  // pods
  };
  struct DomainRoom {
    std::size_t domain = 0;
    std::int64_t fit = 0, free = 0;
  };

  bool MakeParts(const Job& job);
  bool TryOrder(const std::vector<Part>& order);
  bool PlaceFrom(const std::vector<Part>& order, std::size_t first);
  bool PlacePart(const Part& part);
  bool PlaceRequired(const std::vector<Part>& order, std::size_t first);
  std::vector<std::size_t> RequiredDomains(const Part& part) const;
  bool PlacePreferred(const RoleShape& role, std::size_t level);
  bool PlaceSpread(const RoleShape& role, std::size_t level);
  bool PlaceAnywhere(const RoleShape& role);
  bool PlaceIn(const RoleShape& role, std::int64_t pods, std::size_t level, std::size_t domain);
  bool FillDomains(const RoleShape& role, std::int64_t pods, std::size_t level,
                   std::vector<DomainRoom> rooms, std::vector<Candidate> homeless);
  bool PlaceOnOneNode(const RoleShape& role, std::int64_t pods);
  std::int64_t FillTouchedNodes(const RoleShape& role, std::int64_t pods);
  std::int64_t FillTouchedDomains(const RoleShape& role, std::int64_t pods, std::size_t level);
  std::int64_t Fill(const RoleShape& role, std::int64_t pods, std::vector<Candidate> from);
  std::vector<Candidate> CandidatesIn(const RoleShape& role, std::size_t level,
                                      std::size_t domain) const;
  std::vector<DomainRoom> RoomsIn(const RoleShape& role, std::size_t level, std::size_t outer,
                                  std::size_t outer_domain, std::vector<Candidate>* homeless) const;
  std::vector<std::size_t> Touched() const;
  std::int64_t Fit(std::size_t slot, const RoleShape& role) const;
  bool MayTake(std::size_t slot, const RoleShape& role) const;
  void Take(std::size_t slot, const RoleShape& role, std::int64_t pods);
  void UndoTo(std::size_t mark);

  Board& board_;
  const Topology& topology_;
  std::int64_t devices_per_pod_;
  const Mask& match_;
  std::vector<Part> parts_;
  std::vector<Taken> taken_;
  int tries_ = 0;  // domains of Required parts that may still be tried
};

}  // namespace bimetal::core::placement
