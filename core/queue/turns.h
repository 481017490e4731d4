#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/model/job.h"
#include "core/queue/share.h"
#include "core/queue/tree.h"

namespace bimetal::core::queue {

// A job that waits in a line. `order`: its place among all jobs of the cycle, unique.
struct Candidate {
  const Job* job = nullptr;
  std::size_t order = 0;
  int queue = kNoQueue;
  std::string shape;  // jobs of one queue and shape share their fate
};

// Whose turn it is. Each parent lets its children (and the jobs that are in it itself) have turns:
// first whose next job stays within what is guaranteed, then by fair share where that is on, then
// by the order of the next jobs. Loop thread only.
class Turns {
 public:
  Turns(const QueueTree& tree, const Shares& shares, const std::vector<Candidate>& candidates);

  // The next candidate, or nullptr where every line is closed. To be answered with Pass or Close.
  const Candidate* Next();
  // The candidate has left its line; the next of its shape moves up.
  void Pass(const Candidate& candidate);
  // Nobody of its queue and shape gets anything in this cycle.
  void Close(const Candidate& candidate);
  // What the queue holds has changed otherwise.
  void Touch(int queue) { Update(queue); }

 private:
  struct Key {
    bool borrows = false;
    Share share;
    std::size_t order = 0;
  };
  struct Earlier {
    bool operator()(const Key& a, const Key& b) const;
  };
  struct Line {
    std::vector<const Candidate*> jobs;  // ascending
    std::size_t next = 0;
  };
  struct Node {
    std::vector<Line> lines;
    std::set<std::pair<std::size_t, std::size_t>> open;  // (order of the head, line)
    std::set<Key, Earlier> waiting;                      // its own next job and its children's
    std::optional<Key> own, in_parent;                   // as they stand in the sets
  };

  Node& At(int queue) { return nodes_[static_cast<std::size_t>(queue + 1)]; }
  bool Borrows(const Candidate& candidate) const;
  static void Replace(std::set<Key, Earlier>& set, std::optional<Key>* old,
                      const std::optional<Key>& now);
  void Update(int queue);

  const QueueTree& tree_;
  const Shares& shares_;
  std::vector<Node> nodes_;  // by queue + 1; the first is the top
  std::vector<const Candidate*> by_order_;
  std::vector<std::size_t> line_of_;  // by order
};

}  // namespace bimetal::core::queue
