#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/model/fleet.h"
#include "core/model/job.h"
#include "core/placement/books.h"
#include "core/placement/gang.h"

namespace bimetal::core::placement {

// What is left of the nodes beside devices, shared by the boards of both vendors during one cycle.
struct Room {
  const Node* node = nullptr;
  Resources used;
  std::map<Vendor, MilliDevice> held;
};

// Sorted by node name; of two nodes with one name the first counts.
std::vector<Room> MakeRooms(const std::vector<Node>& nodes, const Books& books);

// A fleet that is not the present one, to find out what stands in a gang's way.
struct World {
  bool nobody_holds = false;  // all pods are gone
  bool all_open = false;      // every device has passed and is offered
  bool any_state = false;     // every node is ready, not cordoned and without taints
  bool unlimited = false;     // CPU, memory and pod slots do not matter
};

// The free devices of one vendor's pool, kept up while a cycle assigns. Holds pointers into the
// rooms it was made from and their nodes. Loop thread only.
class Board {
 public:
  // `members` are indexes into `rooms`, ascending.
  Board(std::vector<Room>* rooms, const std::vector<std::size_t>& members, Vendor vendor);

  // A place for the whole gang, or nothing. Changes nothing.
  std::optional<std::vector<PodPlacement>> Find(const Job& job, const Variant& variant);
  // Takes what `pods`, just found, hold.
  void Book(const Job& job, const Variant& variant, const std::vector<PodPlacement>& pods);
  // The present state in another world, with rooms of its own.
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
  // The pool's name; empty where the board has no nodes.
  const PoolName& pool() const { return pool_; }
  Vendor vendor() const { return vendor_; }

 private:
  struct Slot {
    std::size_t room = 0;
    std::int64_t usable = 0, held = 0, free = 0;
  };
  using Mask = std::vector<bool>;  // by slot
  struct RoleShape {
    std::size_t role = 0;
    Resources need;
    std::int64_t replicas = 0;
    const Mask* allowed = nullptr;
  };
  struct Taken {
    std::size_t slot = 0, role = 0;
    std::int64_t pods = 0;
    Resources used_before;
  };

  void Reindex();
  std::int64_t UsableOn(const Node& node) const;
  bool MatchesAll(const Node& node, const Variant& variant) const;
  bool Allows(const Node& node, const Role& role) const;
  const Mask& MatchMask(const Variant& variant);
  const Mask& RoleMask(const Role& role);
  std::int64_t PodsThatFit(std::size_t index, const RoleShape& role) const;
  std::vector<RoleShape> ShapesOf(const Job& job);
  bool TryOrder(const std::vector<RoleShape>& order);
  bool PlaceRole(const RoleShape& role);
  bool PlaceOnOneNode(const RoleShape& role, std::int64_t pods);
  std::int64_t Fill(const RoleShape& role, std::int64_t pods, const std::vector<std::size_t>& from);
  void Take(std::size_t slot, const RoleShape& role, std::int64_t pods);
  void SetHeld(std::size_t slot, std::int64_t held);
  void Undo();
  std::vector<PodPlacement> Placements() const;

  std::vector<Room>* rooms_;
  std::unique_ptr<std::vector<Room>> own_rooms_;  // of another world
  Vendor vendor_;
  World world_;
  PoolName pool_;
  std::vector<Slot> slots_;
  std::set<std::pair<std::int64_t, std::size_t>> by_free_;  // (free, slot), to find the best fit
  std::int64_t total_free_ = 0;
  std::map<std::string, Mask> match_masks_, role_masks_;
  // Of the search under way.
  std::int64_t devices_per_pod_ = 1;
  const Mask* match_ = nullptr;
  std::vector<Taken> taken_;
  std::set<std::size_t> touched_;
};

}  // namespace bimetal::core::placement
