#include "tests/bench/loop/stock.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

namespace bimetal::bench {
namespace {

struct Pod {
  std::size_t gang = 0;
  double bound = 0;
  std::size_t node = 0;
};

// The fullest node with room; the count of nodes where none has.
std::size_t NodeFor(const std::vector<int>& free, int devices) {
  std::size_t best = free.size();
  for (std::size_t n = 0; n < free.size(); ++n) {
    if (free[n] >= devices && (best == free.size() || free[n] < free[best])) best = n;
  }
  return best;
}

}  // namespace

StockOutcome RunStock(const std::vector<int>& nodes, int devices,
                      const std::vector<StockGang>& gangs, double bind) {
  StockOutcome out;
  out.started.assign(gangs.size(), -1);
  std::vector<std::vector<int>> free;
  for (const int count : nodes) free.emplace_back(count, devices);
  std::vector<std::size_t> waiting;  // one entry a pod: its gang
  std::vector<std::vector<Pod>> placed(gangs.size());
  for (std::size_t g = 0; g < gangs.size(); ++g) {
    waiting.insert(waiting.end(), static_cast<std::size_t>(gangs[g].pods), g);
  }
  std::stable_sort(waiting.begin(), waiting.end(), [&](std::size_t a, std::size_t b) {
    return gangs[a].created < gangs[b].created;
  });
  std::multimap<double, std::size_t> ends;  // of whole gangs
  double now = 0;
  while (true) {
    for (auto pod = waiting.begin(); pod != waiting.end();) {
      const StockGang& gang = gangs[*pod];
      auto& there = free[static_cast<std::size_t>(gang.vendor)];
      const std::size_t node =
          gang.created <= now ? NodeFor(there, gang.devices_per_pod) : there.size();
      if (node == there.size()) {
        ++pod;
        continue;
      }
      there[node] -= gang.devices_per_pod;
      now += bind;
      auto& members = placed[*pod];
      members.push_back({*pod, now, node});
      if (members.size() == static_cast<std::size_t>(gang.pods)) {
        out.started[*pod] = now;
        ends.emplace(now + gang.run_time, *pod);
      }
      pod = waiting.erase(pod);
    }
    double next = -1;
    if (!ends.empty()) next = ends.begin()->first;
    for (const std::size_t g : waiting) {
      if (gangs[g].created > now && (next < 0 || gangs[g].created < next)) next = gangs[g].created;
    }
    if (next < 0) break;
    now = std::max(now, next);
    while (!ends.empty() && ends.begin()->first <= now) {
      const std::size_t g = ends.begin()->second;
      ends.erase(ends.begin());
      out.end = std::max(out.end, out.started[g] + gangs[g].run_time);
      out.useful += gangs[g].run_time * gangs[g].pods * gangs[g].devices_per_pod;
      for (const Pod& pod : placed[g]) {
        free[static_cast<std::size_t>(gangs[g].vendor)][pod.node] += gangs[g].devices_per_pod;
      }
    }
  }
  for (std::size_t g = 0; g < gangs.size(); ++g) {
    out.stuck += out.started[g] < 0 ? 1 : 0;
    for (const Pod& pod : placed[g]) {
      const double until = out.started[g] < 0 ? out.end : out.started[g] + gangs[g].run_time;
      out.held += std::max(0.0, until - pod.bound) * gangs[g].devices_per_pod;
    }
  }
  return out;
}

}  // namespace bimetal::bench
