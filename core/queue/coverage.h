#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "core/queue/rank.h"
#include "core/queue/tree.h"

namespace bimetal::core::queue {

// A job that holds devices, or is about to.
struct Claim {
  Rank rank;
  int queue = kNoQueue;
  std::size_t kind = 0;
  std::int64_t devices = 0;
};

// Under nobody's guaranteed quota: what it holds is borrowed.
inline constexpr int kUncovered = 1 << 20;

// Which claims lie within what is guaranteed. In rounds: the first lets each job, in the order of
// ranks, have what its own queue guarantees, as long as it lasts; the next ones what the queues
// above guarantee and jobs covered so far have left. Queues of different roots have nothing in
// common here.
//
// This is what evictions are measured by, and why they come to an end. Let C be the list of who is
// covered, first by round and then by rank, and R the list of who holds devices, by rank; compare
// (C, R) from the left. A job that starts beside the others makes it greater: if it is covered in
// round k nothing before its place in round k changes, else C does not change and R gains. A job
// that takes back what is guaranteed is covered and evicts none but uncovered jobs, which do not
// count in C. A job that evicts lower ranks of its queue evicts either uncovered ones, or, covered
// in round k itself, also those of round k and after, which come after it in C. So (C, R) grows
// with every decision, and there are finitely many of them until something from outside changes.
class Coverage {
 public:
  // `tree` is borrowed. Every claim has a queue.
  Coverage(const QueueTree& tree, std::vector<Claim> claims);
  Coverage(const Coverage&) = delete;
  Coverage& operator=(const Coverage&) = delete;

  // By index of the claims: the round (0: its own queue), or kUncovered.
  const std::vector<int>& rounds() const { return rounds_; }
  // The round in which `claim` would be covered beside the others.
  int RoundWith(const Claim& claim) const;

 private:
  class Rounds;

  const QueueTree& tree_;
  std::vector<Claim> claims_;
  std::map<int, std::vector<const Claim*>> by_root_;  // by rank
  std::vector<int> rounds_;
  std::vector<std::size_t>
      first_line_;  // by queue: its first line among those of all; then the sum
};

}  // namespace bimetal::core::queue
