#include "core/queue/order/runtimes.h"

#include <algorithm>

namespace bimetal::core::queue::order {
namespace {

template <class Map, class Key>
auto Find(const Map& map, const Key& key) {
  const auto found = map.find(key);
  return found == map.end() ? nullptr : &found->second;
}

}  // namespace

void RunTimes::LastTwo::Add(Millis work) {
  before = last;
  last = work;
}

std::optional<Millis> RunTimes::LastTwo::Mean() const {
  if (!last || !before) return last;
  return Millis{last->v / 2 + before->v / 2 + (last->v % 2 + before->v % 2) / 2};
}

void RunTimes::Finished(const std::string& queue, std::int64_t devices, Millis work) {
  work.v = std::max<std::int64_t>(0, work.v);
  by_queue_and_devices_[{queue, devices}].Add(work);
  by_queue_[queue].Add(work);
  by_devices_[devices].Add(work);
  any_.Add(work);
}

std::optional<Prediction> RunTimes::Predict(const std::string& queue, std::int64_t devices) const {
  if (const auto* known = Find(by_queue_and_devices_, std::pair(queue, devices))) {
    return Prediction{*known->Mean(), Basis::kQueueAndDevices};
  }
  if (const auto* known = Find(by_queue_, queue)) return Prediction{*known->Mean(), Basis::kQueue};
  if (const auto* known = Find(by_devices_, devices)) {
    return Prediction{*known->Mean(), Basis::kDevices};
  }
  if (const auto mean = any_.Mean()) return Prediction{*mean, Basis::kAny};
  return std::nullopt;
}

Millis RemainingOf(Millis prediction, Millis elapsed) {
  if (elapsed < prediction) return prediction - elapsed;
  return std::max(elapsed, Millis{1});
}

}  // namespace bimetal::core::queue::order
