#include "core/model/service.h"

#include <functional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace bimetal::core {
namespace {

using ::testing::HasSubstr;

api::GPUService Good() {
  api::GPUService service;
  service.mutable_metadata()->set_uid("u1");
  service.mutable_metadata()->set_name("chat");
  service.mutable_metadata()->set_namespace_("team");
  for (const char* vendor : {"nvidia", "amd"}) {
    auto* variant = service.mutable_spec()->add_variants();
    variant->set_name(std::string("on-") + vendor);
    variant->set_vendor(vendor);
    variant->set_devices_per_pod(2);
    variant->set_image("image");
  }
  service.mutable_spec()->set_replicas(4);
  auto* container = service.mutable_spec()->mutable_template_()->mutable_spec()->add_containers();
  container->set_name("main");
  (*container->mutable_resources()->mutable_requests())["cpu"] = "2";
  return service;
}

TEST(ServiceFromApiTest, AReplicaIsAJobOfOnePodOnEitherVendor) {
  const auto service = ServiceFromApi(Good(), 7);
  ASSERT_TRUE(service) << service.error().message;
  EXPECT_EQ(service->replica.priority, 7);
  EXPECT_EQ(PodCount(service->replica), 1);
  EXPECT_EQ(service->replica.roles[0].requests.cpu_milli, 2000);
  ASSERT_EQ(service->replica.variants.size(), 2U);
  EXPECT_EQ(service->replica.variants[1].vendor, Vendor::kAmd);
  EXPECT_EQ(service->replicas, 4);
  EXPECT_EQ(service->surge, 1);
  EXPECT_EQ(service->unavailable, 1);
  EXPECT_EQ(service->variants[0].port, 8080);
}

TEST(ServiceFromApiTest, SharesAreRoundedSoThatARolloutCanGoOnAndLosesLittle) {
  api::GPUService from = Good();
  from.mutable_spec()->set_replicas(3);
  from.mutable_spec()->mutable_rollout()->set_max_surge("50%");
  from.mutable_spec()->mutable_rollout()->set_max_unavailable("50%");
  auto service = ServiceFromApi(from, 0);
  ASSERT_TRUE(service);
  EXPECT_EQ(service->surge, 2);
  EXPECT_EQ(service->unavailable, 1);
  from.mutable_spec()->mutable_rollout()->set_max_surge("0");
  from.mutable_spec()->mutable_rollout()->set_max_unavailable("0%");
  service = ServiceFromApi(from, 0);
  ASSERT_TRUE(service);
  EXPECT_EQ(service->unavailable, 1) << "else it could never go on";
}

TEST(ServiceFromApiTest, OnlyWhatMakesAnotherPodMakesAnotherRevision) {
  const auto before = ServiceFromApi(Good(), 0);
  ASSERT_TRUE(before);
  const auto revisions = [&](const std::function<void(api::GPUServiceSpec&)>& change) {
    api::GPUService from = Good();
    change(*from.mutable_spec());
    const auto after = ServiceFromApi(from, 0);
    EXPECT_TRUE(after) << after.error().message;
    return std::pair(after->variants[0].revision != before->variants[0].revision,
                     after->variants[1].revision != before->variants[1].revision);
  };
  using Pair = std::pair<bool, bool>;
  EXPECT_EQ(revisions([](auto&) {}), Pair(false, false));
  EXPECT_EQ(revisions([](auto& spec) {
              spec.set_replicas(9);
              spec.set_suspend(true);
              spec.set_port(81);
              spec.mutable_variants(0)->set_min_replicas(1);
              spec.mutable_variants(0)->set_max_replicas(2);
              spec.mutable_variants(0)->set_weight(3);
              spec.mutable_rollout()->set_max_surge("3");
            }),
            Pair(false, false));
  EXPECT_EQ(revisions([](auto& spec) { spec.mutable_variants(1)->set_image("other"); }),
            Pair(false, true));
  EXPECT_EQ(revisions([](auto& spec) {
              (*spec.mutable_template_()->mutable_metadata()->mutable_labels())["a"] = "b";
            }),
            Pair(true, true));
}

TEST(ServiceFromApiTest, NamesTheFieldAndTheRemedy) {
  const auto error = [](const std::function<void(api::GPUServiceSpec&)>& change) {
    api::GPUService from = Good();
    change(*from.mutable_spec());
    const auto service = ServiceFromApi(from, 0);
    return service ? std::string("accepted") : service.error().message;
  };
  EXPECT_THAT(error([](auto& s) { s.set_replicas(-1); }), HasSubstr("spec.replicas: -1"));
  EXPECT_THAT(error([](auto& s) { s.set_replicas(100'000); }), HasSubstr("spec.replicas: 100000"));
  EXPECT_THAT(error([](auto& s) { s.clear_variants(); }), HasSubstr("spec.variants"));
  EXPECT_THAT(error([](auto& s) { s.set_port(70'000); }), HasSubstr("spec.port: 70000"));
  EXPECT_THAT(error([](auto& s) { s.mutable_variants(1)->set_port(-5); }),
              HasSubstr("spec.variants[1].port: -5"));
  EXPECT_THAT(error([](auto& s) {
                s.mutable_variants(0)->set_min_replicas(3);
                s.mutable_variants(0)->set_max_replicas(2);
              }),
              HasSubstr("spec.variants[0].maxReplicas: 2 is under 3"));
  EXPECT_THAT(error([](auto& s) { s.mutable_rollout()->set_max_surge("many"); }),
              HasSubstr("spec.rollout.maxSurge: \"many\""));
  EXPECT_THAT(error([](auto& s) { s.mutable_rollout()->set_max_unavailable("101%"); }),
              HasSubstr("spec.rollout.maxUnavailable: \"101%\" is over 100%"));
  EXPECT_THAT(error([](auto& s) { s.mutable_disruption()->set_min_runtime("-1h"); }),
              HasSubstr("spec.disruption.minRuntime"));
  EXPECT_THAT(error([](auto& s) { s.mutable_readiness()->set_path("health"); }),
              HasSubstr("spec.readiness.path: \"health\" does not begin with /"));
  EXPECT_THAT(error([](auto& s) {
                s.mutable_template_()->mutable_spec()->mutable_containers(0)->set_image("x");
              }),
              HasSubstr("spec.template.spec.containers[0].image"));
}

// A variant of a service is read as one of a job.
TEST(ServiceVariantTest, HasEveryFieldOfAJobsVariantByNameNumberAndType) {
  const auto* of_job = api::Variant::descriptor();
  const auto* of_service = api::ServiceVariant::descriptor();
  for (int i = 0; i < of_job->field_count(); ++i) {
    const auto* field = of_job->field(i);
    const auto* same = of_service->FindFieldByNumber(field->number());
    ASSERT_NE(same, nullptr) << "ServiceVariant lacks " << field->name();
    EXPECT_EQ(same->name(), field->name());
    EXPECT_EQ(same->type(), field->type()) << field->name();
    EXPECT_EQ(same->label(), field->label()) << field->name();
    EXPECT_EQ(same->message_type(), field->message_type()) << field->name();
  }
}

TEST(ServiceVariantTest, KeepsWhatAJobsVariantKnows) {
  const auto variant = VariantOf(Good().spec().variants(1));
  EXPECT_EQ(variant.name(), "on-amd");
  EXPECT_EQ(variant.devices_per_pod(), 2);
}

}  // namespace
}  // namespace bimetal::core
