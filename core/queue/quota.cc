#include "core/queue/quota.h"

#include <algorithm>

#include "core/model/saturate.h"

namespace bimetal::core::queue {

QuotaUse::QuotaUse(const std::vector<Holding>& holdings) {
  for (const Holding& holding : holdings) Add(holding.queue, holding.vendor, holding.devices);
}

void QuotaUse::Add(const QueueName& queue, Vendor vendor, std::int64_t devices) {
  auto& used = used_[{queue, vendor}];
  used = SaturatingAdd(used, std::max<std::int64_t>(0, devices));
}

std::optional<std::int64_t> QuotaUse::Left(const Queue& queue, Vendor vendor) const {
  const auto limit = queue.limit.find(vendor);
  if (limit == queue.limit.end()) return std::nullopt;
  const auto used = used_.find({queue.name, vendor});
  const std::int64_t held = used == used_.end() ? 0 : used->second;
  return std::max<std::int64_t>(0, SaturatingAdd(limit->second, -held));
}

}  // namespace bimetal::core::queue
