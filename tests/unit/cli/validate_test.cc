#include "cli/validate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/validate_plan.h"
#include "kube/codec/codec.h"

namespace bimetal::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr TimePoint kNow{1'800'000'000'000};

api::GPUNode Node(const std::string& name, const std::string& json) {
  api::GPUNode out;
  const Status read = kube::FromJson(R"({"status":)" + json + "}", &out);
  EXPECT_TRUE(read) << read.error().message;
  out.mutable_metadata()->set_name(name);
  return out;
}

api::GPUNode Sound(const std::string& name) {
  return Node(name, R"({"phase":"Admitted","reason":"Passed","pools":["nvidia"],
    "vendors":[{"vendor":"nvidia","phase":"Admitted","reason":"Passed","level":"L1",
      "driverVersion":"550.1","validatedTime":"2027-01-15T07:00:00Z","revalidated":"w",
      "rates":[{"check":"hbm-triad","unit":"GB/s","lowest":"2900","median":"3000","devices":2}]}],
    "devices":[{"id":"d0","vendor":"nvidia","model":"Test GPU"},
               {"id":"d1","vendor":"nvidia","model":"Test GPU"}]})");
}

api::GPUPool Pool() {
  api::GPUPool pool;
  pool.mutable_metadata()->set_name("nvidia");
  pool.mutable_spec()->set_vendor("nvidia");
  pool.mutable_spec()->set_validation_profile_name("strict");
  return pool;
}

Plan PlanOf(const std::string& spec, const std::vector<api::GPUNode>& nodes) {
  api::ValidationProfile profile;
  EXPECT_TRUE(kube::FromJson(R"({"metadata":{"name":"strict"},"spec":)" + spec + "}", &profile));
  const auto plan = PlanProfile(profile, {Pool()}, nodes, kNow);
  EXPECT_TRUE(plan);
  return *plan;
}

TEST(ValidatePlanTest, AProfileThatAsksForNothingNewChangesNothing) {
  const Plan plan = PlanOf(R"({"level":"L1"})", {Sound("n1"), Sound("n2")});
  EXPECT_EQ(plan.nodes, 2);
  EXPECT_THAT(plan.changes, IsEmpty());
}

TEST(ValidatePlanTest, ALevelAnExpiryAFloorAndAnExpectationEachSayWhatTheyChange) {
  Plan plan = PlanOf(R"({"level":"L2"})", {Sound("n1")});
  ASSERT_EQ(plan.changes.size(), 1U);
  EXPECT_TRUE(plan.changes[0].rerun);
  EXPECT_FALSE(plan.changes[0].quarantine);
  EXPECT_THAT(plan.changes[0].why, ElementsAre("passed at level L1, the profile asks for L2"));

  plan = PlanOf(R"({"level":"L1","expiresAfter":"1h0m0s"})", {Sound("n1")});
  EXPECT_THAT(plan.changes.at(0).why.at(0), HasSubstr("has expired after 1h"));

  const char* floors =
      R"({"level":"L1","floors":[{"model":"Test GPU","check":"hbm-triad","value":"2950","source":"ours"}]})";
  plan = PlanOf(floors, {Sound("n1")});
  EXPECT_TRUE(plan.changes.at(0).quarantine);
  EXPECT_THAT(plan.changes[0].why.at(0),
              HasSubstr("hbm-triad: 2900 GB/s is below the floor of 2950 GB/s (ours)"));

  plan = PlanOf(R"({"level":"L1","expect":{"devices":8,"driverVersion":"550.1"}})", {Sound("n1")});
  EXPECT_TRUE(plan.changes.at(0).quarantine);
  EXPECT_THAT(plan.changes[0].why,
              ElementsAre("inventory: the profile expects devices: 8, found 2"));
}

TEST(ValidatePlanTest, NodesOfPoolsWithAnotherProfileAreLeftAlone) {
  api::ValidationProfile profile;
  profile.mutable_metadata()->set_name("unused");
  const auto plan = PlanProfile(profile, {Pool()}, {Sound("n1")}, kNow);
  ASSERT_TRUE(plan);
  EXPECT_THAT(plan->pools, IsEmpty());
  EXPECT_THAT(RenderPlan(profile, *plan).note, HasSubstr("no GPUPool uses the profile unused"));
}

TEST(ValidatePlanTest, AFloorThatIsNoNumberIsRefusedByItsField) {
  api::ValidationProfile profile;
  auto* floor = profile.mutable_spec()->add_floors();
  floor->set_model("x");
  floor->set_check("hbm-triad");
  floor->set_value("fast");
  const auto plan = PlanProfile(profile, {}, {}, kNow);
  ASSERT_FALSE(plan);
  EXPECT_THAT(plan.error().message, HasSubstr("floors[0].value"));
}

TEST(ValidateTest, TheWordNamesTheLevelAndDiffersEachTime) {
  EXPECT_EQ(RevalidateWord("", kNow), "2027-01-15T08:00:00Z");
  EXPECT_EQ(RevalidateWord("L2", kNow), "L2 2027-01-15T08:00:00Z");
}

TEST(ValidateTest, AVerdictIsWhatFollowedTheWord) {
  api::GPUNode node = Sound("n1");
  EXPECT_FALSE(VerdictOn(node, "another word"));
  ASSERT_TRUE(VerdictOn(node, "w"));
  EXPECT_TRUE(VerdictOn(node, "w")->admitted);
  auto* vendor = node.mutable_status()->mutable_vendors(0);
  vendor->set_phase("Validating");
  EXPECT_FALSE(VerdictOn(node, "w"));
  vendor->set_phase("Quarantined");
  node.mutable_status()->set_phase("Quarantined");
  vendor->add_records()->set_due("Revalidating");
  EXPECT_FALSE(VerdictOn(node, "w")) << "in quarantine while it is run again";
  vendor->mutable_records(0)->clear_due();
  ASSERT_TRUE(VerdictOn(node, "w"));
  EXPECT_FALSE(VerdictOn(node, "w")->admitted);
}

}  // namespace
}  // namespace bimetal::cli
