#pragma once

#include <compare>
#include <cstdint>
#include <string>

namespace bimetal {

// A name that cannot be passed where another kind of name is meant.
template <class Tag>
struct Id {
  std::string value;
  auto operator<=>(const Id&) const = default;
};

using NodeName = Id<struct NodeNameTag>;    // metadata.name of a Node
using PoolName = Id<struct PoolNameTag>;    // metadata.name of a GPUPool
using QueueName = Id<struct QueueNameTag>;  // metadata.name of a GPUQueue
using DeviceId = Id<struct DeviceIdTag>;  // stable id of a device: UUID, or PCI address and serial
using Uid = Id<struct UidTag>;            // metadata.uid of any object

// Capacity of a device, in thousandths of one device: a whole device is 1000.
struct MilliDevice {
  std::int64_t v = 0;
  auto operator<=>(const MilliDevice&) const = default;
};
inline constexpr MilliDevice kWholeDevice{1000};

// Money, in billionths of the price book's currency.
struct NanoCurrency {
  std::int64_t v = 0;
  auto operator<=>(const NanoCurrency&) const = default;
};

}  // namespace bimetal
