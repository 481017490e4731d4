#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/queue/order/backfill.h"
#include "tests/bench/queue/trace.h"

namespace bimetal::bench {

inline constexpr std::int64_t kNodeDevices = 8;

// Up to 8 devices on one node, larger jobs on whole nodes.
core::queue::order::GangShape ShapeOf(const TraceJob& job);

// The nodes of one class of devices, and who is on them. Loop thread only.
class Nodes {
 public:
  struct Share {
    std::size_t job = 0;
    std::int64_t devices = 0;
  };

  explicit Nodes(int count);

  std::size_t size() const { return free_.size(); }
  std::int64_t Free(std::size_t node) const { return free_[node]; }
  const std::vector<Share>& On(std::size_t node) const { return on_[node]; }
  std::int64_t MostFree() const;
  // Best fit, ties by index; empty where it does not fit now.
  std::vector<core::queue::order::Taking> Find(const core::queue::order::GangShape& gang) const;
  // REQUIRES: the devices are free.
  void Take(std::size_t job, const std::vector<core::queue::order::Taking>& taking);
  void Release(std::size_t job, const std::vector<core::queue::order::Taking>& taking);

 private:
  std::vector<std::int64_t> free_;
  std::vector<std::vector<Share>> on_;
};

}  // namespace bimetal::bench
