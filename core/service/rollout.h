#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <vector>

#include "core/model/service.h"

namespace bimetal::core::service {

// A replica that exists: its pod lives, is not being deleted and its node is not lost; or its pod
// has been asked for.
struct Replica {
  int index = 0;            // unique among the service's pods
  std::size_t variant = 0;  // index into Service::variants; over its end where the variant is gone
  bool current = true;      // made as the spec now says
  bool ready = false;
  bool seen = true;  // false: asked for, not shown by the watch yet, so it cannot be drained
};

// A replica that shall be: one entry of the queue.
struct Wish {
  int index = 0;                      // of the replica that it becomes
  std::vector<std::size_t> variants;  // it may become, the best first; never empty
  bool standing = false;              // within the service's minimum: an old claim, never preempted
};

struct Situation {
  std::vector<Replica> replicas;  // any order
  // Indexes that must not be used: those of pods that are being deleted.
  std::set<int> taken;
  // The last scheduling cycle had no place for a wish.
  bool refused = false;
  // True where the wish would get the very place of this replica if that were gone. Proves each
  // replacement before anything is taken down; nothing is replaced where it is empty.
  std::function<bool(const Wish&, const Replica&)> fits_in_place_of;
};

struct Replacement {
  int old_index = 0;  // to be drained
  Wish wish;          // which proved to fit in its place
};

struct Step {
  std::vector<Wish> wishes;            // in the order in which they want a place
  std::vector<int> drain;              // indexes of replicas that are to end
  std::optional<Replacement> replace;  // one more to drain, for a successor
  bool rolling = false;                // replicas of another revision or variant are left
  bool too_small = false;  // the maximums of the variants leave fewer than the wanted ones
};

// What to do next so that the service gets to its replicas: those of an old revision, of a variant
// that is gone or over a variant's maximum are replaced. New ones are wished for while old ones run
// (surge); an old one goes once as many as wanted are ready, or, where no new one found a place,
// when it is proven that one fits in the place of the old. At least `replicas - unavailable` stay
// ready; one that is not ready is the first to go. Pure; the order of the replicas does not matter.
Step NextStep(const Service& service, const Situation& situation);

// Positions in `replicas` that others may preempt now: beyond each variant's minimum, and no more
// than leave `disrupted` of the wanted replicas missing; the youngest index first.
std::vector<std::size_t> Preemptible(const Service& service, const std::vector<Replica>& replicas);

}  // namespace bimetal::core::service
