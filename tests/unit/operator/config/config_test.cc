#include "operator/config/config.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <tuple>

namespace bimetal::op {
namespace {

std::string MessageOf(std::string_view yaml) {
  const auto config = ParseConfig(yaml);
  if (config) return "accepted";
  EXPECT_EQ(config.error().code, ErrorCode::kInvalid);
  return config.error().message;
}

TEST(Config, AnEmptyDocumentIsTheDefaults) {
  for (const char* yaml : {"", "---\n", "{}", "# nothing\n", "jobs:\n"}) {
    const auto config = ParseConfig(yaml);
    ASSERT_TRUE(config) << yaml << config.error().message;
    EXPECT_EQ(config->name_space, "bimetal-system");
    EXPECT_EQ(config->grpc.service_name, "bimetal-operator.bimetal-system.svc");
    EXPECT_EQ(config->agent.service_account, "system:serviceaccount:bimetal-system:bimetal-agent");
    EXPECT_EQ(config->leader_election.lease_duration, Seconds(8));
    EXPECT_EQ(config->jobs.unschedulable_after, Seconds(5));
    EXPECT_EQ(config->jobs.image_pull_grace, Minutes(2));
    EXPECT_EQ(config->jobs.node_lost_after, Seconds(60));
    EXPECT_EQ(config->scheduler.record_folder, "");
    EXPECT_EQ(config->scheduler.recorded_cycles, 20);
    EXPECT_TRUE(config->defaults.queue);
    EXPECT_EQ(config->defaults.device_plugin, DevicePlugin::kVendor);
    EXPECT_FALSE(config->validation.simulation);
  }
}

constexpr char kFull[] = R"(
namespace: gpu
leaderElection: {enabled: false, leaseName: other, leaseDuration: 15s}
grpc: {listen: "[::]:9000", serviceName: op.gpu.svc}
http: {listen: "127.0.0.1:0"}
agent:
  serviceAccount: system:serviceaccount:gpu:agents
  audience: somebody
  staleAfter: 1m
validation:
  serviceAccountName: v
  images: {nvidia: "r/n@sha256:0", amd: "r/a:1"}
  pullPolicy: Never
  socketHostPath: /run/x
  simulation: true
  simulationHostPath: /var/m
  tolerations:
    - {key: a, operator: Equal, value: b, effect: NoSchedule}
    - {operator: Exists}
jobs: {priorityClassName: p, unschedulableAfter: 2s, imagePullGrace: 0s, nodeLostAfter: 9s}
scheduler: {recordFolder: /var/cycles, recordedCycles: 7}
defaults: {queue: false, pools: false, gate: Observe, devicePlugin: Bimetal, priceBook: book,
           validationProfile: strict}
log: {level: debug}
)";

TEST(Config, EveryKeyIsRead) {
  const auto config = ParseConfig(kFull);
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->name_space, "gpu");
  EXPECT_FALSE(config->leader_election.enabled);
  EXPECT_EQ(config->leader_election.lease_name, "other");
  EXPECT_EQ(config->leader_election.lease_duration, Seconds(15));
  EXPECT_EQ(config->grpc.listen, "[::]:9000");
  EXPECT_EQ(config->grpc.service_name, "op.gpu.svc");
  EXPECT_EQ(config->http.listen, "127.0.0.1:0");
  EXPECT_EQ(config->agent.service_account, "system:serviceaccount:gpu:agents");
  EXPECT_EQ(config->agent.audience, "somebody");
  EXPECT_EQ(config->agent.stale_after, Minutes(1));
  EXPECT_EQ(config->validation.service_account_name, "v");
  EXPECT_EQ(config->validation.nvidia_image, "r/n@sha256:0");
  EXPECT_EQ(config->validation.amd_image, "r/a:1");
  EXPECT_EQ(config->validation.pull_policy, PullPolicy::kNever);
  EXPECT_EQ(config->validation.socket_host_path, "/run/x");
  EXPECT_TRUE(config->validation.simulation);
  EXPECT_EQ(config->validation.simulation_host_path, "/var/m");
  ASSERT_EQ(config->validation.tolerations.size(), 2u);
  EXPECT_EQ(config->validation.tolerations[0].key, "a");
  EXPECT_EQ(config->validation.tolerations[0].value, "b");
  EXPECT_EQ(config->validation.tolerations[0].effect, "NoSchedule");
  EXPECT_EQ(config->validation.tolerations[1].op, "Exists");
  EXPECT_EQ(config->jobs.priority_class_name, "p");
  EXPECT_EQ(config->jobs.unschedulable_after, Seconds(2));
  EXPECT_EQ(config->jobs.image_pull_grace, Seconds(0));
  EXPECT_EQ(config->jobs.node_lost_after, Seconds(9));
  EXPECT_EQ(config->scheduler.record_folder, "/var/cycles");
  EXPECT_EQ(config->scheduler.recorded_cycles, 7);
  EXPECT_FALSE(config->defaults.queue);
  EXPECT_FALSE(config->defaults.pools);
  EXPECT_EQ(config->defaults.device_plugin, DevicePlugin::kBimetal);
  EXPECT_FALSE(config->defaults.enforce);
  EXPECT_EQ(config->defaults.price_book, "book");
  EXPECT_EQ(config->defaults.validation_profile, "strict");
  EXPECT_EQ(config->log.level, LogLevel::kDebug);
}

TEST(Config, TheDescriptionIsOneLineThatReadsBackAsTheSameConfiguration) {
  for (const char* yaml : {kFull, "", "jobs: {imagePullGrace: 90s}"}) {
    const std::string line = Describe(ParseConfig(yaml).value());
    EXPECT_EQ(line.find('\n'), std::string::npos);
    const auto again = ParseConfig(line);
    ASSERT_TRUE(again) << line << ": " << again.error().message;
    EXPECT_EQ(Describe(*again), line);
  }
  EXPECT_NE(Describe(ParseConfig(kFull).value()).find("\"leaseDuration\":\"15s\""),
            std::string::npos);
}

class BadConfig : public testing::TestWithParam<std::tuple<const char*, const char*>> {};

TEST_P(BadConfig, IsRefusedWithThePathOfTheKey) {
  EXPECT_EQ(MessageOf(std::get<0>(GetParam())), std::get<1>(GetParam()));
}

INSTANTIATE_TEST_SUITE_P(
    All, BadConfig,
    testing::Values(
        std::tuple{"job: {}", "job: is not a known key"},
        std::tuple{"jobs: {unschedulableafter: 5s}", "jobs.unschedulableafter: is not a known key"},
        std::tuple{"validation: {images: {intel: x}}",
                   "validation.images.intel: is not a known key"},
        std::tuple{"validation: {tolerations: [{key: a}, {key: a, efect: x}]}",
                   "validation.tolerations[1].efect: is not a known key"},
        std::tuple{"validation: {tolerations: [{value: a}]}",
                   "validation.tolerations[0]: has no key, which needs operator: Exists"},
        std::tuple{"validation: {tolerations: [{key: a, operator: In}]}",
                   "validation.tolerations[0].operator: \"In\" is none of Exists, Equal"},
        std::tuple{"validation: {tolerations: {key: a}}", "validation.tolerations: is not a list"},
        std::tuple{"validation: {tolerations: [a]}", "validation.tolerations[0] is not a mapping"},
        std::tuple{"validation: {pullPolicy: Sometimes}",
                   "validation.pullPolicy: \"Sometimes\" is none of Always, IfNotPresent, Never"},
        std::tuple{"validation: {socketHostPath: run}",
                   "validation.socketHostPath: \"run\" is not an absolute path without \"..\""},
        std::tuple{"validation: {socketHostPath: /run/../etc}",
                   "validation.socketHostPath: \"/run/../etc\" is not an absolute path without "
                   "\"..\""},
        std::tuple{"validation: {images: {amd: 'a b'}}",
                   "validation.images.amd: \"a b\" is not the reference of an image"},
        std::tuple{"jobs: {unschedulableAfter: 2h}",
                   "jobs.unschedulableAfter: \"2h\" is not between 1s and 10m"},
        std::tuple{"jobs: {unschedulableAfter: 5}",
                   "jobs.unschedulableAfter: \"5\" is not a duration such as 30s or 1m30s"},
        std::tuple{"scheduler: {recordFolder: cycles}",
                   "scheduler.recordFolder: \"cycles\" is not an absolute path without \"..\""},
        std::tuple{"scheduler: {recordedCycles: 0}",
                   "scheduler.recordedCycles: \"0\" is not a number from 1 to 1000"},
        std::tuple{"scheduler: {recordedCycles: 2x}",
                   "scheduler.recordedCycles: \"2x\" is not a number from 1 to 1000"},
        std::tuple{"jobs: [1]", "jobs is not a mapping"},
        std::tuple{"jobs: {priorityClassName: [x]}",
                   "jobs.priorityClassName: is not a single value"},
        std::tuple{"leaderElection: {enabled: maybe}",
                   "leaderElection.enabled: \"maybe\" is neither true nor false"},
        std::tuple{"leaderElection: {leaseDuration: 1s}",
                   "leaderElection.leaseDuration: \"1s\" is not between 3s and 5m"},
        std::tuple{"leaderElection: {leaseDuration: 3500ms}",
                   "leaderElection: leaseDuration is not in whole seconds"},
        std::tuple{
            "grpc: {listen: '9443'}",
            "grpc.listen: \"9443\" is not of the form HOST:PORT, or [ADDRESS]:PORT for IPv6"},
        std::tuple{"http: {listen: '0.0.0.0:70000'}",
                   "http.listen: \"0.0.0.0:70000\" is not of the form HOST:PORT, or [ADDRESS]:PORT "
                   "for IPv6"},
        std::tuple{
            "http: {listen: '::1:80'}",
            "http.listen: \"::1:80\" is not of the form HOST:PORT, or [ADDRESS]:PORT for IPv6"},
        std::tuple{"agent: {serviceAccount: bimetal-agent}",
                   "agent.serviceAccount: \"bimetal-agent\" is not of the form "
                   "system:serviceaccount:NAMESPACE:NAME"},
        std::tuple{"agent: {audience: ''}",
                   "agent.audience: \"\" is not 1 to 253 printable characters without spaces"},
        std::tuple{"namespace: Big", "namespace: \"Big\" is not a DNS label"},
        std::tuple{"namespace: a\nnamespace: b\n", "namespace: is given twice"},
        std::tuple{"defaults: {devicePlugin: vendor}",
                   "defaults.devicePlugin: \"vendor\" is none of Vendor, Bimetal"},
        std::tuple{"log: {level: loud}", "log.level: \"loud\" is none of debug, info, warn, error"},
        std::tuple{"- a", "the document is not a mapping"},
        std::tuple{"a: b\n---\nc: d\n", "has more than one document"},
        std::tuple{"? [a]\n: b\n", "the document: has a key that is not a text"}));

TEST(Config, BrokenYamlNamesTheLine) {
  EXPECT_TRUE(MessageOf("namespace: a\njobs: {\n").starts_with("line "));
  EXPECT_TRUE(MessageOf(", namespace: a\n").starts_with("line 1: "));
  EXPECT_NE(MessageOf("a: *nowhere"), "accepted");
  EXPECT_NE(MessageOf(std::string(200'000, '[')), "accepted");
  EXPECT_NE(MessageOf(std::string_view("a: \0\x01\xff", 6)), "accepted");
}

TEST(Config, TheFirstErrorIsTheOneThatIsShown) {
  EXPECT_EQ(MessageOf("namespace: X\nlog: {level: loud}\n"), "namespace: \"X\" is not a DNS label");
}

TEST(Config, AFileIsReadAndNamedInErrors) {
  const auto path = std::filesystem::temp_directory_path() /
                    ("bimetal-config-" + std::to_string(::getpid()) + ".yaml");
  std::ofstream(path) << "namespace: gpu\n";
  EXPECT_EQ(LoadConfig(path.string())->name_space, "gpu");
  std::ofstream(path) << "nope: gpu\n";
  EXPECT_EQ(LoadConfig(path.string()).error().message,
            "configuration " + path.string() + ": nope: is not a known key");
  std::ofstream(path) << std::string((1 << 20) + 1, '#');
  EXPECT_EQ(LoadConfig(path.string()).error().message,
            "configuration " + path.string() + ": larger than 1 MiB");
  std::filesystem::remove(path);
  EXPECT_EQ(LoadConfig(path.string()).error().code, ErrorCode::kNotFound);
  EXPECT_FALSE(LoadConfig("/"));
}

}  // namespace
}  // namespace bimetal::op
