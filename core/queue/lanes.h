#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/placement/board.h"
#include "core/placement/obstacle.h"
#include "core/queue/cycle.h"
#include "core/queue/tree.h"

namespace bimetal::core::queue {

// The nodes of one pool whose devices are of one class: where a gang is placed whole. Capacity only
// shrinks while a cycle gives devices away, so a shape that did not fit once is not tried again.
struct Lane {
  Lane(PoolName pool_name, std::string class_name, std::size_t kind_index,
       std::vector<placement::Room>* rooms, const std::vector<std::size_t>& members, Vendor vendor,
       const std::vector<std::string>& topology_keys)
      : pool(std::move(pool_name)),
        device_class(std::move(class_name)),
        kind(kind_index),
        board(rooms, members, vendor, topology_keys),
        explainer(&board),
        free_out_of_reach(board.total_free() - board.InReach().free) {}

  PoolName pool;
  std::string device_class;
  std::size_t kind;
  placement::Board board;
  placement::Explainer explainer;
  std::int64_t free_out_of_reach;
  std::set<std::string> refused;                           // shapes
  std::map<std::string, bool> possible;                    // shape -> CouldEverFit
  std::map<std::string, placement::GangResult> explained;  // shape -> why not, after the decisions
};

// The class of the devices that `pool` has on a node: that of all of them, or, where they differ,
// the one that is named like the vendor. Pure.
std::string DeviceClassOn(const Pool& pool, const NodeDevices& devices);

// All lanes of a snapshot with what its pods hold. Keeps pointers into the snapshot. Loop thread
// only.
class Lanes {
 public:
  explicit Lanes(const Snapshot& snapshot);
  Lanes(const Lanes&) = delete;
  Lanes& operator=(const Lanes&) = delete;

  // Those of a vendor, by pool and class.
  const std::vector<Lane*>& Of(Vendor vendor) const;
  // The lane that `vendor`'s devices on `node` belong to; nullptr: none.
  Lane* On(Vendor vendor, const NodeName& node) const;
  Lane* Find(Vendor vendor, const PoolName& pool, const std::string& device_class) const;
  const std::vector<DeviceKind>& kinds() const { return kinds_; }
  // The kind that is named like the vendor.
  std::size_t KindOf(Vendor vendor) const;
  FreeByKind Free() const;
  // Usable devices in reach, by kind, whoever holds them.
  FreeByKind Usable() const;

 private:
  std::vector<placement::Room> rooms_;
  std::vector<DeviceKind> kinds_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::map<Vendor, std::vector<Lane*>> by_vendor_;
  std::map<Vendor, std::vector<Lane*>> by_room_;  // as rooms_
};

}  // namespace bimetal::core::queue
