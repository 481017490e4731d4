#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "core/queue/coverage.h"
#include "core/queue/trial.h"

namespace bimetal::core::queue {

// Device-milliseconds that are lost when the tenant goes now: since its last checkpoint, or since
// it started. Pure.
std::int64_t LostBy(const Running& running, TimePoint now);

// When the tenant is expected to have ended: as estimated, or, where that has passed or nobody
// estimated, at the end of its maximum duration. nullopt: unknown.
std::optional<TimePoint> ExpectedEnd(const Running& running, TimePoint now);
// When it has ended at the latest.
std::optional<TimePoint> LatestEnd(const Running& running);

// Chooses whom a waiting job may push out, by the policies of the queues and the rule of
// queue/coverage.h. Loop thread only.
class Preemption {
 public:
  Preemption(Space& space, const Snapshot& snapshot);

  bool MayEvict(const Job& job, int queue) const;
  // The way into `lane` that costs least there: those that are leaving anyway first, then victims
  // in order of what is lost. nullopt: none.
  std::optional<Way> FindVictims(const Job& job, std::size_t variant, Lane& lane, int queue);
  // Device-milliseconds lost by the leavers that are not leaving already.
  std::int64_t CostOf(const Way& way) const;
  // The tenant has been told to go.
  void Evicted(Tenant& tenant);

 private:
  const Coverage& CoverageNow();
  // `covered`, `own`: the rounds of the tenant, which is not leaving, and of the job if it ran.
  bool IsVictim(const Tenant& tenant, int covered, const Job& job, int queue, int own) const;
  std::vector<Tenant*> CandidatesFor(const Job& job, int queue, std::size_t kind,
                                     std::int64_t devices);

  Space& space_;
  const Snapshot& snapshot_;
  std::optional<Coverage> coverage_;
  std::int64_t coverage_of_ = 0;           // of these changes of the space
  std::vector<std::size_t> claim_of_;      // in it, by tenant; of those that count
  std::map<int, std::int64_t> evictions_;  // by queue of the victims, in the last hour
};

}  // namespace bimetal::core::queue
