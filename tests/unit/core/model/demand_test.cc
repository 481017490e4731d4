#include "core/model/demand.h"

#include <gtest/gtest.h>

namespace bimetal::core {
namespace {

struct Spec {
  ContainerList containers, init;
  QuantityMap overhead;

  Spec& App(const std::string& gpus) {
    (*containers.Add()->mutable_resources()->mutable_requests())["amd.com/gpu"] = gpus;
    return *this;
  }
  Spec& Init(const std::string& gpus) {
    (*init.Add()->mutable_resources()->mutable_requests())["amd.com/gpu"] = gpus;
    return *this;
  }
  Spec& Sidecar(const std::string& gpus) {
    Init(gpus);
    init.rbegin()->set_raw(R"({"name":"s","restartPolicy" : "Always"})");
    return *this;
  }
  Result<PodDemand> Demand() const { return DemandOfPod(containers, init, overhead, "spec"); }
  std::int64_t Gpus() const { return Demand().value().extended.at("amd.com/gpu"); }
};

TEST(DemandOfPodTest, CountsInitContainersAndSidecarsAsKubernetesDoes) {
  EXPECT_EQ(Spec().App("1").Sidecar("1").Gpus(), 2);
  EXPECT_EQ(Spec().App("2").Init("4").Gpus(), 4);
  EXPECT_EQ(Spec().App("1").Sidecar("1").Init("2").Init("3").Gpus(), 4);
  EXPECT_EQ(Spec().App("1").Init("2").Init("3").Sidecar("1").Gpus(), 3);
  EXPECT_EQ(Spec().App("0").Gpus(), 0);
}

TEST(DemandOfPodTest, ALimitStandsInForAMissingRequest) {
  Spec spec;
  auto& limits = *spec.containers.Add()->mutable_resources()->mutable_limits();
  limits["cpu"] = "1500m";
  limits["memory"] = "0.5Gi";
  const auto demand = spec.Demand().value();
  EXPECT_EQ(demand.requests.cpu_milli, 1500);
  EXPECT_EQ(demand.requests.memory_bytes, std::int64_t{1} << 29);
  EXPECT_EQ(demand.requests.pods, 1);
}

TEST(DemandOfPodTest, AddsOverhead) {
  Spec spec;
  spec.App("1");
  spec.overhead["cpu"] = "250m";
  EXPECT_EQ(spec.Demand().value().requests.cpu_milli, 250);
}

TEST(DemandOfPodTest, AnEnvironmentValueThatQuotesTheWordIsNoSidecar) {
  Spec spec;
  spec.App("1").Init("1");
  spec.init[0].set_raw(R"({"env":[{"value":"{\"restartPolicy\":\"Always\"}"}]})");
  EXPECT_EQ(spec.Gpus(), 1);
}

TEST(DemandOfPodTest, AQuantityThatIsNoneIsAnErrorNeverZero) {
  for (const char* bad : {"", "-1", "8 ", "0x8", "lots", "1e400"}) {
    const auto demand = Spec().App(bad).Demand();
    ASSERT_FALSE(demand) << bad;
    EXPECT_NE(demand.error().message.find("spec.containers[0].resources.requests[\"amd.com/gpu\"]"),
              std::string::npos)
        << demand.error().message;
  }
}

TEST(DemandOfPodTest, HugeRequestsDoNotWrap) {
  const auto gpus = Spec().App("9223372036854775807").App("9223372036854775807").Gpus();
  EXPECT_EQ(gpus, std::numeric_limits<std::int64_t>::max());
}

TEST(DemandOfPodTest, ARequestOverItsLimitIsAnError) {
  Spec spec;
  auto& resources = *spec.containers.Add()->mutable_resources();
  (*resources.mutable_requests())["cpu"] = "2";
  (*resources.mutable_limits())["cpu"] = "1";
  EXPECT_FALSE(spec.Demand());
}

}  // namespace
}  // namespace bimetal::core
