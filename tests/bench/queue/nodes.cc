#include "tests/bench/queue/nodes.h"

#include <algorithm>
#include <utility>

#include "core/base/result.h"

namespace bimetal::bench {

using core::queue::order::GangShape;
using core::queue::order::Taking;

GangShape ShapeOf(const TraceJob& job) {
  if (job.devices <= kNodeDevices) return {.pods = 1, .devices_per_pod = job.devices};
  return {.pods = (job.devices + kNodeDevices - 1) / kNodeDevices, .devices_per_pod = kNodeDevices};
}

Nodes::Nodes(int count)
    : free_(static_cast<std::size_t>(count), kNodeDevices), on_(static_cast<std::size_t>(count)) {}

std::int64_t Nodes::MostFree() const { return *std::max_element(free_.begin(), free_.end()); }

std::vector<Taking> Nodes::Find(const GangShape& gang) const {
  std::vector<std::pair<std::int64_t, std::size_t>> room;
  for (std::size_t n = 0; n < free_.size(); ++n) {
    if (free_[n] >= gang.devices_per_pod) room.emplace_back(free_[n], n);
  }
  std::sort(room.begin(), room.end());
  std::vector<Taking> taking;
  std::int64_t left = gang.pods;
  for (const auto& [free, node] : room) {
    if (left == 0) break;
    const std::int64_t here = std::min(left, free / gang.devices_per_pod);
    taking.push_back({node, here * gang.devices_per_pod});
    left -= here;
  }
  return left == 0 ? taking : std::vector<Taking>{};
}

void Nodes::Take(std::size_t job, const std::vector<Taking>& taking) {
  for (const Taking& one : taking) {
    BIMETAL_CHECK(free_[one.node] >= one.devices);
    free_[one.node] -= one.devices;
    on_[one.node].push_back({job, one.devices});
  }
}

void Nodes::Release(std::size_t job, const std::vector<Taking>& taking) {
  for (const Taking& one : taking) {
    free_[one.node] += one.devices;
    std::erase_if(on_[one.node], [&](const Share& share) { return share.job == job; });
  }
}

}  // namespace bimetal::bench
