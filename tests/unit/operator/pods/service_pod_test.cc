#include "operator/pods/service_pod.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kube/codec/codec.h"
#include "operator/state/store.h"

namespace bimetal::op {
namespace {

using testing::HasSubstr;
using testing::Not;

// As the API server would hand it over.
api::GPUService Read(const std::string& spec) {
  api::GPUService out;
  const auto status = kube::FromJson(
      R"({"metadata":{"name":"chat","namespace":"team","uid":"u1"},"spec":)" + spec + "}", &out);
  EXPECT_TRUE(status) << status.error().message;
  return out;
}

std::string Build(const api::GPUService& object, std::size_t variant = 0) {
  const auto service = core::ServiceFromApi(object, 0);
  EXPECT_TRUE(service) << service.error().message;
  const ReplicaContext replica{object, *service, variant, 4, "nvidia.com/gpu", "bimetal-job"};
  const auto pod = BuildReplicaPod(replica, "n1");
  EXPECT_TRUE(pod) << pod.error().message;
  return pod.value_or("");
}

constexpr char kVariants[] =
    R"("variants":[{"name":"cuda","vendor":"nvidia","devicesPerPod":2,"image":"i:1","port":9000,)"
    R"("env":[{"name":"A","value":"variant"}]}])";

TEST(ServicePodTest, IsPinnedNamedLabelledAndReadBackAsTheReplicaThatItIs) {
  const auto object = Read(std::string("{") + kVariants + "}");
  const auto service = core::ServiceFromApi(object, 0);
  const std::string json = Build(object);
  api::Pod pod;
  ASSERT_TRUE(kube::FromJson(json, &pod));
  const auto record = MakePodRecord(pod, Store::DefaultResources());
  EXPECT_EQ(record.holds.name, "chat-" + service->variants[0].revision + "-4");
  EXPECT_EQ(record.service, "u1");
  EXPECT_EQ(record.revision, service->variants[0].revision);
  EXPECT_EQ(record.variant, "cuda");
  EXPECT_EQ(record.holds.of_job->job, ReplicaUid("u1", 4));
  EXPECT_EQ(record.holds.node, NodeName{"n1"}) << "it holds its place before it is bound";
  EXPECT_EQ(record.holds.devices.at(core::Vendor::kNvidia).v, 2000);
  EXPECT_THAT(json, HasSubstr(R"({"name":"bimetal-http","containerPort":9000,"protocol":"TCP"})"));
  EXPECT_THAT(json, HasSubstr(R"("readinessProbe":{"tcpSocket":{"port":9000})"));
  EXPECT_THAT(json, HasSubstr(R"({"name":"BIMETAL_PORT","value":"9000"})"));
  EXPECT_THAT(json, HasSubstr(R"("terminationGracePeriodSeconds":35)"));
  EXPECT_THAT(json, Not(HasSubstr("\"nodeName\"")));
}

TEST(ServicePodTest, ReadinessAndDrainAreAsAskedFor) {
  const std::string json =
      Build(Read(std::string("{") + kVariants +
                 R"(,"readiness":{"path":"/health","port":9001,"periodSeconds":1},)"
                 R"("drainSeconds":20,"template":{"spec":{"terminationGracePeriodSeconds":60}}})"));
  EXPECT_THAT(json, HasSubstr(R"("httpGet":{"path":"/health","port":9001},"periodSeconds":1)"));
  EXPECT_THAT(json, HasSubstr(R"("preStop":{"sleep":{"seconds":20}})"));
  EXPECT_THAT(json, HasSubstr(R"("terminationGracePeriodSeconds":80)"));
}

TEST(ServicePodTest, TheUsersOwnProbeHookAndPortStay) {
  const std::string json = Build(Read(
      std::string("{") + kVariants +
      R"(,"template":{"metadata":{"labels":{"app":"x","bimetal.dev/job-uid":"theirs"}},)"
      R"("spec":{"containers":[{"name":"main","readinessProbe":{"exec":{"command":["true"]}},)"
      R"("lifecycle":{"preStop":{"exec":{"command":["bye"]}}},)"
      R"("ports":[{"name":"http","containerPort":9000},{"name":"metrics","containerPort":9002}],)"
      R"("env":[{"name":"A","value":"template"}]}]}}})"));
  EXPECT_THAT(json, HasSubstr(R"("readinessProbe":{"exec":{"command":["true"]}})"));
  EXPECT_THAT(json, HasSubstr(R"("preStop":{"exec":{"command":["bye"]}})"));
  EXPECT_THAT(json, Not(HasSubstr("\"sleep\"")));
  EXPECT_THAT(json, HasSubstr(R"({"name":"metrics","containerPort":9002)"));
  EXPECT_THAT(json, HasSubstr(R"({"name":"bimetal-http","containerPort":9000)"));
  EXPECT_THAT(json, Not(HasSubstr(R"({"name":"http","containerPort":9000)")));
  EXPECT_THAT(json, HasSubstr(R"({"name":"A","value":"variant"})"));
  EXPECT_THAT(json, HasSubstr(R"("app":"x")"));
  EXPECT_THAT(json, Not(HasSubstr("theirs"))) << "a label of the operator's own";
}

TEST(ServicePodTest, TheServiceLeadsToThePortByNameSoThatVariantsMayDiffer) {
  const std::string json =
      BuildReplicaService(Read(std::string("{\"port\":81,") + kVariants + "}"));
  EXPECT_THAT(json, HasSubstr(R"("port":81,"targetPort":"bimetal-http")"));
  EXPECT_THAT(json, HasSubstr(R"("selector":{"bimetal.dev/service-uid":"u1"})"));
  EXPECT_THAT(json, HasSubstr(R"("name":"chat")"));
}

}  // namespace
}  // namespace bimetal::op
