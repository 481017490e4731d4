#include "core/admission/breakers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace bimetal::core::admission {
namespace {

using ::testing::HasSubstr;

class BreakersTest : public ::testing::Test {
 protected:
  BreakersTest() {
    for (int i = 0; i < 10; ++i) {
      nodes[NodeName{"n" + std::to_string(i)}] = NodeStanding{.driver_version = "550",
                                                              .running = false,
                                                              .open = true,
                                                              .troubled = false,
                                                              .failed_checks = {}};
    }
  }
  NodeStanding& Node(int i) { return nodes[NodeName{"n" + std::to_string(i)}]; }
  void Fail(int i, const std::string& check) {
    Node(i).open = false;
    Node(i).troubled = true;
    Node(i).failed_checks = {check};
  }
  BreakerState State() const { return Assess(nodes, limits); }

  std::map<NodeName, NodeStanding> nodes;
  BreakerLimits limits;
};

TEST_F(BreakersTest, AHealthyPoolHoldsNothing) {
  EXPECT_FALSE(State().Open());
  EXPECT_EQ(State().Text(limits), "");
  EXPECT_EQ(
      State().NoSlot(limits) + State().Held("550", limits) + State().HeldPlanned("550", limits),
      "");
}

TEST_F(BreakersTest, RunsAreCountedAndTheLastSlotIsTheLast) {
  limits.max_runs = 2;
  Node(0).running = true;
  EXPECT_EQ(State().free_slots, 1);
  Node(1).running = true;
  EXPECT_EQ(State().free_slots, 0);
  EXPECT_THAT(State().NoSlot(limits), HasSubstr("2 validation runs under way"));
  EXPECT_FALSE(State().Open()) << "a queue asks for nobody";
}

TEST_F(BreakersTest, ADriverChangeOnEveryNodeIsProvenInTurnsNotHeld) {
  for (int i = 0; i < 10; ++i) Node(i).open = false;
  EXPECT_EQ(State().Held("560", limits), "") << "they wait for their run, nothing is wrong yet";
  EXPECT_THAT(State().HeldPlanned("560", limits), HasSubstr("10 of 10 nodes of the pool are shut"));
}

TEST_F(BreakersTest, TheSameFailureUnderTheSameDriverStopsThatDriverAlone) {
  Fail(0, "memory");
  Fail(1, "memory");
  EXPECT_FALSE(State().Open());
  Fail(2, "gemm-fp16");
  EXPECT_FALSE(State().Open()) << "another check";
  Fail(3, "memory");
  Node(3).driver_version = "560";
  EXPECT_FALSE(State().Open()) << "another driver";
  Fail(4, "memory");
  EXPECT_TRUE(State().Open());
  EXPECT_THAT(State().Held("550", limits),
              HasSubstr("3 nodes failed check memory under driver 550; revalidate a node"));
  EXPECT_EQ(State().Held("560", limits), "");
  Node(4).failed_checks.clear();
  EXPECT_FALSE(State().Open()) << "repaired nodes close it";
}

TEST_F(BreakersTest, TroubleInMoreThanTheShareStopsEveryDriver) {
  limits.max_same_failures = 4;
  for (int i = 0; i < 5; ++i) Fail(i, "check-" + std::to_string(i));
  EXPECT_FALSE(State().Open()) << "half is not more than half";
  Fail(5, "check-5");
  EXPECT_THAT(State().Held("560", limits), HasSubstr("6 of 10 nodes of the pool are in trouble"));
  EXPECT_THAT(State().Text(limits), HasSubstr("no node that passed before is run again"));
}

TEST_F(BreakersTest, AFewBadNodesOfASmallPoolAreNoPattern) {
  while (nodes.size() > 2) nodes.erase(nodes.begin());
  for (auto& [name, node] : nodes) node.troubled = true, node.open = false;
  EXPECT_EQ(State().Held("550", limits), "");
}

}  // namespace
}  // namespace bimetal::core::admission
