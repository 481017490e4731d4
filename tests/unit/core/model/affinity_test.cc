#include "core/model/affinity.h"

#include <gtest/gtest.h>

#include "core/model/job.h"
#include "core/placement/gang.h"
#include "tests/unit/core/builders.h"

namespace bimetal::core {
namespace {

Node Rack(const std::string& name, const std::string& rack) {
  Node node;
  node.name = NodeName{name};
  node.labels = {{"rack", rack}, {"size", "8"}};
  return node;
}

NodeTerm Label(const std::string& key, const std::string& op, std::vector<std::string> values) {
  return {.labels = {{key, op, std::move(values)}}, .fields = {}};
}

TEST(AffinityTest, EachOperatorIsKubernetesOwn) {
  const Node node = Rack("n1", "a");
  const struct {
    NodeTerm term;
    bool allowed;
  } cases[] = {
      {Label("rack", "In", {"b", "a"}), true},
      {Label("rack", "In", {"b"}), false},
      {Label("none", "In", {"a"}), false},
      {Label("rack", "NotIn", {"b"}), true},
      {Label("rack", "NotIn", {"a"}), false},
      {Label("none", "NotIn", {"a"}), true},  // a label that is not there is in no list
      {Label("rack", "Exists", {}), true},
      {Label("none", "Exists", {}), false},
      {Label("rack", "DoesNotExist", {}), false},
      {Label("none", "DoesNotExist", {}), true},
      {Label("size", "Gt", {"7"}), true},
      {Label("size", "Gt", {"8"}), false},
      {Label("size", "Lt", {"9"}), true},
      {Label("rack", "Gt", {"1"}), false},      // not a number
      {Label("size", "Gt", {"1x"}), false},     // neither
      {Label("size", "Gt", {}), false},         // no bound
      {Label("none", "Lt", {"9"}), false},      // no number
      {Label("rack", "Perhaps", {"a"}), false}  // no such operator
  };
  for (const auto& one : cases) {
    EXPECT_EQ(AffinityAllows({one.term}, node), one.allowed)
        << one.term.labels[0].key << " " << one.term.labels[0].op;
  }
}

TEST(AffinityTest, TermsAreAlternativesAndTheirLinesMustAllHold) {
  const Node a = Rack("n1", "a"), b = Rack("n2", "b");
  NodeTerm both = Label("rack", "In", {"a"});
  both.fields = {{"metadata.name", "In", {"n1"}}};
  EXPECT_TRUE(AffinityAllows({both}, a));
  both.fields[0].values = {"n2"};
  EXPECT_FALSE(AffinityAllows({both}, a));
  EXPECT_TRUE(AffinityAllows({both, Label("rack", "In", {"b"})}, b));
  both.fields[0] = {"metadata.other", "In", {"n1"}};
  EXPECT_FALSE(AffinityAllows({both}, a));
}

TEST(AffinityTest, NoTermsAllowEveryNodeAndAnEmptyTermNone) {
  EXPECT_TRUE(AffinityAllows({}, Rack("n1", "a")));
  EXPECT_FALSE(AffinityAllows({NodeTerm{}}, Rack("n1", "a")));
}

TEST(AffinityTest, AGangIsPlacedOnlyWhereItsAffinityAllows) {
  using testing::NodeBuilder;
  const std::vector<Node> nodes = {NodeBuilder("n1").Gpus(Vendor::kAmd, 8).Label("rack", "a"),
                                   NodeBuilder("n2").Gpus(Vendor::kAmd, 8).Label("rack", "b")};
  Job job = testing::JobBuilder("j").On(Vendor::kAmd, 4).Pods(2);
  job.roles[0].node_affinity = {Label("rack", "In", {"b"})};
  const auto in_b = placement::PlaceGang(job, job.variants[0], nodes, {});
  ASSERT_EQ(in_b.pods.size(), 2U);
  for (const auto& pod : in_b.pods) EXPECT_EQ(pod.node.value, "n2");
  job.roles[0].replicas = 3;  // it would fit on both nodes together
  EXPECT_TRUE(placement::PlaceGang(job, job.variants[0], nodes, {}).pods.empty());
}

}  // namespace
}  // namespace bimetal::core
