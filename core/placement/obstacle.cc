#include "core/placement/obstacle.h"

#include <algorithm>

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
  return text.empty() ? "any model" : text;
}

}  // namespace

bool Explainer::FitsIn(OtherWorld& other, const Job& job, const Variant& variant) {
  if (!other.board) other.board.emplace(board_->Under(other.world));
  return other.board->Find(job, variant).has_value();
}

// From what only a person can change to what passes by itself. What running jobs will release
// comes before validation: jobs end, while a shut device may stay shut.
Obstacle Explainer::ObstacleFor(const Job& job, const Variant& variant) {
  if (!board_->HasDeviceFor(variant)) return Obstacle::kNoMatchingDevice;
  if (!CouldEverFit(job, variant)) return Obstacle::kExceedsCapacity;
  if (FitsIn(released_, job, variant)) {
    return FitsIn(unlimited_, job, variant) ? Obstacle::kWaitingForNodeCapacity
                                            : Obstacle::kWaitingForDevices;
  }
  if (FitsIn(open_, job, variant)) return Obstacle::kWaitingForValidation;
  if (FitsIn(released_open_, job, variant)) return Obstacle::kWaitingForDevices;
  return Obstacle::kWaitingForNodeCapacity;
}

std::string Explainer::CapacityRemedy(const GangResult& result, const Job& job,
                                      const Variant& variant) {
  const std::string& pool = board_->pool().value;
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
