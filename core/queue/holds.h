#pragma once

#include <optional>
#include <vector>

#include "core/queue/trial.h"

namespace bimetal::core::queue {

// Carries holds from one cycle to the next and makes new ones. Loop thread only.
class HoldKeeper {
 public:
  HoldKeeper(Space& space, const Snapshot& snapshot) : space_(space), snapshot_(snapshot) {}

  // Those of the snapshot, oldest first; of two for one job the first.
  std::vector<Hold> Carried() const;
  // Books the hold again, where it was or, if that has become impossible, where the job would fit
  // with the same tenants gone. nullptr: it is void, because something from outside has changed.
  HeldPlace* Renew(const Hold& hold, const Job& job, int queue);
  // Books what a trial has found.
  HeldPlace& Add(const Job& job, int queue, const Way& way, bool by_eviction);
  // True where the job could start now exactly where it was promised. REQUIRES: !held.booked.
  bool CanStart(const HeldPlace& held) const;
  // What is still held at the end of the cycle, sorted by job.
  std::vector<Hold> Kept() const;

  // All tenants in the order in which they are expected to end, those last of whom nobody knows.
  std::vector<Tenant*> ByEnd();
  // When the last of them has ended; nullopt: unknown.
  std::optional<TimePoint> EndOf(const std::vector<Tenant*>& tenants) const;

 private:
  Space& space_;
  const Snapshot& snapshot_;
};

}  // namespace bimetal::core::queue
