#include "core/model/job.h"

#include <functional>
#include <limits>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/gpujob.pb.h"

namespace bimetal::core {
namespace {

using ::testing::HasSubstr;

api::GPUJob Good() {
  api::GPUJob job;
  job.mutable_metadata()->set_uid("u1");
  job.mutable_metadata()->set_name("train");
  job.mutable_metadata()->set_namespace_("team");
  job.mutable_metadata()->set_creation_timestamp("2026-01-31T12:00:00Z");
  for (const char* vendor : {"nvidia", "amd"}) {
    auto* variant = job.mutable_spec()->add_variants();
    variant->set_name(std::string("on-") + vendor);
    variant->set_vendor(vendor);
    variant->set_devices_per_pod(2);
    variant->set_image("image");
  }
  auto* role = job.mutable_spec()->add_roles();
  role->set_name("worker");
  role->set_replicas(4);
  auto* container = role->mutable_template_()->mutable_spec()->add_containers();
  container->set_name("main");
  (*container->mutable_resources()->mutable_requests())["cpu"] = "2";
  return job;
}

api::Container* Main(api::GPUJob& job) {
  return job.mutable_spec()
      ->mutable_roles(0)
      ->mutable_template_()
      ->mutable_spec()
      ->mutable_containers(0);
}

TEST(JobFromApiTest, ReadsWhatPlacementNeeds) {
  api::GPUJob from = Good();
  auto* selector = from.mutable_spec()->mutable_variants(0)->mutable_device_selector();
  selector->add_models("H200");
  selector->set_min_memory("80Gi");
  auto* spec = from.mutable_spec()->mutable_roles(0)->mutable_template_()->mutable_spec();
  (*spec->mutable_node_selector())["zone"] = "a";
  spec->add_tolerations()->set_operator_("Exists");

  const auto job = JobFromApi(from, 7);
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_EQ(job->uid, Uid{"u1"});
  EXPECT_EQ(job->queue, QueueName{"default"});
  EXPECT_EQ(job->priority, 7);
  EXPECT_EQ(job->created, ParseTime("2026-01-31T12:00:00Z").value());
  EXPECT_EQ(job->retry_limit, 2);
  EXPECT_EQ(job->variants[0].models, std::vector<std::string>{"H200"});
  EXPECT_EQ(job->variants[0].min_memory_bytes, std::int64_t{80} << 30);
  EXPECT_EQ(job->roles[0].requests, (Resources{.cpu_milli = 2000, .memory_bytes = 0, .pods = 1}));
  EXPECT_EQ(job->roles[0].node_selector.at("zone"), "a");
  EXPECT_EQ(job->roles[0].tolerations.size(), 1U);
  EXPECT_EQ(PodCount(*job), 4);
  EXPECT_EQ(DevicesNeeded(*job, job->variants[0]), 8);
}

TEST(JobFromApiTest, ARoleWithoutTemplateAsksForNothingButAPodSlot) {
  api::GPUJob from = Good();
  from.mutable_spec()->mutable_roles(0)->clear_template_();
  EXPECT_EQ(JobFromApi(from, 0).value().roles[0].requests, (Resources{.pods = 1}));
}

TEST(JobFromApiTest, ReadsPoliciesAndLimits) {
  api::GPUJob from = Good();
  auto* spec = from.mutable_spec();
  spec->mutable_selection()->set_policy("BestValue");
  spec->mutable_selection()->set_switch_on_restart("Always");
  spec->set_preemption("Never");
  spec->mutable_variants(0)->set_relative_throughput("1.8");
  spec->mutable_variants(1)->set_max_price_per_hour("2.50");
  spec->mutable_roles(0)->set_min_replicas(2);
  spec->mutable_roles(0)->mutable_topology()->set_level("rack");
  spec->mutable_limits()->set_max_duration("1h");
  spec->mutable_limits()->mutable_budget()->set_amount("12.5");
  spec->mutable_limits()->mutable_budget()->set_currency("EUR");
  spec->mutable_checkpoint()->set_path("/ckpt");
  auto* rule = spec->mutable_retry()->add_rules();
  rule->set_class_("NodeLost");
  rule->set_action("RetryElsewhere");

  const auto job = JobFromApi(from, 0);
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_EQ(job->selection, SelectionPolicy::kBestValue);
  EXPECT_EQ(job->switch_on_restart, SwitchOnRestart::kAlways);
  EXPECT_EQ(job->preemption, Preemption::kNever);
  EXPECT_EQ(job->variants[0].relative_throughput_milli, 1800);
  EXPECT_EQ(job->variants[1].max_nano_per_hour, 2'500'000'000);
  EXPECT_EQ(job->roles[0].min_replicas, 2);
  EXPECT_EQ(job->roles[0].topology->mode, TopologyMode::kRequired);
  EXPECT_EQ(job->max_duration, Minutes(60));
  EXPECT_EQ(job->budget->nano_amount, 12'500'000'000);
  EXPECT_EQ(job->checkpoint->grace_seconds, 30);
  EXPECT_EQ(RuleFor(*job, FailureClass::kNodeLost).action, RetryAction::kRetryElsewhere);
  EXPECT_FALSE(RuleFor(*job, FailureClass::kNodeLost).counts);
  EXPECT_EQ(RuleFor(*job, FailureClass::kTimeout).action, RetryAction::kFail);
  EXPECT_TRUE(RuleFor(*job, FailureClass::kUserError).counts);
}

TEST(JobFromApiTest, RetryLimitZeroIsNotTheDefault) {
  api::GPUJob from = Good();
  from.mutable_spec()->mutable_retry()->set_limit(0);
  EXPECT_EQ(JobFromApi(from, 0).value().retry_limit, 0);
}

struct BadCase {
  const char* name;
  std::function<void(api::GPUJob&)> spoil;
  const char* message;  // a part of it
};

class BadJobTest : public ::testing::TestWithParam<BadCase> {};

TEST_P(BadJobTest, IsRefusedWithFieldAndRemedy) {
  api::GPUJob from = Good();
  GetParam().spoil(from);
  const auto job = JobFromApi(from, 0);
  ASSERT_FALSE(job);
  EXPECT_EQ(job.error().code, ErrorCode::kInvalid);
  EXPECT_THAT(job.error().message, HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    All, BadJobTest,
    ::testing::Values(
        BadCase{"NoUid", [](auto& j) { j.mutable_metadata()->clear_uid(); }, "metadata.uid: "},
        BadCase{"LongName", [](auto& j) { j.mutable_metadata()->set_name(std::string(41, 'a')); },
                "metadata.name: "},
        BadCase{"DottedName", [](auto& j) { j.mutable_metadata()->set_name("a.b"); },
                "metadata.name: "},
        BadCase{"DigitName", [](auto& j) { j.mutable_metadata()->set_name("1a"); },
                "let it begin with a letter"},
        BadCase{"BadTime",
                [](auto& j) { j.mutable_metadata()->set_creation_timestamp("yesterday"); },
                "metadata.creationTimestamp: "},
        BadCase{"NoVariant", [](auto& j) { j.mutable_spec()->clear_variants(); },
                "spec.variants: needs at least 1"},
        BadCase{"TwoOfOneName",
                [](auto& j) { j.mutable_spec()->mutable_variants(1)->set_name("on-nvidia"); },
                "spec.variants[1].name: \"on-nvidia\" is there twice"},
        BadCase{"UnknownVendor",
                [](auto& j) { j.mutable_spec()->mutable_variants(1)->set_vendor("intel"); },
                "spec.variants[1].vendor: vendor \"intel\" is unknown; use \"amd\" or"},
        BadCase{"NoDevices",
                [](auto& j) { j.mutable_spec()->mutable_variants(0)->set_devices_per_pod(0); },
                "spec.variants[0].devicesPerPod: 0 is under 1"},
        BadCase{"HugeDevices",
                [](auto& j) {
                  j.mutable_spec()->mutable_variants(0)->set_devices_per_pod(
                      std::numeric_limits<int>::max());
                },
                "spec.variants[0].devicesPerPod: 2147483647 is over 128"},
        BadCase{"NegativeDevices",
                [](auto& j) { j.mutable_spec()->mutable_variants(0)->set_devices_per_pod(-8); },
                "spec.variants[0].devicesPerPod: -8 is under 1"},
        BadCase{"NoImage", [](auto& j) { j.mutable_spec()->mutable_variants(0)->clear_image(); },
                "spec.variants[0].image: "},
        BadCase{"BadMemory",
                [](auto& j) {
                  j.mutable_spec()->mutable_variants(0)->mutable_device_selector()->set_min_memory(
                      "lots");
                },
                "spec.variants[0].deviceSelector.minMemory: "},
        BadCase{"NegativeMemory",
                [](auto& j) {
                  j.mutable_spec()->mutable_variants(0)->mutable_device_selector()->set_min_memory(
                      "-1Gi");
                },
                "is negative"},
        BadCase{"TwoOfOneModel",
                [](auto& j) {
                  auto* s = j.mutable_spec()->mutable_variants(0)->mutable_device_selector();
                  s->add_models("X");
                  s->add_models("X");
                },
                "spec.variants[0].deviceSelector.models[1]: "},
        BadCase{"BadPolicy",
                [](auto& j) { j.mutable_spec()->mutable_selection()->set_policy("Random"); },
                "spec.selection.policy: "},
        BadCase{"FallbackWithoutOrder",
                [](auto& j) {
                  auto* selection = j.mutable_spec()->mutable_selection();
                  selection->set_policy("LowestCost");
                  selection->set_fallback_after("5m");
                },
                "spec.selection.fallbackAfter: needs policy InOrder"},
        BadCase{"BadPreemption", [](auto& j) { j.mutable_spec()->set_preemption("Sometimes"); },
                "spec.preemption: \"Sometimes\" is unknown; use one of Allowed, AfterMinRuntime, Never"},
        BadCase{"ZeroMaxDuration",
                [](auto& j) { j.mutable_spec()->mutable_limits()->set_max_duration("0s"); },
                "spec.limits.maxDuration: is zero"},
        BadCase{"NegativeDeadline",
                [](auto& j) { j.mutable_spec()->mutable_limits()->set_start_deadline("-5m"); },
                "spec.limits.startDeadline: "},
        BadCase{"NegativeBudget",
                [](auto& j) {
                  auto* budget = j.mutable_spec()->mutable_limits()->mutable_budget();
                  budget->set_amount("-1");
                  budget->set_currency("USD");
                },
                "spec.limits.budget.amount: "},
        BadCase{"BudgetWithoutCurrency",
                [](auto& j) {
                  j.mutable_spec()->mutable_limits()->mutable_budget()->set_amount("1");
                },
                "spec.limits.budget.currency: "},
        BadCase{"TwoRulesForOneClass",
                [](auto& j) {
                  for (const char* action : {"Retry", "Fail"}) {
                    auto* rule = j.mutable_spec()->mutable_retry()->add_rules();
                    rule->set_class_("NodeLost");
                    rule->set_action(action);
                  }
                },
                "spec.retry.rules[1].class: \"NodeLost\" is there twice"},
        BadCase{"UnknownClass",
                [](auto& j) {
                  auto* rule = j.mutable_spec()->mutable_retry()->add_rules();
                  rule->set_class_("BadLuck");
                  rule->set_action("Retry");
                },
                "spec.retry.rules[0].class: \"BadLuck\" is unknown"},
        BadCase{"RelativeCheckpointPath",
                [](auto& j) { j.mutable_spec()->mutable_checkpoint()->set_path("ckpt"); },
                "spec.checkpoint.path: \"ckpt\" is not absolute"},
        BadCase{"ZeroThroughput",
                [](auto& j) { j.mutable_spec()->mutable_variants(0)->set_relative_throughput("0"); },
                "spec.variants[0].relativeThroughput: "},
        BadCase{"MoreThanAll",
                [](auto& j) { j.mutable_spec()->mutable_roles(0)->set_min_replicas(1000); },
                "spec.roles[0].minReplicas: 1000 is over"},
        BadCase{"NoTopologyLevel",
                [](auto& j) { j.mutable_spec()->mutable_roles(0)->mutable_topology(); },
                "spec.roles[0].topology.level: "},
        BadCase{"NoRole", [](auto& j) { j.mutable_spec()->clear_roles(); },
                "spec.roles: needs at least 1"},
        BadCase{"ZeroReplicas",
                [](auto& j) { j.mutable_spec()->mutable_roles(0)->set_replicas(0); },
                "spec.roles[0].replicas: 0 is under 1; use at least one pod"},
        BadCase{"TenThousandReplicas",
                [](auto& j) { j.mutable_spec()->mutable_roles(0)->set_replicas(10'000); },
                "spec.roles[0].replicas: 10000 is over 8192; use fewer pods"},
        BadCase{"TooManyPodsTogether",
                [](auto& j) {
                  for (const char* name : {"a", "b"}) {
                    auto* role = j.mutable_spec()->add_roles();
                    role->set_name(name);
                    role->set_replicas(4096);
                  }
                },
                "spec.roles: 8196 is over 8192"},
        BadCase{"TwoRolesOfOneName",
                [](auto& j) { *j.mutable_spec()->add_roles() = j.spec().roles(0); },
                "spec.roles[1].name: \"worker\" is there twice"},
        BadCase{"BadRoleName",
                [](auto& j) { j.mutable_spec()->mutable_roles(0)->set_name("Worker"); },
                "spec.roles[0].name: "},
        BadCase{"NegativeRetries",
                [](auto& j) { j.mutable_spec()->mutable_retry()->set_limit(-1); },
                "spec.retry.limit: -1 is under 0"},
        BadCase{"GpuInTemplate",
                [](auto& j) {
                  (*Main(j)->mutable_resources()->mutable_limits())["nvidia.com/gpu"] = "1";
                },
                "spec.roles[0].template.spec.containers[0].resources.limits[\"nvidia.com/gpu\"]: "
                "GPU resources are not allowed in a role's template; set devicesPerPod"},
        BadCase{"GpuInInitContainer",
                [](auto& j) {
                  auto* c = j.mutable_spec()
                                ->mutable_roles(0)
                                ->mutable_template_()
                                ->mutable_spec()
                                ->add_init_containers();
                  c->set_name("init");
                  c->set_image("i");
                  (*c->mutable_resources()->mutable_requests())["amd.com/gpu"] = "1";
                },
                "initContainers[0].resources.requests[\"amd.com/gpu\"]"},
        BadCase{"ImageInTemplate", [](auto& j) { Main(j)->set_image("mine"); },
                "spec.roles[0].template.spec.containers[0].image: the first container takes"},
        BadCase{"SecondContainerWithoutImage",
                [](auto& j) {
                  j.mutable_spec()
                      ->mutable_roles(0)
                      ->mutable_template_()
                      ->mutable_spec()
                      ->add_containers()
                      ->set_name("side");
                },
                "spec.roles[0].template.spec.containers[1].image: is empty"},
        BadCase{"NodeName",
                [](auto& j) {
                  j.mutable_spec()
                      ->mutable_roles(0)
                      ->mutable_template_()
                      ->mutable_spec()
                      ->set_node_name("n1");
                },
                "spec.roles[0].template.spec.nodeName: "},
        BadCase{
            "BadCpu",
            [](auto& j) { (*Main(j)->mutable_resources()->mutable_requests())["cpu"] = "much"; },
            "spec.roles[0].template.spec.containers[0].resources.requests[\"cpu\"]: "},
        BadCase{"ToleratesOurLock",
                [](auto& j) {
                  auto* toleration = j.mutable_spec()
                                         ->mutable_roles(0)
                                         ->mutable_template_()
                                         ->mutable_spec()
                                         ->add_tolerations();
                  toleration->set_key("bimetal.dev/unvalidated");
                  toleration->set_operator_("Exists");
                },
                "spec.roles[0].template.spec.tolerations[0].key: "},
        BadCase{"BadTolerationOperator",
                [](auto& j) {
                  j.mutable_spec()
                      ->mutable_roles(0)
                      ->mutable_template_()
                      ->mutable_spec()
                      ->add_tolerations()
                      ->set_operator_("Maybe");
                },
                "spec.roles[0].template.spec.tolerations[0].operator: "}),
    [](const auto& bad) { return bad.param.name; });

TEST(JobCountsTest, CountsOfUncheckedJobsDoNotWrap) {
  Job job;
  job.roles.resize(2);
  for (auto& role : job.roles) role.replicas = std::numeric_limits<std::int64_t>::max();
  Variant variant;
  variant.devices_per_pod = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(PodCount(job), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(DevicesNeeded(job, variant), std::numeric_limits<std::int64_t>::max());
}

}  // namespace
}  // namespace bimetal::core
