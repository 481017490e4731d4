#include "agent/config/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace bimetal::agent {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kMinimal[] = "operator: {address: 'op:9443'}\n";

std::string ErrorOf(const std::string& yaml) {
  const auto config = ParseAgentConfig(yaml);
  return config ? "accepted" : config.error().message;
}

TEST(AgentConfigTest, DefaultsStandWhereTheFileIsSilent) {
  const auto config = ParseAgentConfig(kMinimal);
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->operator_endpoint.address, "op:9443");
  EXPECT_EQ(config->root, "/host");
  EXPECT_EQ(config->report_interval, Seconds(10));
  EXPECT_EQ(config->metrics_listen, "0.0.0.0:9400");
}

TEST(AgentConfigTest, ReadsEveryKey) {
  const auto config = ParseAgentConfig(R"(
operator: {address: '[::1]:1', tlsServerName: op.svc, caFile: /ca, tokenFile: /token}
root: /r
stateDir: /s
socket: /run/x.sock
kubelet: {devicePluginDir: /d, podResourcesSocket: /p.sock}
report: {interval: 2s, enumerateInterval: 1m}
metrics: {listen: '127.0.0.1:0'}
log: {level: debug}
)");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(DescribeAgentConfig(*config),
            "operator.address=[::1]:1 operator.tlsServerName=op.svc operator.caFile=/ca "
            "operator.tokenFile=/token root=/r stateDir=/s socket=/run/x.sock "
            "kubelet.devicePluginDir=/d kubelet.podResourcesSocket=/p.sock report.interval=2s "
            "report.enumerateInterval=1m "
            "metrics.listen=127.0.0.1:0 log.level=debug");
}

TEST(AgentConfigTest, UnknownKeyIsRefusedWithItsPathAndTheKnownOnes) {
  EXPECT_THAT(ErrorOf("operator: {address: 'op:1', adress: x}"),
              StartsWith("operator.adress: unknown key, known here: address, tlsServerName"));
  EXPECT_THAT(ErrorOf("raport: {}"), StartsWith("raport: unknown key"));
}

TEST(AgentConfigTest, KeyGivenTwiceIsRefused) {
  EXPECT_EQ(ErrorOf("root: /a\nroot: /b\noperator: {address: 'op:1'}"), "root: given twice");
}

TEST(AgentConfigTest, ValuesOutOfRangeAreRefusedWithTheirPath) {
  const std::string base = kMinimal;
  EXPECT_THAT(ErrorOf(base + "report: {interval: 0s}"), StartsWith("report.interval: must be"));
  EXPECT_THAT(ErrorOf(base + "report: {interval: 6m}"), StartsWith("report.interval: must be"));
  EXPECT_THAT(ErrorOf(base + "report: {interval: [1]}"), StartsWith("report.interval: must be"));
  EXPECT_THAT(ErrorOf(base + "root: here"), StartsWith("root: must be an absolute path"));
  EXPECT_THAT(ErrorOf(base + "log: {level: loud}"), StartsWith("log.level: must be"));
  EXPECT_THAT(ErrorOf(base + "metrics: {listen: '9400'}"), StartsWith("metrics.listen: must be"));
  EXPECT_THAT(ErrorOf("operator: {address: 'op:0'}"), StartsWith("operator.address: must be"));
  EXPECT_THAT(ErrorOf("operator: {address: 'op:70000'}"), StartsWith("operator.address: must be"));
  EXPECT_THAT(ErrorOf("operator: {address: 'a:b:1'}"), StartsWith("operator.address: must be"));
  EXPECT_THAT(ErrorOf(base + "socket: /" + std::string(107, 'x')), StartsWith("socket: "));
}

TEST(AgentConfigTest, MissingAddressIsToldByItsName) {
  EXPECT_EQ(ErrorOf(""), "operator.address: must be given, as host:port");
}

TEST(AgentConfigTest, WhatIsNoYamlIsAnError) {
  EXPECT_THAT(ErrorOf("a: [1"), StartsWith("not valid YAML"));
  EXPECT_THAT(ErrorOf("- a"), HasSubstr("must be a map"));
  EXPECT_NE(ErrorOf(std::string(100000, '[')), "accepted");
  EXPECT_NE(ErrorOf(std::string("\0\x01\xff", 3)), "accepted");
}

TEST(AgentConfigTest, MissingFileIsNamed) {
  const auto config = LoadAgentConfig("/nowhere/agent.yaml");
  ASSERT_FALSE(config);
  EXPECT_EQ(config.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(config.error().message, HasSubstr("/nowhere/agent.yaml"));
}

}  // namespace
}  // namespace bimetal::agent
