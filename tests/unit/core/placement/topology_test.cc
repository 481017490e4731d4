#include "core/placement/topology.h"

#include <map>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/placement/gang.h"
#include "core/placement/space.h"
#include "tests/unit/core/builders.h"

namespace bimetal::core::placement {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::JobBuilder;
using testing::NodeBuilder;
using testing::PodOn;

constexpr Vendor kN = Vendor::kNvidia;
constexpr auto kRequired = TopologyMode::kRequired;
constexpr auto kPreferred = TopologyMode::kPreferred;
constexpr auto kSpread = TopologyMode::kSpread;

const std::vector<std::string> kKeys = {"zone", "rack"};

// `nodes` nodes "r<rack>-<n>" in each of `racks` racks, two racks to a zone.
std::vector<Node> Racks(int racks, int nodes, int gpus = 8) {
  std::vector<Node> out;
  for (int rack = 0; rack < racks; ++rack) {
    for (int n = 0; n < nodes; ++n) {
      out.push_back(NodeBuilder("r" + std::to_string(rack) + "-" + std::to_string(n))
                        .Gpus(kN, gpus)
                        .Label("zone", "z" + std::to_string(rack / 2))
                        .Label("rack", "r" + std::to_string(rack)));
    }
  }
  return out;
}

GangResult Place(const Job& job, const std::vector<Node>& nodes, const std::vector<Pod>& pods = {},
                 const std::vector<std::string>& keys = kKeys) {
  return PlaceGang(job, job.variants.front(), nodes, MakeBooks(pods), keys);
}

std::map<std::string, int> PodsByNode(const GangResult& result) {
  std::map<std::string, int> count;
  for (const PodPlacement& pod : result.pods) ++count[pod.node.value];
  return count;
}

// By the node's name up to "-".
std::map<std::string, int> PodsByRack(const GangResult& result) {
  std::map<std::string, int> count;
  for (const PodPlacement& pod : result.pods) {
    ++count[pod.node.value.substr(0, pod.node.value.find('-'))];
  }
  return count;
}

using Count = std::map<std::string, int>;

TEST(TopologyTest, DomainsAreNumberedByTheValuesOfAllWiderLevels) {
  const Node a = NodeBuilder("a").Label("zone", "z2").Label("rack", "r1");
  const Node b = NodeBuilder("b").Label("zone", "z1").Label("rack", "r1");
  const Node c = NodeBuilder("c").Label("zone", "z1").Label("rack", "r0");
  const Node d = NodeBuilder("d").Label("rack", "r0");
  const Topology topology(kKeys, {&a, &b, &c, &d});
  ASSERT_EQ(topology.node_level(), 2U);
  EXPECT_EQ(topology.Names(), "zone, rack, node");
  EXPECT_EQ(topology.DomainsIn(0), 2U);
  ASSERT_EQ(topology.DomainsIn(1), 3U);
  EXPECT_EQ(topology.DomainName(1, 0), "z1/r0");
  EXPECT_EQ(topology.DomainName(1, 1), "z1/r1");
  EXPECT_EQ(topology.DomainName(1, 2), "z2/r1");
  EXPECT_THAT(topology.NodesOf(0, 0), ElementsAre(1, 2));
  EXPECT_EQ(topology.DomainOf(1, 3), Topology::kNowhere);
  EXPECT_THAT(topology.NodesOf(1, 3), ElementsAre(3));  // those in no domain
  EXPECT_EQ(topology.DomainName(2, 3), "d");
  EXPECT_THAT(topology.NodesOf(2, 3), ElementsAre(3));
  EXPECT_EQ(topology.Find("rack"), 1U);
  EXPECT_EQ(topology.Find("node"), 2U);
  EXPECT_EQ(topology.Find("row"), std::nullopt);
}

TEST(TopologyTest, RequiredTakesTheFullestDomainThatHoldsAll) {
  // Free: r0 16, r1 9, r2 12, r3 16.
  const auto held = std::vector<Pod>{PodOn("a", "r1-0", kN, 7), PodOn("b", "r2-1", kN, 4)};
  const auto rack = [&](int pods) {
    return PodsByRack(
        Place(JobBuilder("j").On(kN).Pods(pods).Topology("rack", kRequired), Racks(4, 2), held));
  };
  EXPECT_EQ(rack(9), (Count{{"r1", 9}}));
  EXPECT_EQ(rack(10), (Count{{"r2", 10}}));
  EXPECT_EQ(rack(13), (Count{{"r0", 13}}));
}

TEST(TopologyTest, RequiredNeverLeavesItsDomainThoughThePoolHasRoom) {
  const Job job = JobBuilder("j").On(kN).Pods(17).Topology("rack", kRequired);
  const auto result = Place(job, Racks(4, 2));
  EXPECT_TRUE(result.pods.empty());
  EXPECT_EQ(result.obstacle, Obstacle::kExceedsCapacity);
  EXPECT_EQ(result.unblocked_by,
            "pool nvidia gets nodes so that one rack has room for all 17 pods of worker (z0/r0 "
            "comes closest with 16), or the topology that its roles ask for is wider or Preferred");
  EXPECT_EQ(
      PodsByRack(Place(JobBuilder("j").On(kN).Pods(17).Topology("zone", kRequired), Racks(4, 2)))
          .size(),
      2U);
}

TEST(TopologyTest, WaitsForTopologyWhereDevicesAreFreeButScattered) {
  const std::vector<Pod> held = {PodOn("a", "r0-0", kN, 4), PodOn("b", "r1-0", kN, 5)};
  const auto result =
      Place(JobBuilder("j").On(kN, 2).Pods(4).Topology("rack", kRequired), Racks(2, 1), held);
  EXPECT_EQ(result.obstacle, Obstacle::kWaitingForDevices);  // 7 free, 8 needed
  const auto scattered =
      Place(JobBuilder("j").On(kN, 1).Pods(6).Topology("rack", kRequired), Racks(2, 1), held);
  EXPECT_EQ(scattered.obstacle, Obstacle::kWaitingForTopology);
  EXPECT_EQ(scattered.need, 6);
  EXPECT_EQ(scattered.free, 7);
  EXPECT_EQ(scattered.unblocked_by,
            "devices of pool nvidia are released so that one rack has room for all 6 pods of "
            "worker (z0/r0 comes closest with 4)");
}

TEST(TopologyTest, RolesThatRequireTheSameLevelShareOneDomain) {
  // r0 has room for the workers alone; r1 for all.
  const auto nodes = Racks(2, 2);
  const std::vector<Pod> held = {PodOn("a", "r0-0", kN, 4)};
  const Job job = JobBuilder("j")
                      .On(kN, 4)
                      .Pods(3, 1000, "worker")
                      .Topology("rack", kRequired)
                      .Pods(1, 500, "leader")
                      .Topology("rack", kRequired);
  EXPECT_EQ(PodsByRack(Place(job, nodes, held)), (Count{{"r1", 4}}));
  const std::vector<Pod> more = {PodOn("a", "r0-0", kN, 4), PodOn("b", "r1-0", kN, 4)};
  const auto refused = Place(job, nodes, more);
  EXPECT_EQ(refused.obstacle, Obstacle::kWaitingForTopology);
  EXPECT_THAT(refused.unblocked_by, HasSubstr("all 4 pods of worker and leader"));
}

TEST(TopologyTest, RolesOfDifferentLevelsEachKeepTheirs) {
  // Only zone z1 has a whole rack; the wide role must not take it away.
  auto nodes = Racks(4, 1);
  const std::vector<Pod> held = {PodOn("a", "r0-0", kN, 2), PodOn("b", "r1-0", kN, 2),
                                 PodOn("c", "r2-0", kN, 2)};
  const Job job = JobBuilder("j")
                      .On(kN)
                      .Pods(6, 1000, "wide")
                      .Topology("zone", kRequired)
                      .Pods(8, 1000, "tight")
                      .Topology("rack", kRequired);
  EXPECT_EQ(PodsByRack(Place(job, nodes, held)), (Count{{"r2", 6}, {"r3", 8}}));
}

TEST(TopologyTest, AnotherDomainIsTriedWhereTheNextRoleFindsNoPlace) {
  // The fullest rack that takes the workers is the one whose other devices the picky role needs.
  auto nodes = Racks(2, 1, 8);
  nodes[0].labels["disk"] = "fast";
  const std::vector<Pod> held = {PodOn("a", "r0-0", kN, 2)};
  const Job job = JobBuilder("j")
                      .On(kN)
                      .Pods(5, 2000, "worker")
                      .Topology("rack", kRequired)
                      .Pods(6, 1000, "picky")
                      .Selecting("disk", "fast");
  EXPECT_EQ(PodsByRack(Place(job, nodes, held)), (Count{{"r0", 6}, {"r1", 5}}));
}

TEST(TopologyTest, RequiredNodeMeansOneNode) {
  const auto place = [](int pods) {
    return Place(JobBuilder("j").On(kN).Pods(pods).Topology("node", kRequired), Racks(2, 2), {},
                 {});
  };
  EXPECT_EQ(PodsByNode(place(8)).size(), 1U);
  EXPECT_EQ(place(9).obstacle, Obstacle::kExceedsCapacity);
}

TEST(TopologyTest, PreferredTakesOneDomainWhereItCan) {
  const std::vector<Pod> held = {PodOn("a", "r0-0", kN, 2), PodOn("b", "r2-0", kN, 4)};
  EXPECT_EQ(PodsByRack(Place(JobBuilder("j").On(kN).Pods(12).Topology("rack", kPreferred),
                             Racks(4, 2), held)),
            (Count{{"r2", 12}}));
}

TEST(TopologyTest, PreferredSpillsInsideTheNextWiderDomain) {
  // Free: r0 4, r1 16, r2 15, r3 10. 18 pods: zone 0 holds them in two racks; so does zone 1, with
  // more to spare.
  const std::vector<Pod> held = {PodOn("a", "r0-0", kN, 8), PodOn("b", "r0-1", kN, 4),
                                 PodOn("c", "r2-0", kN, 1), PodOn("d", "r3-0", kN, 6)};
  EXPECT_EQ(PodsByRack(Place(JobBuilder("j").On(kN).Pods(18).Topology("rack", kPreferred),
                             Racks(4, 2), held)),
            (Count{{"r0", 2}, {"r1", 16}}));
}

TEST(TopologyTest, PreferredUsesTheFewestDomainsOfThePoolAtLast) {
  // Free: 16, 3, 16, 3: 35 pods need three racks, and the rest goes where it fits best.
  std::vector<Pod> held;
  for (const char* node : {"r1-0", "r3-0"})
    held.push_back(PodOn(std::string("a") + node, node, kN, 8));
  for (const char* node : {"r1-1", "r3-1"})
    held.push_back(PodOn(std::string("b") + node, node, kN, 5));
  EXPECT_EQ(PodsByRack(Place(JobBuilder("j").On(kN).Pods(35).Topology("rack", kPreferred),
                             Racks(4, 2), held)),
            (Count{{"r0", 16}, {"r1", 3}, {"r2", 16}}));
}

TEST(TopologyTest, PreferredPlacesTheGangEvenWithoutLabels) {
  auto nodes = Racks(1, 1);
  for (int i = 0; i < 3; ++i) nodes.push_back(NodeBuilder("x-" + std::to_string(i)).Gpus(kN, 8));
  EXPECT_EQ(PodsByRack(Place(JobBuilder("j").On(kN).Pods(20).Topology("rack", kPreferred), nodes)),
            (Count{{"r0", 8}, {"x", 12}}));
}

TEST(TopologyTest, ASecondRoleStaysInTheDomainsOfTheFirst) {
  const Job job = JobBuilder("j")
                      .On(kN)
                      .Pods(8, 2000, "worker")
                      .Topology("rack", kPreferred)
                      .Pods(6, 1000, "helper")
                      .Topology("rack", kPreferred);
  const std::vector<Pod> held = {PodOn("a", "r1-0", kN, 2)};
  EXPECT_EQ(PodsByRack(Place(job, Racks(4, 2), held)).size(), 1U);
}

TEST(TopologyTest, SpreadKeepsToAnEvenShare) {
  const auto spread = [](int pods, const std::vector<Pod>& held) {
    return Place(JobBuilder("j").On(kN).Pods(pods).Topology("rack", kSpread), Racks(4, 2), held);
  };
  EXPECT_EQ(PodsByRack(spread(8, {})), (Count{{"r0", 2}, {"r1", 2}, {"r2", 2}, {"r3", 2}}));
  const auto uneven = PodsByRack(spread(6, {}));
  ASSERT_EQ(uneven.size(), 4U);
  for (const auto& [rack, pods] : uneven) EXPECT_LE(pods, 2) << rack;
  // One rack is full: its share cannot go elsewhere.
  const std::vector<Pod> full = {PodOn("a", "r2-0", kN, 8), PodOn("b", "r2-1", kN, 8)};
  const auto refused = spread(8, full);
  EXPECT_EQ(refused.obstacle, Obstacle::kWaitingForTopology);
  EXPECT_THAT(refused.unblocked_by,
              HasSubstr("every rack has room for its share of the 8 pods of worker, at most 2 in "
                        "each (now 6 fit)"));
  // What is missing in one rack may still go to others within the share.
  const auto shifted = PodsByRack(spread(6, full));
  EXPECT_EQ(shifted, (Count{{"r0", 2}, {"r1", 2}, {"r3", 2}}));
}

TEST(TopologyTest, ARackThatIsCordonedIsNoDomainToSpreadOver) {
  auto nodes = Racks(2, 1);
  nodes[1].cordoned = true;
  EXPECT_EQ(PodsByRack(Place(JobBuilder("j").On(kN).Pods(4).Topology("rack", kSpread), nodes)),
            (Count{{"r0", 4}}));
}

TEST(TopologyTest, ALevelThatThePoolLacksIsSaidWithTheLevelsThatItHas) {
  const auto result =
      Place(JobBuilder("j").On(kN).Pods(1).Topology("row", kPreferred), Racks(1, 1));
  EXPECT_EQ(result.obstacle, Obstacle::kUnknownTopology);
  EXPECT_EQ(result.unblocked_by,
            "pool nvidia names row in its topologyKeys, or role worker asks for a level that it "
            "has (zone, rack, node)");
}

TEST(TopologyTest, NodesWithoutTheLabelAreNamed) {
  const std::vector<Node> nodes = {NodeBuilder("a").Gpus(kN, 8), NodeBuilder("b").Gpus(kN, 8)};
  const auto result =
      Place(JobBuilder("j").On(kN).Pods(2).Topology("rack", kRequired), nodes, {}, {"rack"});
  EXPECT_EQ(result.obstacle, Obstacle::kUnknownTopology);
  EXPECT_EQ(result.unblocked_by,
            "nodes of pool nvidia get the label rack and those of the wider levels, so that one "
            "rack has room for all 2 pods of worker (there is none, 2 nodes are in none)");
}

TEST(TopologyTest, RanksRunRackByRack) {
  // Nodes a, c in rack 1, b, d in rack 0: by name alone the ranks would cross over each time.
  std::vector<Node> nodes;
  for (const char* name : {"a", "b", "c", "d"}) {
    nodes.push_back(NodeBuilder(name).Gpus(kN, 1).Label(
        "rack", std::string("r") + (*name == 'a' || *name == 'c' ? "1" : "0")));
  }
  const auto result =
      Place(JobBuilder("j").On(kN).Pods(4).Topology("rack", kPreferred), nodes, {}, {"rack"});
  std::vector<std::string> order;
  for (const auto& pod : result.pods) order.push_back(pod.node.value);
  EXPECT_THAT(order, ElementsAre("b", "d", "a", "c"));
}

TEST(SpaceTest, TellsTheLargestFreeDomainOfEachLevelAndTheFragmentation) {
  auto nodes = Racks(2, 2);
  nodes[3].ready = false;
  const Books books = MakeBooks({PodOn("a", "r0-0", kN, 6), PodOn("b", "r0-1", kN, 8)});
  const std::vector<const Node*> pointers = {&nodes[3], &nodes[2], &nodes[1], &nodes[0]};
  const Space space = SpaceOf(pointers, books, kN, kKeys);
  ASSERT_EQ(space.largest_free.size(), 3U);
  EXPECT_EQ(space.largest_free[0].domain, "z0");
  EXPECT_EQ(space.largest_free[0].devices, 10);
  EXPECT_EQ(space.largest_free[1].domain, "z0/r1");
  EXPECT_EQ(space.largest_free[1].devices, 8);
  EXPECT_EQ(space.largest_free[2].level, "node");
  EXPECT_EQ(space.largest_free[2].domain, "r1-0");
  EXPECT_EQ(space.fragmentation_milli, 200);  // 2 of 10 beside held ones
  EXPECT_EQ(SpaceOf({&nodes[3]}, books, kN, kKeys).fragmentation_milli, std::nullopt);
}

}  // namespace
}  // namespace bimetal::core::placement
