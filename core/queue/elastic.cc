#include "core/queue/elastic.h"

#include <algorithm>

namespace bimetal::core::queue {
namespace {

std::int64_t Minimum(const Role& role) { return role.min_replicas.value_or(role.replicas); }

}  // namespace

bool IsElastic(const Job& job) { return SmallerSizes(job) > 0; }

std::int64_t SmallerSizes(const Job& job) {
  std::int64_t most = 0;
  for (const Role& role : job.roles) most = std::max(most, role.replicas - Minimum(role));
  return most;
}

Job AtSize(const Job& job, std::int64_t size) {
  const std::int64_t sizes = SmallerSizes(job);
  Job out = job;
  if (sizes == 0) return out;
  for (Role& role : out.roles) {
    const std::int64_t span = role.replicas - Minimum(role);
    role.replicas = Minimum(role) + span * size / sizes;  // both small: no overflow
    role.min_replicas.reset();
  }
  return out;
}

const Job& Smallest(const Job& job, std::optional<Job>* made) {
  if (!IsElastic(job)) return job;
  *made = AtSize(job, 0);
  return **made;
}

std::optional<Job> LargestThatFits(const Job& job, const std::function<bool(const Job&)>& fits) {
  std::optional<Job> best;
  std::int64_t low = 0, high = SmallerSizes(job) - 1;
  while (low <= high) {
    const std::int64_t middle = low + (high - low) / 2;
    Job smaller = AtSize(job, middle);
    if (fits(smaller)) {
      best = std::move(smaller);
      low = middle + 1;
    } else {
      high = middle - 1;
    }
  }
  return best;
}

}  // namespace bimetal::core::queue
