#pragma once

#include <cstddef>
#include <deque>
#include <utility>

#include "operator/writer/write.h"

namespace bimetal::op {

// Writes that wait for their turn. Those that start or end pods go first: devices are held for
// them and nothing runs on these, while a status only tells of it. Of four turns one is for the
// others, so that a long burst of pods does not silence them. In the order of their coming
// otherwise. Not thread-safe.
class WriteQueue {
 public:
  void Push(Write write) { (MovesPods(write) ? pods_ : others_).push_back(std::move(write)); }
  bool empty() const { return pods_.empty() && others_.empty(); }
  std::size_t size() const { return pods_.size() + others_.size(); }
  void Clear() { pods_.clear(), others_.clear(); }

  // Only where it is not empty.
  Write Pop() {
    const bool turn_of_others = turn_++ % 4 == 3;
    const bool others = pods_.empty() || (turn_of_others && !others_.empty());
    auto& queue = others ? others_ : pods_;
    Write write = std::move(queue.front());
    queue.pop_front();
    return write;
  }

 private:
  // Also the Service by which a gang's pods find each other.
  static bool MovesPods(const Write& write) {
    return write.resource == "pods" || write.resource == "services";
  }

  std::deque<Write> pods_, others_;
  std::size_t turn_ = 0;
};

}  // namespace bimetal::op
