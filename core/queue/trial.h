#pragma once

#include <optional>
#include <vector>

#include "core/queue/space.h"

namespace bimetal::core::queue {

// A place for a job that comes free when some tenants go.
struct Way {
  Lane* lane = nullptr;
  std::size_t variant = 0;
  std::vector<placement::PodPlacement> pods;
  std::vector<Tenant*> leavers;  // none can be spared
};

// Finds a place in `lane` for the whole gang with as short a head of `candidates` gone as will do
// (the dearest last), then puts back every one whose place is not needed, the dearest first. Quotas
// count, too: with the leavers gone the queue may have what the job needs. Leaves `space` as it
// was. nullopt: not even with all of them gone.
std::optional<Way> FindWay(Space& space, const Job& job, std::size_t variant, Lane& lane, int queue,
                           const std::vector<Tenant*>& candidates);

}  // namespace bimetal::core::queue
