#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/cost/ratio.h"

// What part of a physical device a holder has, by how the device is divided (notes: cost model
// 3.2). The shares of one device never add up to more than 1; the rest is idle, or fragmented where
// no profile can use it.
namespace bimetal::core::cost {

// A compute partition of an AMD device, by mode: SPX 1, DPX 1/2, TPX 1/3, QPX 1/4, CPX 1 over the
// number of XCDs (8 on MI300X, 6 on MI300A). "CPX/NPS4" counts as CPX. Error kInvalid for other
// modes, kUnsupported where the dies do not divide evenly.
Result<Ratio> AmdPartitionShare(std::string_view mode, std::int64_t xcds = 8);

// One die of a package whose price is per package: 1/2 on MI250. REQUIRES: dies > 0.
Ratio DieShare(std::int64_t dies);

// What one MIG instance takes of its device, in slices.
struct MigInstance {
  std::int64_t compute = 0;
  std::int64_t memory = 0;
  bool operator==(const MigInstance&) const = default;
};

// How many slices a device has: 7 and 8 on A100, H100, H200 and B200, 4 and 4 on A30.
struct MigDevice {
  std::int64_t compute = 7;
  std::int64_t memory = 8;
};

// "3g.40gb", "1g.10gb+me" on a device of `device_gigabytes`: memory slices are the eighths nearest
// to the gigabytes in the name, which are rounded ("1g.18gb" of 141). Error kInvalid for other text
// and for instances larger than the device.
Result<MigInstance> MigProfile(std::string_view profile, std::int64_t device_gigabytes,
                               MigDevice device = {});

// The shares of the instances configured on one device, in their order. Each has its dominant share
// d = max(compute / 7, memory / 8). Legal layouts can exceed the device that way (4g + 3g: 15/14),
// so then every d is divided by their sum. Error kInvalid for an instance of no slices or more than
// the device has.
Result<std::vector<Ratio>> MigShares(const std::vector<MigInstance>& configured,
                                     MigDevice device = {});

// One of `replicas` that time-slicing or MPS makes of `part` (a whole device or an instance of it):
// what is reserved, not what is used. Error kInvalid outside 1 to 1000 replicas.
Result<Ratio> ReplicaShare(std::int64_t replicas, Ratio part = Ratio::One());

// 1 - the sum of `shares`. Error kInvalid where they add up to more than 1, naming the sum.
Result<Ratio> RestOfDevice(const std::vector<Ratio>& shares);

}  // namespace bimetal::core::cost
