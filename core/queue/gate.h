#pragma once

#include <map>
#include <optional>
#include <string>

#include "core/queue/space.h"

namespace bimetal::core::queue {

// Why a whole job may not stand in line.
struct WholeRefusal {
  std::string reason, message;
  bool never = false;
};

// What the queue says of the job before any device is looked at: it does not exist (kNoQueue),
// takes no part, is not open to the namespace, is stopped, or allows no job that runs so long.
// Pure.
std::optional<WholeRefusal> RefusedByQueue(
    const Job& job, int queue, const QueueTree& tree,
    const std::map<std::string, std::map<std::string, std::string>>& namespaces);

// Since when the job waits for its next start. Pure.
TimePoint WaitsSince(const Job& job);

// True where the job may use its variant by now: the first at any time, the others, where it names
// a fallbackAfter, when it has waited that long. Pure.
bool MayUse(const Job& job, std::size_t variant, TimePoint now);

// What the job that goes is told. Pure.
std::string EvictionMessage(const Job& successor, const Queue& queue, const Tenant& victim);

}  // namespace bimetal::core::queue
