#include "core/placement/gang.h"

#include <numeric>
#include <utility>

#include "core/placement/board.h"
#include "core/placement/obstacle.h"

namespace bimetal::core::placement {

GangResult PlaceGang(const Job& job, const Variant& variant, const std::vector<Node>& nodes,
                     const Books& books, const std::vector<std::string>& topology_keys) {
  std::vector<Room> rooms = MakeRooms(nodes, books);
  std::vector<std::size_t> members(rooms.size());
  std::iota(members.begin(), members.end(), std::size_t{0});
  Board board(&rooms, members, variant.vendor, topology_keys);
  if (auto pods = board.Find(job, variant)) {
    GangResult result;
    result.need = DevicesNeeded(job, variant);
    result.free = board.FreeFor(variant);
    result.pods = std::move(*pods);
    return result;
  }
  return Explainer(&board).Explain(job, variant);
}

}  // namespace bimetal::core::placement
