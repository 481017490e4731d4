#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/placement/mix.h"

// How good a node is for a pod. The policy is told in docs/explanation/placement.md; everything is
// an integer, so that the same input gives the same choice on every machine.
namespace bimetal::core::placement {

// Devices of one vendor and model are of one kind.
struct DeviceKind {
  Vendor vendor = Vendor::kNvidia;
  std::string model;
  auto operator<=>(const DeviceKind&) const = default;
};

// True where `shape` may use devices of `kind`. Pods without devices may go anywhere. Pure.
bool MayUse(const PodShape& shape, const DeviceKind& kind);

// The policy's parameters: one set for every fleet, chosen on the public traces.
struct ScoreWeights {
  std::int64_t step = 8;        // milli-devices of lost usable capacity that make one point
  std::int64_t strand = 2'500;  // thousandths: weight of devices that the idle cores cannot feed
  std::int64_t scarce = 3'200;  // milli-devices that a device costs where its pods want it all
};

// The state of one node that a score depends on.
struct NodeView {
  std::size_t kind = 0;                // index of its devices' kind
  std::int64_t cpu_idle = 0;           // milli
  std::span<const std::int32_t> idle;  // milli of each device
};

// What Score needs to know of a pod.
struct Need {
  std::int64_t cpu_milli = 0;
  std::int64_t devices = 0;
  std::int32_t each = 1000;
};

// What the mix says about states of nodes, as tables. Immutable once made.
class ScoreTables {
 public:
  // `cpu_per_device`: what the fleet has, in milli; 0: it has no devices.
  ScoreTables(const Mix& mix, const std::vector<DeviceKind>& kinds, const ScoreWeights& weights,
              std::int64_t cpu_per_device);

  struct Scored {
    std::int32_t score = 0;  // greater is better; equal scores are equally good
    int device = -1;         // of a share: the device that it is to take
  };
  // REQUIRES: the pod fits on the node.
  Scored Score(const NodeView& node, std::int64_t waste_before, const Need& need) const;

  // Idle capacity of the node that the mix cannot use, in milli-devices times kOne.
  std::int64_t Waste(const NodeView& node) const;

  // Devices of some kinds are all that some pods may use; other pods should leave them alone.
  struct Claim {
    std::vector<bool> kinds;
    std::int64_t demand = 0;  // share of all device demand, parts of kOne
  };
  const std::vector<Claim>& claims() const { return claims_; }

  static constexpr std::int64_t kOne = 1 << 20;  // the whole mix
  static constexpr std::int64_t kMaxPoints = 1'000'000;
  static constexpr std::int32_t kPoint =
      1024;  // Score's unit: the parts order pods without devices

 private:
  struct Typical {
    Need need;
    std::vector<bool> kinds;
    std::int64_t weight = 0;  // parts of kOne
  };
  struct Row {
    const std::int64_t* shares;  // by class of milli: weight of the shares that fit into it
    const std::int64_t* wholes;  // by idle whole devices: weight of pods that need at most so many
  };
  struct Sum {
    std::int64_t idle = 0, whole = 0;  // milli; whole devices
    std::int64_t in_shares = 0;        // usable by shares, milli times kOne
  };
  struct Choice {
    std::int64_t usable = 0;
    int device = -1;
  };
  void MakeRows(std::size_t kinds);
  void MakeClaims();
  Row RowFor(std::size_t kind, std::int64_t cpu_idle) const;
  std::int64_t Stranded(std::int64_t cpu_idle, std::int64_t idle_milli) const;
  std::int64_t WholePart(const Row& row, std::int64_t whole) const;
  std::int64_t SharePart(const Row& row, std::int32_t milli) const {
    return milli * row.shares[class_of_[static_cast<std::size_t>(milli)]];
  }
  Sum SumUp(const Row& row, std::span<const std::int32_t> devices) const;
  Choice DeviceFor(const Row& row, const Sum& sum, std::int32_t share,
                   std::span<const std::int32_t> devices) const;

  ScoreWeights weights_;
  std::vector<Typical> typical_;
  std::vector<Claim> claims_;
  std::int64_t cpu_per_device_ = 0;   // milli; 0: the mix has no devices
  bool cores_bind_ = false;           // the mix asks more cores a device than the fleet has
  std::vector<std::int64_t> levels_;  // CPU requests of the mix, ascending
  std::array<std::uint16_t, 1001> class_of_{};  // milli -> index into a row of shares
  std::size_t classes_ = 1, whole_sizes_ = 1;
  std::vector<std::int64_t> shares_, wholes_;  // [kind][level][class]
};

}  // namespace bimetal::core::placement
