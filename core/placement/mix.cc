#include "core/placement/mix.h"

#include "core/model/saturate.h"

namespace bimetal::core::placement {

MilliDevice DevicesOf(const PodShape& shape) {
  return MilliDevice{SaturatingMultiply(shape.devices, shape.each.v)};
}

bool IsSane(const PodShape& shape) {
  if (shape.need.cpu_milli < 0 || shape.need.memory_bytes < 0 || shape.need.pods < 0) return false;
  if (shape.devices < 0) return false;
  if (shape.devices == 0) return true;
  if (shape.each < MilliDevice{1} || shape.each > kWholeDevice) return false;
  return shape.each == kWholeDevice || shape.devices == 1;
}

void MixLearner::Saw(const PodShape& shape, std::int64_t pods) {
  if (pods <= 0) return;
  std::int64_t& count = mix_[shape];
  count = SaturatingAdd(count, pods);
  seen_ = SaturatingAdd(seen_, pods);
}

const Mix& MixLearner::Take() {
  taken_ = seen_;
  return mix_;
}

}  // namespace bimetal::core::placement
