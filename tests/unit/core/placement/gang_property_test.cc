#include <map>
#include <set>

#include <gtest/gtest.h>

#include "core/placement/gang.h"
#include "core/placement/shape.h"
#include "tests/unit/core/random_fleet.h"

namespace bimetal::core::placement {
namespace {

using testing::Random;

constexpr int kRounds = 1500;

struct Case {
  std::vector<Node> nodes;
  std::vector<Pod> pods;
  Job job;

  explicit Case(std::uint64_t seed) {
    Random random(seed);
    const int count = random.Up(8);
    for (int i = 0; i < count; ++i) nodes.push_back(testing::RandomNode(random, i));
    const int held = random.Up(10);
    for (int i = 0; i < held; ++i) pods.push_back(testing::RandomPod(random, i, count));
    job = testing::RandomJob(random, 0);
  }
  GangResult Place() const { return PlaceGang(job, job.variants.front(), nodes, MakeBooks(pods)); }
};

const Node& NodeNamed(const std::vector<Node>& nodes, const NodeName& name) {
  return *std::find_if(nodes.begin(), nodes.end(), [&](const Node& n) { return n.name == name; });
}

// The books as they are once the gang's pods are live.
Books BooksAfter(const Case& c, const GangResult& result) {
  std::vector<Pod> pods = c.pods;
  for (const PodPlacement& placed : result.pods) {
    Pod pod = testing::PodOn(
        "new-" + std::to_string(placed.role) + "-" + std::to_string(placed.index),
        placed.node.value, c.job.variants.front().vendor, c.job.variants.front().devices_per_pod);
    pod.requests = c.job.roles[placed.role].requests;
    pods.push_back(pod);
  }
  return MakeBooks(pods);
}

TEST(PlaceGangProperty, AGangIsPlacedWholeOrNotAtAll) {
  int placed = 0;
  for (std::uint64_t seed = 0; seed < kRounds; ++seed) {
    const Case c(seed);
    const auto result = c.Place();
    EXPECT_EQ(result.pods.empty(), result.obstacle != Obstacle::kNone) << seed;
    EXPECT_EQ(result.pods.empty(), !result.unblocked_by.empty()) << seed;
    if (result.pods.empty()) continue;
    ++placed;
    std::set<std::pair<std::size_t, int>> members;
    for (const auto& pod : result.pods) members.insert({pod.role, pod.index});
    ASSERT_EQ(members.size(), result.pods.size()) << seed;
    for (std::size_t role = 0; role < c.job.roles.size(); ++role) {
      for (int i = 0; i < c.job.roles[role].replicas; ++i) {
        EXPECT_TRUE(members.contains({role, i})) << seed;
      }
    }
    EXPECT_EQ(static_cast<std::int64_t>(members.size()), PodCount(c.job)) << seed;
  }
  EXPECT_GT(placed, kRounds / 10);  // the generator must not make the property empty
}

TEST(PlaceGangProperty, NoDeviceIsGrantedTwiceAndNoNodeOverbooked) {
  for (std::uint64_t seed = 0; seed < kRounds; ++seed) {
    const Case c(seed);
    const auto result = c.Place();
    const Books before = MakeBooks(c.pods), after = BooksAfter(c, result);
    std::set<NodeName> used;
    for (const auto& pod : result.pods) used.insert(pod.node);
    for (const NodeName& name : used) {
      const Node& node = NodeNamed(c.nodes, name);
      const Vendor vendor = c.job.variants.front().vendor;
      const NodeUse& use = after.at(name);
      EXPECT_LE(WholeDevices(use.held.at(vendor)), UsableDevices(node, vendor)) << seed;
      EXPECT_LE(use.used.pods, node.allocatable.pods) << seed;
      const auto old = before.find(name);
      const auto cpu_before = old == before.end() ? 0 : old->second.used.cpu_milli;
      if (use.used.cpu_milli > cpu_before) {
        EXPECT_LE(use.used.cpu_milli, node.allocatable.cpu_milli) << seed;
      }
    }
  }
}

TEST(PlaceGangProperty, EveryNodeUsedIsReadyOpenToleratedSelectedAndMatching) {
  for (std::uint64_t seed = 0; seed < kRounds; ++seed) {
    const Case c(seed);
    const Variant& variant = c.job.variants.front();
    for (const auto& pod : c.Place().pods) {
      const Node& node = NodeNamed(c.nodes, pod.node);
      const Role& role = c.job.roles[pod.role];
      EXPECT_TRUE(node.ready && !node.cordoned) << seed;
      for (const Taint& taint : node.taints)
        EXPECT_TRUE(Tolerates(role.tolerations, taint)) << seed;
      for (const auto& [key, value] : role.node_selector) {
        EXPECT_TRUE(node.labels.contains(key) && node.labels.at(key) == value) << seed;
      }
      for (const Device& device : node.devices.at(variant.vendor).devices) {
        EXPECT_TRUE(!device.open || Matches(device, variant)) << seed;
      }
    }
  }
}

TEST(PlaceGangProperty, TheOrderOfNodesAndPodsDoesNotMatter) {
  for (std::uint64_t seed = 0; seed < kRounds; ++seed) {
    Case c(seed);
    const auto forward = c.Place();
    Random random(seed + 1'000'000);
    random.Shuffle(c.nodes);
    random.Shuffle(c.pods);
    const auto shuffled = c.Place();
    EXPECT_EQ(forward.pods, shuffled.pods) << seed;
    EXPECT_EQ(forward.obstacle, shuffled.obstacle) << seed;
    EXPECT_EQ(forward.free, shuffled.free) << seed;
    EXPECT_EQ(forward.unblocked_by, shuffled.unblocked_by) << seed;
  }
}

// All ways to put identical pods on nodes, by brute force.
bool FitsSomewhere(const Case& c, const Books& books) {
  const Variant& variant = c.job.variants.front();
  std::int64_t room = 0;
  for (const Node& node : c.nodes) {
    Case alone = c;
    alone.nodes = {node};
    for (std::int64_t pods = 1; pods <= c.job.roles[0].replicas; ++pods) {
      // One pod at a time, by the public rules only.
      const Role& role = c.job.roles[0];
      const auto use = books.find(node.name);
      Resources used = use == books.end() ? Resources{} : use->second.used;
      for (std::int64_t i = 1; i < pods; ++i) used = used + role.requests;
      const auto devices = node.devices.find(variant.vendor);
      const bool ok =
          node.ready && !node.cordoned && devices != node.devices.end() &&
          std::all_of(node.taints.begin(), node.taints.end(),
                      [&](const Taint& t) { return Tolerates(role.tolerations, t); }) &&
          std::all_of(role.node_selector.begin(), role.node_selector.end(),
                      [&](const auto& s) {
                        return node.labels.contains(s.first) && node.labels.at(s.first) == s.second;
                      }) &&
          std::all_of(devices->second.devices.begin(), devices->second.devices.end(),
                      [&](const Device& d) { return !d.open || Matches(d, variant); }) &&
          FreeDevices(node, books, variant.vendor) >= pods * variant.devices_per_pod &&
          Fits(role.requests, node.allocatable, used);
      if (!ok) break;
      ++room;
    }
  }
  return room >= c.job.roles[0].replicas;
}

TEST(PlaceGangProperty, AGangOfOneRoleIsPlacedWheneverAPlaceExists) {
  int compared = 0;
  for (std::uint64_t seed = 0; seed < kRounds; ++seed) {
    const Case c(seed);
    if (c.job.roles.size() != 1) continue;
    ++compared;
    EXPECT_EQ(!c.Place().pods.empty(), FitsSomewhere(c, MakeBooks(c.pods))) << seed;
  }
  EXPECT_GT(compared, kRounds / 3);
}

TEST(PlaceGangProperty, ReleasingEverythingHelpsWhereDevicesAreWaitedFor) {
  int seen = 0;
  for (std::uint64_t seed = 0; seed < kRounds; ++seed) {
    Case c(seed);
    if (c.Place().obstacle != Obstacle::kWaitingForDevices) continue;
    ++seen;
    c.pods.clear();
    const Obstacle obstacle = c.Place().obstacle;
    EXPECT_TRUE(obstacle == Obstacle::kNone || obstacle == Obstacle::kWaitingForValidation) << seed;
  }
  EXPECT_GT(seen, 10);
}

TEST(PlaceGangProperty, OpeningEverythingHelpsWhereValidationIsWaitedFor) {
  int seen = 0;
  for (std::uint64_t seed = 0; seed < kRounds; ++seed) {
    Case c(seed);
    if (c.Place().obstacle != Obstacle::kWaitingForValidation) continue;
    ++seen;
    for (Node& node : c.nodes) {
      for (auto& [vendor, devices] : node.devices) {
        for (Device& device : devices.devices) device.open = true;
        devices.offered = static_cast<std::int64_t>(devices.devices.size());
      }
    }
    EXPECT_EQ(c.Place().obstacle, Obstacle::kNone) << seed;
  }
  EXPECT_GT(seen, 10);
}

}  // namespace
}  // namespace bimetal::core::placement
