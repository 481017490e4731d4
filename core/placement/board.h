#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/model/fleet.h"
#include "core/model/job.h"
#include "core/placement/books.h"
#include "core/placement/free_index.h"
#include "core/placement/gang.h"
#include "core/placement/topology.h"

namespace bimetal::core::placement {

// What is left of the nodes beside devices, shared by the boards of both vendors during one cycle.
struct Room {
  const Node* node = nullptr;
  Resources used;
  std::map<Vendor, MilliDevice> held;
};

// Sorted by node name; of two nodes with one name the first counts.
std::vector<Room> MakeRooms(const std::vector<Node>& nodes, Books books);

// A fleet that is not the present one, to find out what stands in a gang's way.
struct World {
  bool nobody_holds = false;  // all pods are gone
  bool all_open = false;      // every device has passed and is offered
  bool any_state = false;     // every node is ready, not cordoned and without taints
  bool unlimited = false;     // CPU, memory and pod slots do not matter
  bool anywhere = false;      // topology does not matter
};

// The free devices of one vendor's pool, kept up while a cycle assigns. Holds pointers into the
// rooms it was made from and their nodes. Loop thread only.
class Board {
 public:
  // `members` are indexes into `rooms`, ascending; `topology_keys` are labels, widest first.
  Board(std::vector<Room>* rooms, const std::vector<std::size_t>& members, Vendor vendor,
        const std::vector<std::string>& topology_keys = {});

  // A place for the whole gang, or nothing. Changes nothing.
  std::optional<std::vector<PodPlacement>> Find(const Job& job, const Variant& variant);
  // Takes what `pods`, just found, hold.
  void Book(const Job& job, const Variant& variant, const std::vector<PodPlacement>& pods);
  // Books more on one node, or less where the amounts are negative, whoever it is for. Nothing
  // where the node is not on the board.
  void Shift(const NodeName& node, std::int64_t devices, const Resources& requests);
  // True where all of `pods` could stand where they say, together. Changes nothing.
  bool CanHold(const Job& job, const Variant& variant, const std::vector<PodPlacement>& pods);
  // True where more is booked on the node than it has.
  bool IsOverbooked(const NodeName& node) const;
  // Usable devices that nobody holds, and all usable ones, on nodes that are ready and not
  // cordoned.
  struct Sum {
    std::int64_t free = 0, usable = 0;
  };
  Sum InReach() const;
  // Free devices of all nodes, in reach or not.
  std::int64_t total_free() const { return total_free_; }
  // The present state in another world, with rooms of its own; World{} makes a copy to try on.
  Board Under(const World& world) const;

  // True where some device, whatever its state, is what `variant` asks for.
  bool HasDeviceFor(const Variant& variant) const;
  // Free usable devices on ready, uncordoned nodes whose devices are what `variant` asks for.
  std::int64_t FreeFor(const Variant& variant);
  // Nodes on which a pod of `job` finds its devices free and still cannot go, by cause, as text:
  // "1 cordoned, 2 short of CPU". Empty where there is none.
  std::string CausesOnFreeNodes(const Job& job, const Variant& variant);
  // All devices of nodes that suit the variant, and the most that one node has.
  struct Size {
    std::int64_t total = 0, largest_node = 0;
  };
  Size SizeFor(const Variant& variant);
  // The part of a job's topology that comes least close to a place: which pods, which level, the
  // best domain. Levels that the pool does not have are passed over; nullopt: the job has no wish
  // that could fail.
  struct TopologyGap {
    std::string roles;            // "worker" or "leader and worker"
    std::string level;            // its name
    std::string best;             // the domain with the most room; empty where the level has none
    std::int64_t need = 0;        // pods that must go into one domain (Spread: of all domains)
    std::int64_t room = 0;        // pods that fit there now
    std::int64_t unlabelled = 0;  // nodes in no domain of the level
    bool spread = false;
    std::int64_t share = 0;  // Spread: the most pods in one domain
  };
  std::optional<TopologyGap> GapFor(const Job& job, const Variant& variant);
  const Topology& topology() const { return *topology_; }

  // The pool's name; empty where the board has no nodes.
  const PoolName& pool() const { return pool_; }
  Vendor vendor() const { return vendor_; }

 private:
  class Search;
  struct Slot {
    std::size_t room = 0;
    std::int64_t usable = 0, held = 0, free = 0;
  };
  using Mask = std::vector<bool>;  // by slot
  const Node& NodeOf(std::size_t slot) const { return *(*rooms_)[slots_[slot].room].node; }
  std::optional<std::size_t> SlotOf(const NodeName& node) const;
  void Reindex();
  void SetHeld(std::size_t slot, std::int64_t held);
  std::int64_t UsableOn(const Node& node) const;
  bool MatchesAll(const Node& node, const Variant& variant) const;
  bool Allows(const Node& node, const Role& role) const;
  const Mask& MatchMask(const Variant& variant);
  const Mask& RoleMask(const Role& role);

  std::vector<Room>* rooms_;
  std::unique_ptr<std::vector<Room>> own_rooms_;  // of another world
  Vendor vendor_;
  World world_;
  PoolName pool_;
  std::vector<Slot> slots_;
  std::shared_ptr<const Topology> topology_;     // its nodes are the slots
  std::vector<std::vector<std::int64_t>> free_;  // by level and domain; nodes: in slots_
  std::vector<FreeIndex> by_free_;               // by level, of domains
  std::int64_t total_free_ = 0;
  std::map<std::string, Mask> match_masks_, role_masks_;
};

}  // namespace bimetal::core::placement
