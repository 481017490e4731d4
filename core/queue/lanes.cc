#include "core/queue/lanes.h"

#include <algorithm>

#include "core/model/saturate.h"

namespace bimetal::core::queue {
namespace {

struct LaneKey {
  Vendor vendor = Vendor::kNvidia;
  PoolName pool;
  std::string device_class;
  auto operator<=>(const LaneKey&) const = default;
};

}  // namespace

std::string DeviceClassOn(const Pool& pool, const NodeDevices& devices) {
  std::optional<std::string> common;
  const std::string* model = nullptr;
  for (const Device& device : devices.devices) {
    if (model != nullptr && *model == device.model) continue;  // as a rule all are of one
    model = &device.model;
    std::string one = DeviceClassOf(pool, device.model);
    if (common && *common != one) return std::string(VendorName(pool.vendor));
    common = std::move(one);
  }
  return common.value_or(std::string(VendorName(pool.vendor)));
}

Lanes::Lanes(const Snapshot& snapshot)
    : rooms_(placement::MakeRooms(snapshot.nodes, placement::MakeBooks(snapshot.pods))) {
  std::map<std::pair<Vendor, PoolName>, const Pool*> pools;
  for (const Pool& pool : snapshot.pools) pools.emplace(std::pair(pool.vendor, pool.name), &pool);
  std::map<LaneKey, std::vector<std::size_t>> members;
  for (std::size_t i = 0; i < rooms_.size(); ++i) {
    for (const auto& [vendor, devices] : rooms_[i].node->devices) {
      const auto pool = pools.find({vendor, devices.pool});
      if (pool == pools.end()) continue;
      members[{vendor, devices.pool, DeviceClassOn(*pool->second, devices)}].push_back(i);
    }
  }
  for (const auto& [key, pool] : pools) {  // a pool without nodes has a lane, too
    const auto at = members.lower_bound({key.first, key.second, ""});
    if (at != members.end() && at->first.vendor == key.first && at->first.pool == key.second) {
      continue;
    }
    members[{key.first, key.second, std::string(VendorName(key.first))}];
  }
  for (const Vendor vendor : kVendors) {
    kinds_.push_back({vendor, std::string(VendorName(vendor))});
    by_room_[vendor].resize(rooms_.size(), nullptr);
    by_vendor_[vendor];
  }
  for (const auto& [key, nodes] : members) kinds_.push_back({key.vendor, key.device_class});
  std::sort(kinds_.begin(), kinds_.end());
  kinds_.erase(std::unique(kinds_.begin(), kinds_.end()), kinds_.end());
  for (const auto& [key, nodes] : members) {
    const auto kind =
        std::lower_bound(kinds_.begin(), kinds_.end(), DeviceKind{key.vendor, key.device_class});
    lanes_.push_back(std::make_unique<Lane>(
        key.pool, key.device_class, static_cast<std::size_t>(kind - kinds_.begin()), &rooms_, nodes,
        key.vendor, pools.at({key.vendor, key.pool})->topology_keys));
    by_vendor_[key.vendor].push_back(lanes_.back().get());
    for (const std::size_t room : nodes) by_room_[key.vendor][room] = lanes_.back().get();
  }
}

const std::vector<Lane*>& Lanes::Of(Vendor vendor) const { return by_vendor_.at(vendor); }

Lane* Lanes::On(Vendor vendor, const NodeName& node) const {
  const auto room = std::lower_bound(
      rooms_.begin(), rooms_.end(), node,
      [](const placement::Room& r, const NodeName& name) { return r.node->name < name; });
  if (room == rooms_.end() || room->node->name != node) return nullptr;
  return by_room_.at(vendor)[static_cast<std::size_t>(room - rooms_.begin())];
}

Lane* Lanes::Find(Vendor vendor, const PoolName& pool, const std::string& device_class) const {
  for (Lane* lane : Of(vendor)) {
    if (lane->pool == pool && lane->device_class == device_class) return lane;
  }
  return nullptr;
}

std::size_t Lanes::KindOf(Vendor vendor) const {
  const auto kind = std::lower_bound(kinds_.begin(), kinds_.end(),
                                     DeviceKind{vendor, std::string(VendorName(vendor))});
  return static_cast<std::size_t>(kind - kinds_.begin());
}

FreeByKind Lanes::Free() const {
  FreeByKind free(kinds_.size(), 0);
  for (const auto& lane : lanes_) {
    const std::int64_t here =
        std::max<std::int64_t>(0, lane->board.total_free() - lane->free_out_of_reach);
    free[lane->kind] = SaturatingAdd(free[lane->kind], here);
  }
  return free;
}

FreeByKind Lanes::Usable() const {
  FreeByKind usable(kinds_.size(), 0);
  for (const auto& lane : lanes_) {
    usable[lane->kind] = SaturatingAdd(usable[lane->kind], lane->board.InReach().usable);
  }
  return usable;
}

}  // namespace bimetal::core::queue
