#include "core/placement/obstacle.h"

#include <algorithm>

#include "core/base/result.h"

namespace bimetal::core::placement {
namespace {

std::string Count(std::int64_t n, const std::string& one, const std::string& many) {
  return std::to_string(n) + " " + (n == 1 ? one : many);
}

std::string Asked(const Variant& variant) {
  std::string text;
  for (const std::string& model : variant.models) text += (text.empty() ? "" : " or ") + model;
  if (variant.min_memory_bytes) {
    text += (text.empty() ? "" : ", ") + std::string("at least ") +
            std::to_string(*variant.min_memory_bytes) + " bytes of known memory";
  }
  for (const std::string& precision : variant.precisions) {
    text += (text.empty() ? "" : ", ") + precision + " proven";
  }
  if (variant.min_validation_level > 0) {
    text += (text.empty() ? "L" : ", L") + std::to_string(variant.min_validation_level) + " passed";
  }
  return text.empty() ? "any model" : text;
}

// "that one bimetal.dev/rack has room for all 8 pods of worker (r3 comes closest: room for 5)".
std::string Wish(const Board::TopologyGap& gap) {
  const std::string pods = Count(gap.need, "pod of ", "pods of ") + gap.roles;
  const std::string unlabelled =
      gap.unlabelled == 0 ? "" : ", " + Count(gap.unlabelled, "node is", "nodes are") + " in none";
  if (gap.spread) {
    return "every " + gap.level + " has room for its share of the " + pods + ", at most " +
           std::to_string(gap.share) + " in each (now " + std::to_string(gap.room) + " fit" +
           unlabelled + ")";
  }
  return "one " + gap.level + " has room for all " + pods + " (" +
         (gap.best.empty() ? "there is none"
                           : gap.best + " comes closest with " + std::to_string(gap.room)) +
         unlabelled + ")";
}

// The first role whose level the pool does not have; nullptr where there is none.
const Role* UnknownLevel(const Job& job, const Topology& topology) {
  for (const Role& role : job.roles) {
    if (role.topology && !topology.Find(role.topology->level)) return &role;
  }
  return nullptr;
}

}  // namespace

// True where the empty pool could hold the gang, and would, if all its nodes had their labels.
bool Explainer::LacksLabels(const Job& job, const Variant& variant) {
  if (!FitsIn(full_anywhere_, job, variant)) return false;
  const auto gap = full_.board->GapFor(job, variant);
  return gap && gap->unlabelled > 0;
}

bool Explainer::FitsIn(OtherWorld& other, const Job& job, const Variant& variant) {
  if (!other.board) other.board.emplace(board_->Under(other.world));
  return other.board->Find(job, variant).has_value();
}

// From what only a person can change to what passes by itself. What running jobs will release
// comes before validation: jobs end, while a shut device may stay shut.
Obstacle Explainer::ObstacleFor(const Job& job, const Variant& variant) {
  if (!board_->HasDeviceFor(variant)) return Obstacle::kNoMatchingDevice;
  if (UnknownLevel(job, board_->topology()) != nullptr) return Obstacle::kUnknownTopology;
  if (!CouldEverFit(job, variant)) {
    return LacksLabels(job, variant) ? Obstacle::kUnknownTopology : Obstacle::kExceedsCapacity;
  }
  if (FitsIn(released_, job, variant)) {
    if (FitsIn(unlimited_, job, variant)) return Obstacle::kWaitingForNodeCapacity;
    return FitsIn(anywhere_, job, variant) ? Obstacle::kWaitingForTopology
                                           : Obstacle::kWaitingForDevices;
  }
  if (FitsIn(open_, job, variant)) return Obstacle::kWaitingForValidation;
  if (FitsIn(released_open_, job, variant)) return Obstacle::kWaitingForDevices;
  return Obstacle::kWaitingForNodeCapacity;
}

std::string Explainer::CapacityRemedy(const GangResult& result, const Job& job,
                                      const Variant& variant) {
  const std::string& pool = board_->pool().value;
  if (FitsIn(full_anywhere_, job, variant)) {
    if (const auto gap = full_.board->GapFor(job, variant)) {
      return "pool " + pool + " gets nodes so that " + Wish(*gap) +
             ", or the topology that its roles ask for is wider or Preferred";
    }
  }
  const bool fits_but_for_nodes = FitsIn(full_unlimited_, job, variant);  // makes the board
  const Board::Size size = full_unlimited_.board->SizeFor(variant);
  if (size.total < result.need) {
    return "pool " + pool + " grows from " + std::to_string(size.total) + " to " +
           std::to_string(result.need) + " such devices, or the job asks for fewer";
  }
  if (size.largest_node < variant.devices_per_pod) {
    return "pool " + pool + " gets nodes with " + std::to_string(variant.devices_per_pod) +
           " such devices each (the largest has " + std::to_string(size.largest_node) +
           "), or its pods ask for fewer";
  }
  if (fits_but_for_nodes) {
    return "its pods ask for less CPU or memory, or the nodes of pool " + pool + " offer more";
  }
  return "its pods ask for fewer devices each, or pool " + pool +
         " gets more nodes that its node selectors allow";
}

std::string Explainer::UnknownLevelRemedy(const Job& job, const Variant& variant) {
  const std::string& pool = board_->pool().value;
  if (const Role* role = UnknownLevel(job, board_->topology())) {
    return "pool " + pool + " names " + role->topology->level + " in its topologyKeys, or role " +
           role->name + " asks for a level that it has (" + board_->topology().Names() + ")";
  }
  const auto gap = full_.board->GapFor(job, variant);
  BIMETAL_CHECK(gap.has_value());  // LacksLabels has seen it
  return "nodes of pool " + pool + " get the label " + gap->level +
         " and those of the wider levels, so that " + Wish(*gap);
}

std::string Explainer::RemedyFor(const GangResult& result, const Job& job, const Variant& variant) {
  const std::string& pool = board_->pool().value;
  const std::int64_t missing = result.need - result.free;
  switch (result.obstacle) {
    case Obstacle::kNone:
      return "";
    case Obstacle::kNoMatchingDevice:
      return "pool " + pool + " gets devices that match (" + Asked(variant) + ")";
    case Obstacle::kExceedsCapacity:
      return CapacityRemedy(result, job, variant);
    case Obstacle::kWaitingForValidation: {
      const std::int64_t shut = open_.board->FreeFor(variant) - result.free;
      return Count(std::max<std::int64_t>(missing, 1), "more device", "more devices") +
             " of pool " + pool + " pass validation (" + std::to_string(shut) + " are shut)";
    }
    case Obstacle::kWaitingForDevices:
      if (missing > 0) {
        return Count(missing, "more device", "more devices") + " of pool " + pool +
               (missing == 1 ? " is released" : " are released");
      }
      return "devices of pool " + pool + " are released so that nodes have " +
             std::to_string(variant.devices_per_pod) + " free each";
    case Obstacle::kUnknownTopology:
      return UnknownLevelRemedy(job, variant);
    case Obstacle::kWaitingForTopology:
      if (const auto gap = board_->GapFor(job, variant)) {
        return "devices of pool " + pool + " are released so that " + Wish(*gap);
      }
      return "devices of pool " + pool + " are released so that they suit its topology";
    case Obstacle::kWaitingForNodeCapacity: {
      const std::string causes = board_->CausesOnFreeNodes(job, variant);
      return "nodes of pool " + pool + " with free devices can take its pods" +
             (causes.empty() ? "" : " (now " + causes + ")");
    }
  }
  return "";
}

GangResult Explainer::Explain(const Job& job, const Variant& variant) {
  GangResult result;
  result.need = DevicesNeeded(job, variant);
  result.free = board_->FreeFor(variant);
  result.obstacle = ObstacleFor(job, variant);
  result.unblocked_by = RemedyFor(result, job, variant);
  return result;
}

}  // namespace bimetal::core::placement
