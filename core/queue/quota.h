#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "core/queue/cycle.h"

namespace bimetal::core::queue {

// What the placed jobs of each queue hold, by vendor: recounted from the snapshot, then kept up
// while the cycle assigns. Loop thread only.
class QuotaUse {
 public:
  explicit QuotaUse(const std::vector<Holding>& holdings);

  void Add(const QueueName& queue, Vendor vendor, std::int64_t devices);
  // Devices left of the queue's limit, never negative; nullopt: no limit.
  std::optional<std::int64_t> Left(const Queue& queue, Vendor vendor) const;

 private:
  std::map<std::pair<QueueName, Vendor>, std::int64_t> used_;
};

}  // namespace bimetal::core::queue
