#include "operator/pods/job_pod.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "kube/codec/codec.h"
#include "operator/pods/validation_pod.h"
#include "operator/state/store.h"

namespace bimetal::op {
namespace {

using nlohmann::json;
using testing::Contains;

constexpr char kJob[] = R"({
  "metadata": {"name": "train", "namespace": "team", "uid": "u-1"},
  "spec": {
    "variants": [{"name": "rocm", "vendor": "amd", "devicesPerPod": 4, "image": "img:rocm",
                  "command": ["run"], "args": ["--x"],
                  "env": [{"name": "SHARED", "value": "variant"},
                          {"name": "SECRET", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]}],
    "roles": [
      {"name": "head", "replicas": 1},
      {"name": "worker", "replicas": 3, "template": {
        "metadata": {"labels": {"mine": "yes"}, "annotations": {"note": "kept"}},
        "spec": {
          "containers": [{"name": "main", "env": [{"name": "SHARED", "value": "role"}],
                          "resources": {"requests": {"cpu": "2"}},
                          "lifecycle": {"preStop": {"exec": {"command": ["bye"]}}}},
                         {"name": "sidecar", "image": "side:1"}],
          "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "Exists"}]},
                                  {"matchExpressions": [{"key": "rack", "operator": "Exists"}]}]}}},
          "unknownToUs": {"deep": [1, 2, {"kept": true}]}}}}]}})";

class JobPodTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(kube::FromJson(kJob, &object_));
    auto job = core::JobFromApi(object_, 0);
    ASSERT_TRUE(job) << job.error().message;
    job_ = *job;
  }

  json Build(std::size_t role, int index) {
    const GangContext gang{object_, job_, 0, "amd.com/gpu", "bimetal-job", 2};
    const auto text = BuildJobPod(gang, {role, index, NodeName{"node-7"}});
    EXPECT_TRUE(text) << text.error().message;
    return json::parse(*text);
  }

  static std::string Env(const json& pod, const std::string& name) {
    for (const auto& entry : pod["spec"]["containers"][0]["env"]) {
      if (entry["name"] == name) {
        if (!entry.contains("value")) return entry["valueFrom"].dump();
        return entry["value"].get<std::string>();
      }
    }
    return "(unset)";
  }

  api::GPUJob object_;
  core::Job job_;
};

TEST_F(JobPodTest, UnknownFieldsOfTheTemplateReachThePodUnchanged) {
  const json pod = Build(1, 0);
  EXPECT_EQ(pod["spec"]["unknownToUs"], json::parse(R"({"deep": [1, 2, {"kept": true}]})"));
  EXPECT_EQ(pod["spec"]["containers"][0]["lifecycle"]["preStop"]["exec"]["command"][0], "bye");
  EXPECT_EQ(pod["spec"]["containers"][1], json::parse(R"({"name": "sidecar", "image": "side:1"})"));
  EXPECT_EQ(pod["metadata"]["labels"]["mine"], "yes");
  EXPECT_EQ(pod["metadata"]["annotations"]["note"], "kept");
}

TEST_F(JobPodTest, TheVariantGivesImageCommandEnvironmentAndDevices) {
  const json pod = Build(1, 0);
  const json& main = pod["spec"]["containers"][0];
  EXPECT_EQ(main["image"], "img:rocm");
  EXPECT_EQ(main["command"], json::parse(R"(["run"])"));
  EXPECT_EQ(main["args"], json::parse(R"(["--x"])"));
  EXPECT_EQ(main["resources"]["limits"], json::parse(R"({"amd.com/gpu": "4"})"));
  EXPECT_EQ(main["resources"]["requests"]["cpu"], "2");
  EXPECT_EQ(Env(pod, "SHARED"), "variant") << "the variant's value wins over the role's";
  EXPECT_EQ(Env(pod, "SECRET"), R"({"secretKeyRef":{"key":"k","name":"s"}})");
}

TEST_F(JobPodTest, RanksCountOverAllRolesAndTheMasterIsRankZero) {
  EXPECT_EQ(Env(Build(0, 0), "RANK"), "0");
  const json last = Build(1, 2);
  EXPECT_EQ(Env(last, "RANK"), "3");
  EXPECT_EQ(Env(last, "WORLD_SIZE"), "4");
  EXPECT_EQ(Env(last, "MASTER_ADDR"), "head-0-a2.train-gang.team.svc");
  EXPECT_EQ(Build(0, 0)["spec"]["hostname"], "head-0-a2");
  EXPECT_EQ(Build(0, 0)["spec"]["subdomain"], "train-gang");
  EXPECT_EQ(last["metadata"]["name"], "train-2-worker-2");
}

TEST_F(JobPodTest, ASmallerGangCountsItsOwnPods) {
  const GangContext gang{object_, job_, 0, "amd.com/gpu", "bimetal-job", 2, {1, 2}};
  const json pod = json::parse(*BuildJobPod(gang, {1, 1, NodeName{"node-7"}}));
  EXPECT_EQ(Env(pod, "RANK"), "2");
  EXPECT_EQ(Env(pod, "WORLD_SIZE"), "3");
  api::Pod seen;
  ASSERT_TRUE(kube::FromJson(pod.dump(), &seen));
  EXPECT_THAT(MakePodRecord(seen, Store::DefaultResources()).gang, testing::ElementsAre(1, 2));
}

TEST_F(JobPodTest, WithoutACheckpointThePodIsStoppedAsItsTemplateSays) {
  const json pod = Build(1, 0);
  EXPECT_EQ(Env(pod, "BIMETAL_CHECKPOINT_PATH"), "(unset)");
  EXPECT_FALSE(pod["spec"].contains("terminationGracePeriodSeconds"));
  EXPECT_FALSE(Build(0, 0)["spec"]["containers"][0].contains("lifecycle"));
}

TEST_F(JobPodTest, ACheckpointGivesPathVolumeAndGrace) {
  job_.checkpoint = core::Checkpoint{.claim_name = "claim", .path = "/ckpt", .grace_seconds = 120};
  const json pod = Build(0, 0);
  EXPECT_EQ(Env(pod, "BIMETAL_CHECKPOINT_PATH"), "/ckpt");
  EXPECT_EQ(pod["spec"]["terminationGracePeriodSeconds"], 120);
  EXPECT_THAT(
      pod["spec"]["volumes"],
      Contains(json::parse(
          R"({"name":"bimetal-checkpoint","persistentVolumeClaim":{"claimName":"claim"}})")));
  EXPECT_THAT(pod["spec"]["containers"][0]["volumeMounts"],
              Contains(json::parse(R"({"name":"bimetal-checkpoint","mountPath":"/ckpt"})")));
  EXPECT_FALSE(pod["spec"]["containers"][0].contains("lifecycle")) << "SIGTERM comes by itself";
}

TEST_F(JobPodTest, AnotherSignalComesByAHookThatWaitsUnlessTheTemplateHasItsOwn) {
  job_.checkpoint = core::Checkpoint{.claim_name = "", .path = "/ckpt", .signal = "SIGUSR1"};
  const json bare = Build(0, 0)["spec"]["containers"][0]["lifecycle"];
  EXPECT_EQ(bare["stopSignal"], "SIGUSR1");
  EXPECT_THAT(bare["preStop"]["exec"]["command"][2].get<std::string>(),
              testing::StartsWith("kill -s USR1 1; while kill -0 1"));
  EXPECT_EQ(Build(0, 0)["spec"]["os"]["name"], "linux") << "stopSignal asks for it";
  const json own = Build(1, 0)["spec"]["containers"][0]["lifecycle"];
  EXPECT_EQ(own["preStop"]["exec"]["command"][0], "bye");
}

TEST_F(JobPodTest, ThePinGoesIntoEveryTermBecauseTermsAreAlternatives) {
  const json pod = Build(1, 0);
  const json& terms = pod["spec"]["affinity"]["nodeAffinity"]
                         ["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"];
  ASSERT_EQ(terms.size(), 2U);
  for (const auto& term : terms) {
    EXPECT_EQ(term["matchFields"],
              json::parse(R"([{"key": "metadata.name", "operator": "In", "values": ["node-7"]}])"));
    EXPECT_EQ(term["matchExpressions"].size(), 1U);
  }
  EXPECT_FALSE(pod["spec"].contains("nodeName"));
}

TEST_F(JobPodTest, WhatIsMadeIsReadBackAsThePodOfItsJob) {
  api::Pod pod;
  ASSERT_TRUE(kube::FromJson(Build(1, 1).dump(), &pod));
  const auto record = MakePodRecord(pod, Store::DefaultResources());
  ASSERT_TRUE(record.holds.of_job);
  EXPECT_EQ(*record.holds.of_job, (core::PodOfJob{Uid{"u-1"}, 2, "worker", 1}));
  EXPECT_EQ(record.holds.node.value, "node-7") << "it holds its place before it is bound";
  EXPECT_EQ(record.holds.devices.at(core::Vendor::kAmd).v, 4000);
  EXPECT_EQ(record.holds.requests.cpu_milli, 2000);
  EXPECT_EQ(record.variant, "rocm");
}

TEST(ValidationPodTest, AsksForNoDeviceCarriesNoTokenAndNamesEveryDeviceById) {
  ValidationPodSpec spec;
  spec.name_space = "bimetal-system";
  spec.name = "v";
  spec.node = "node-7";
  spec.vendor = core::Vendor::kNvidia;
  spec.image = "validation:1";
  spec.level = "L1";
  spec.devices = {"GPU-a", "GPU-b"};
  spec.socket_dir = "/run/bimetal";
  const json pod = json::parse(BuildValidationPod(spec));
  const json& container = pod["spec"]["containers"][0];
  EXPECT_FALSE(container["resources"].contains("limits"));
  EXPECT_EQ(pod["spec"]["automountServiceAccountToken"], false);
  EXPECT_THAT(container["args"], Contains("GPU-a"));
  EXPECT_THAT(container["args"], Contains("GPU-b"));
  EXPECT_EQ(container["args"][1], "auto") << "a real node is never proven on its CPU";
  EXPECT_EQ(container["securityContext"]["readOnlyRootFilesystem"], true);
  EXPECT_EQ(pod["spec"]["tolerations"][0]["key"], "bimetal.dev/unvalidated");
  spec.machine_dir = "/var/lib/bimetal/machine";
  EXPECT_EQ(json::parse(BuildValidationPod(spec))["spec"]["containers"][0]["args"][1], "host");
}

TEST(ValidationPodTest, TheNameDependsOnTheCauseOfTheRun) {
  const auto name = [](const char* cause) {
    return ValidationPodName(core::Vendor::kAmd, "n", cause);
  };
  EXPECT_EQ(name("a"), name("a"));
  EXPECT_NE(name("a"), name("b"));
  EXPECT_LE(name("a").size(), 63U);
}

}  // namespace
}  // namespace bimetal::op
