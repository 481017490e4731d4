#include "core/placement/gang.h"

#include <map>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/core/builders.h"

namespace bimetal::core::placement {
namespace {

using ::testing::HasSubstr;
using testing::JobBuilder;
using testing::NodeBuilder;
using testing::PodOn;

constexpr Vendor kN = Vendor::kNvidia;

GangResult Place(const Job& job, const std::vector<Node>& nodes,
                 const std::vector<Pod>& pods = {}) {
  return PlaceGang(job, job.variants.front(), nodes, MakeBooks(pods));
}

std::map<std::string, int> PodsByNode(const GangResult& result) {
  std::map<std::string, int> count;
  for (const PodPlacement& pod : result.pods) ++count[pod.node.value];
  return count;
}

std::vector<Node> Nodes(int count, int gpus) {
  std::vector<Node> nodes;
  for (int i = 0; i < count; ++i) {
    nodes.push_back(NodeBuilder("n" + std::to_string(10 + i)).Gpus(kN, gpus));
  }
  return nodes;
}

TEST(PlaceGangTest, PlacesTheWholeGangWithRanksThatRunNodeByNode) {
  const auto result = Place(JobBuilder("j").On(kN, 2).Pods(4), Nodes(2, 4));
  ASSERT_EQ(result.pods.size(), 4U);
  EXPECT_EQ(result.obstacle, Obstacle::kNone);
  EXPECT_EQ(result.need, 8);
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(result.pods[static_cast<std::size_t>(i)].index, i);
    EXPECT_EQ(result.pods[static_cast<std::size_t>(i)].node.value, i < 2 ? "n10" : "n11");
  }
}

TEST(PlaceGangTest, OnePodTooManyPlacesNothing) {
  const auto result = Place(JobBuilder("j").On(kN, 2).Pods(5), Nodes(2, 4));
  EXPECT_TRUE(result.pods.empty());
  EXPECT_EQ(result.obstacle, Obstacle::kExceedsCapacity);
  EXPECT_THAT(result.unblocked_by, HasSubstr("grows from 8 to 10"));
}

TEST(PlaceGangTest, TakesTheFullestNodeThatHoldsAll) {
  const auto result = Place(JobBuilder("j").On(kN).Pods(2), Nodes(3, 8),
                            {PodOn("a", "n11", kN, 6), PodOn("b", "n12", kN, 7)});
  EXPECT_EQ(PodsByNode(result), (std::map<std::string, int>{{"n11", 2}}));
}

TEST(PlaceGangTest, UsesTheFewestNodesAndFitsTheRestBest) {
  // Free: 4, 8, 3. Twelve pods need the 8 and the 4; eleven the 8 and, best fit, the 3.
  const std::vector<Pod> held = {PodOn("a", "n10", kN, 4), PodOn("b", "n12", kN, 5)};
  EXPECT_EQ(PodsByNode(Place(JobBuilder("j").On(kN).Pods(12), Nodes(3, 8), held)),
            (std::map<std::string, int>{{"n10", 4}, {"n11", 8}}));
  EXPECT_EQ(PodsByNode(Place(JobBuilder("j").On(kN).Pods(11), Nodes(3, 8), held)),
            (std::map<std::string, int>{{"n11", 8}, {"n12", 3}}));
}

TEST(PlaceGangTest, ASecondRoleJoinsTheNodesOfTheFirst) {
  const Job job = JobBuilder("j").On(kN).Pods(3, 8000, "worker").Pods(1, 500, "leader");
  EXPECT_EQ(PodsByNode(Place(job, Nodes(3, 8))), (std::map<std::string, int>{{"n10", 4}}));
}

TEST(PlaceGangTest, ARoleWithFewNodesToChooseFromIsNotCrowdedOut) {
  const Job job = JobBuilder("j")
                      .On(kN, 4)
                      .Pods(1, 8000, "any")
                      .Pods(1, 500, "picky")
                      .Selecting("disk", "fast");
  const std::vector<Node> nodes = {NodeBuilder("n1").Gpus(kN, 4).Label("disk", "fast"),
                                   NodeBuilder("n2").Gpus(kN, 4)};
  const auto result = Place(job, nodes);
  ASSERT_EQ(result.pods.size(), 2U);
  EXPECT_EQ(result.pods[1].node.value, "n1");
}

TEST(PlaceGangTest, NeverUsesANodeThatCannotTakeThePod) {
  const std::vector<Node> nodes = {NodeBuilder("n1").Gpus(kN, 8).WithTaint("dedicated"),
                                   NodeBuilder("n2").Gpus(kN, 8).Cordoned(),
                                   NodeBuilder("n3").Gpus(kN, 8).NotReady(),
                                   NodeBuilder("n4").Gpus(kN, 8).PodSlots(0)};
  const auto refused = Place(JobBuilder("j").On(kN, 8).Pods(1), nodes);
  EXPECT_TRUE(refused.pods.empty());
  EXPECT_EQ(refused.obstacle, Obstacle::kWaitingForNodeCapacity);
  EXPECT_EQ(refused.free, 16);  // on nodes that are ready and not cordoned
  for (const char* cause : {"1 cordoned or held", "1 not ready", "1 with taints or labels",
                            "1 without a free pod slot"}) {
    EXPECT_THAT(refused.unblocked_by, HasSubstr(cause));
  }
  const auto tolerated = Place(JobBuilder("j").On(kN, 8).Pods(1).Tolerating("dedicated"), nodes);
  EXPECT_EQ(PodsByNode(tolerated), (std::map<std::string, int>{{"n1", 1}}));
}

TEST(PlaceGangTest, APreferenceTaintDoesNotBar) {
  const auto result = Place(JobBuilder("j").On(kN).Pods(1),
                            {NodeBuilder("n1").Gpus(kN, 8).WithTaint("slow", "PreferNoSchedule")});
  EXPECT_EQ(result.pods.size(), 1U);
}

TEST(PlaceGangTest, CpuTakenByAStrangerIsNodeCapacity) {
  const auto result =
      Place(JobBuilder("j").On(kN).Pods(1, 4000), {NodeBuilder("n1").Gpus(kN, 8).Cpu(8000)},
            {PodOn("stranger", "n1", kN, 0, 6000)});
  EXPECT_EQ(result.obstacle, Obstacle::kWaitingForNodeCapacity);
  EXPECT_EQ(result.free, 8);
  EXPECT_THAT(result.unblocked_by, HasSubstr("1 short of CPU"));
}

TEST(PlaceGangTest, HeldDevicesAreWaitedForWithTheNumberThatHelps) {
  const auto result =
      Place(JobBuilder("j").On(kN, 2).Pods(4), Nodes(1, 8), {PodOn("a", "n10", kN, 5)});
  EXPECT_EQ(result.obstacle, Obstacle::kWaitingForDevices);
  EXPECT_EQ(result.need, 8);
  EXPECT_EQ(result.free, 3);
  EXPECT_EQ(result.unblocked_by, "5 more devices of pool nvidia are released");
}

TEST(PlaceGangTest, ScatteredFreeDevicesAreNotEnough) {
  const auto result = Place(JobBuilder("j").On(kN, 8).Pods(1), Nodes(2, 8),
                            {PodOn("a", "n10", kN, 4), PodOn("b", "n11", kN, 4)});
  EXPECT_EQ(result.obstacle, Obstacle::kWaitingForDevices);
  EXPECT_EQ(result.free, 8);
  EXPECT_THAT(result.unblocked_by, HasSubstr("so that nodes have 8 free each"));
}

TEST(PlaceGangTest, ShutDevicesAreWaitedForUntilTheyPass) {
  const auto result =
      Place(JobBuilder("j").On(kN).Pods(4),
            {NodeBuilder("n1").Gpus(kN, 4).Shut(kN).WithTaint(std::string(kUnvalidatedTaint))});
  EXPECT_EQ(result.obstacle, Obstacle::kWaitingForValidation);
  EXPECT_EQ(result.free, 0);
  EXPECT_THAT(result.unblocked_by, HasSubstr("4 more devices of pool nvidia pass validation"));
}

TEST(PlaceGangTest, RunningJobsAreNamedBeforeDevicesThatMayStayShut) {
  const auto result = Place(JobBuilder("j").On(kN).Pods(4),
                            {NodeBuilder("n1").Gpus(kN, 4).Shut(kN), NodeBuilder("n2").Gpus(kN, 4)},
                            {PodOn("a", "n2", kN, 4)});
  EXPECT_EQ(result.obstacle, Obstacle::kWaitingForDevices);
}

TEST(PlaceGangTest, UnknownMemoryNeverMatchesAMinimum) {
  const std::vector<Node> nodes = {NodeBuilder("n1").Gpus(kN, 8).UnknownMemory(kN)};
  EXPECT_EQ(Place(JobBuilder("j").On(kN).MinMemory(1).Pods(1), nodes).obstacle,
            Obstacle::kNoMatchingDevice);
  EXPECT_EQ(Place(JobBuilder("j").On(kN).Pods(1), nodes).pods.size(), 1U);
}

TEST(PlaceGangTest, PrecisionsAndTheLevelOfThePassAreDemanded) {
  std::vector<Node> nodes = Nodes(2, 8);
  nodes[1].devices[kN].precisions = {"bf16", "fp8-ocp"};
  nodes[1].devices[kN].validation_level = 2;
  Job job = JobBuilder("j").On(kN).Pods(1);
  Variant& variant = job.variants[0];
  variant.precisions = {"fp8-ocp"};
  EXPECT_EQ(PodsByNode(Place(job, nodes)), (std::map<std::string, int>{{"n11", 1}}));
  variant.precisions = {};
  variant.min_validation_level = 2;
  EXPECT_EQ(PodsByNode(Place(job, nodes)), (std::map<std::string, int>{{"n11", 1}}));
  variant.precisions = {"fp4"};
  const auto refused = Place(job, nodes);
  EXPECT_EQ(refused.obstacle, Obstacle::kNoMatchingDevice);
  EXPECT_THAT(refused.unblocked_by, HasSubstr("(fp4 proven, L2 passed)"));
  // What a shut node will prove is not known before it has passed.
  nodes.push_back(NodeBuilder("n12").Gpus(kN, 8).Shut(kN));
  EXPECT_EQ(Place(job, nodes).obstacle, Obstacle::kWaitingForValidation);
}

TEST(PlaceGangTest, ANodeOfTwoModelsServesOnlyAJobThatTakesBoth) {
  const std::vector<Node> nodes = {
      NodeBuilder("n1").Gpus(kN, 2, "nvidia", "X").Gpus(kN, 2, "nvidia", "Y")};
  EXPECT_TRUE(Place(JobBuilder("j").On(kN).Models({"X"}).Pods(1), nodes).pods.empty());
  EXPECT_EQ(Place(JobBuilder("j").On(kN).Models({"X", "Y"}).Pods(1), nodes).pods.size(), 1U);
  EXPECT_EQ(Place(JobBuilder("j").On(kN).Models({"Z"}).Pods(1), nodes).obstacle,
            Obstacle::kNoMatchingDevice);
}

TEST(PlaceGangTest, ExceedsCapacitySaysWhatIsTooLarge) {
  EXPECT_THAT(Place(JobBuilder("j").On(kN, 16).Pods(1), Nodes(2, 8)).unblocked_by,
              HasSubstr("the largest has 8"));
  EXPECT_THAT(Place(JobBuilder("j").On(kN).Pods(1, 1'000'000), Nodes(2, 8)).unblocked_by,
              HasSubstr("less CPU or memory"));
  const auto unselected = Place(JobBuilder("j").On(kN).Pods(1).Selecting("zone", "z"), Nodes(2, 8));
  EXPECT_EQ(unselected.obstacle, Obstacle::kExceedsCapacity);
  EXPECT_THAT(unselected.unblocked_by, HasSubstr("node selectors"));
}

TEST(PlaceGangTest, NoNodesAtAllIsNoMatchingDevice) {
  EXPECT_EQ(Place(JobBuilder("j").On(kN).Pods(1), {}).obstacle, Obstacle::kNoMatchingDevice);
}

TEST(PlaceGangTest, FiveHundredPodsOnFiveThousandNodesStayWhole) {
  const auto result = Place(JobBuilder("j").On(kN).Pods(512), Nodes(5000, 8));
  EXPECT_EQ(result.pods.size(), 512U);
  EXPECT_EQ(PodsByNode(result).size(), 64U);
}

}  // namespace
}  // namespace bimetal::core::placement
