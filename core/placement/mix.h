#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/ids.h"
#include "core/model/fleet.h"
#include "core/model/vendor.h"

// What pods ask for, and how often: what placement expects to be asked next.
namespace bimetal::core::placement {

// One pod as the choice of a node sees it.
struct PodShape {
  Resources need;                   // CPU, memory and pod slots, devices apart
  std::int64_t devices = 0;         // 0: none. More than one only where each is taken whole
  MilliDevice each = kWholeDevice;  // of each device; less than whole: a share of one device
  std::optional<Vendor> vendor;     // nullopt: either
  std::vector<std::string> models;  // sorted; empty: any
  auto operator<=>(const PodShape&) const = default;
};

// What the pod takes of devices in all. Saturates. Pure.
MilliDevice DevicesOf(const PodShape& shape);
// True where the shape asks for nothing impossible: no negative amount, a share between 1 and
// 1,000 milli, shares of one device only. Pure.
bool IsSane(const PodShape& shape);

// How many pods of each shape are expected, in proportion. Ordered, so that the same pods give the
// same mix whatever order they came in.
using Mix = std::map<PodShape, std::int64_t>;

// Learns the mix from the pods that arrive, and says when it has changed enough to be worth a new
// look at all nodes. Loop thread only.
class MixLearner {
 public:
  // Counts `pods` more of `shape`.
  void Saw(const PodShape& shape, std::int64_t pods = 1);
  // True where a quarter more than at the last Take has been seen.
  bool IsDue() const { return seen_ - taken_ > taken_ / 4; }
  // The mix of all that was seen so far.
  const Mix& Take();

 private:
  Mix mix_;
  std::int64_t seen_ = 0, taken_ = 0;
};

}  // namespace bimetal::core::placement
