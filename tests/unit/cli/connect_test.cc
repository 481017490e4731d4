#include "cli/connect.h"

#include <gtest/gtest.h>

namespace bimetal::cli {
namespace {

Surroundings With(const std::string& env, const std::string& home, bool standard_exists) {
  return {env, home, [standard_exists, home](const std::string& path) {
            return standard_exists && path == home + "/.kube/config";
          }};
}

TEST(ChooseKubeconfig, TheFlagWinsThenTheEnvironmentThenTheHome) {
  CommandLine line;
  EXPECT_EQ(*ChooseKubeconfig(line, With("", "/home/a", true)), "/home/a/.kube/config");
  EXPECT_EQ(*ChooseKubeconfig(line, With("/env", "/home/a", true)), "/env");
  EXPECT_EQ(*ChooseKubeconfig(line, With(":/env:", "/home/a", true)), "/env");
  line.kubeconfig = "/flag";
  EXPECT_EQ(*ChooseKubeconfig(line, With("/a:/b", "/home/a", true)), "/flag");
}

TEST(ChooseKubeconfig, WithoutAFileThePodsOwnAccountIsLeft) {
  EXPECT_EQ(*ChooseKubeconfig({}, With("", "/home/a", false)), "");
  EXPECT_EQ(*ChooseKubeconfig({}, With("", "", true)), "");
}

TEST(ChooseKubeconfig, SeveralFilesAreRefusedNotCutShort) {
  const auto file = ChooseKubeconfig({}, With("/a:/b", "", false));
  ASSERT_FALSE(file);
  EXPECT_NE(file.error().message.find("--flatten"), std::string::npos);
}

TEST(ReadConfig, AMissingFileIsNamed) {
  CommandLine line;
  line.kubeconfig = "/does/not/exist";
  const auto config = ReadConfig(line, With("", "", false));
  ASSERT_FALSE(config);
  EXPECT_NE(config.error().message.find("/does/not/exist"), std::string::npos);
}

}  // namespace
}  // namespace bimetal::cli
