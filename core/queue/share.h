#pragma once

#include <cstdint>
#include <vector>

#include "core/queue/cycle.h"
#include "core/queue/tree.h"

namespace bimetal::core::queue {

// Device-milliseconds of `use` as they weigh at `now` when the past counts half after each
// `half_life`; nothing where half_life is 0. Integer arithmetic, the same on every machine. Pure.
std::int64_t DecayedUse(const PastUse& use, TimePoint now, Millis half_life);

// What one child of a parent has had, over its weight. A child of weight 0 comes after all others.
struct Share {
  std::int64_t value = 0;
  std::int64_t weight = 1;
};
bool operator<(const Share& a, const Share& b);

// The fair shares of a tree's queues: past use with decay plus what they hold now, as if they went
// on holding it. Loop thread only.
class Shares {
 public:
  Shares(const QueueTree& tree, const std::vector<PastUse>& past, TimePoint now);

  // Fair shares are on among the children of `parent` as soon as one of them sets fairShare; the
  // half-life is the longest that one of them sets.
  bool IsOn(int parent) const { return GroupOf(parent).on; }
  // Of a queue with all below it.
  Share Of(int queue) const;
  // Of the jobs that are in `queue` itself, beside its children: weight 1.
  Share OfOwnJobs(int queue) const;

 private:
  struct Group {
    bool on = false;
    Millis half_life;
  };
  const Group& GroupOf(int parent) const;
  std::int64_t Value(std::int64_t past, std::int64_t devices, const Group& group) const;

  const QueueTree& tree_;
  std::vector<Group> groups_;                  // by parent + 1
  std::vector<std::int64_t> past_, own_past_;  // by queue; decayed by the half-life of its group
};

}  // namespace bimetal::core::queue
