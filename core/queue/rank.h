#pragma once

#include <cstdint>
#include <tuple>

#include "core/base/ids.h"
#include "core/base/time.h"

namespace bimetal::core::queue {

// Where a job stands among all others, waiting or running: priority (high first), creation, uid.
// Fixed for a job's life unless somebody changes its priority.
struct Rank {
  std::int64_t priority = 0;
  TimePoint created;
  Uid job;
};

inline bool operator<(const Rank& a, const Rank& b) {
  if (a.priority != b.priority) return a.priority > b.priority;
  return std::tie(a.created, a.job) < std::tie(b.created, b.job);
}

}  // namespace bimetal::core::queue
