#include "core/validation/fleet.h"

#include <algorithm>
#include <utility>

namespace bimetal::core::validation {
namespace {

// The middle one; of an even number the lower of the two: a whole number that was measured.
std::int64_t LowerMedian(std::vector<std::int64_t> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

FleetKey KeyFor(const DeviceFacts& device, std::string check) {
  return FleetKey{device.model, IsWhole(device) ? "" : device.partition, "", std::move(check)};
}

FleetMedians MediansOf(const std::vector<NodeRate>& rates) {
  struct OfNode {
    std::vector<std::int64_t> medians;
    std::int64_t devices = 0;
  };
  std::map<FleetKey, std::map<std::string, OfNode>> by_key;
  for (const NodeRate& rate : rates) {
    if (rate.devices <= 0 || rate.median.v <= 0 || rate.key.model.empty()) continue;
    OfNode& of_node = by_key[rate.key][rate.node];
    of_node.medians.push_back(rate.median.v);
    of_node.devices += rate.devices;
  }
  FleetMedians medians;
  for (const auto& [key, nodes] : by_key) {
    std::vector<std::int64_t> values;
    std::int64_t devices = 0;
    for (const auto& [node, of_node] : nodes) {
      values.push_back(LowerMedian(of_node.medians));
      devices += of_node.devices;
    }
    if (nodes.size() < static_cast<std::size_t>(kFleetMinNodes) || devices < kFleetMinDevices) {
      continue;
    }
    constexpr std::int64_t kMaxCount = 1'000'000'000;
    medians[key] = {Milli{LowerMedian(std::move(values))},
                    static_cast<int>(std::min(devices, kMaxCount)),
                    static_cast<int>(std::min<std::size_t>(nodes.size(), kMaxCount))};
  }
  return medians;
}

}  // namespace bimetal::core::validation
