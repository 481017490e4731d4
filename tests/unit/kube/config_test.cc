#include "kube/config/config.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace bimetal::kube {
namespace {

using testing::HasSubstr;
using testing::Not;

class KubeconfigTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(testing::TempDir()) / "kubeconfig_test";
    std::filesystem::create_directories(folder_);
  }
  Result<Config> Read(const std::string& text, const std::string& context = "") {
    const auto file = folder_ / "config";
    std::ofstream(file) << text;
    return KubeconfigFile(file.string(), context);
  }

  std::filesystem::path folder_;
};

constexpr const char* kTwoContexts = R"(
apiVersion: v1
kind: Config
current-context: one
contexts:
- {name: one, context: {cluster: c1, user: u1, namespace: team}}
- {name: two, context: {cluster: c2, user: u2}}
clusters:
- {name: c1, cluster: {server: "https://one:6443", certificate-authority: pki/ca.crt}}
- {name: c2, cluster: {server: "https://two", certificate-authority-data: "UEVN"}}
users:
- {name: u1, user: {client-certificate: /abs/c.crt, client-key: pki/c.key}}
- {name: u2, user: {token: s3cret}}
)";

TEST_F(KubeconfigTest, ReadsTheCurrentContextWithFilesBesideIt) {
  const auto config = Read(kTwoContexts);
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->server, "https://one:6443");
  EXPECT_EQ(config->ca_file, (folder_ / "pki/ca.crt").string());
  EXPECT_EQ(config->client_cert_file, "/abs/c.crt");
  EXPECT_EQ(config->client_key_file, (folder_ / "pki/c.key").string());
  EXPECT_EQ(config->namespace_name, "team");
}

TEST_F(KubeconfigTest, ReadsANamedContextWithInlineData) {
  const auto config = Read(kTwoContexts, "two");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->ca_pem, "PEM");
  EXPECT_EQ(config->token, "s3cret");
  EXPECT_EQ(config->namespace_name, "default");
  EXPECT_EQ(Read(kTwoContexts, "three").error().code, ErrorCode::kNotFound);
}

TEST_F(KubeconfigTest, RefusesWhatItCannotKeep) {
  const auto user = [this](const std::string& text) {
    return Read(
        "current-context: c\ncontexts: [{name: c, context: {cluster: k, user: u}}]\n"
        "clusters: [{name: k, cluster: {server: \"https://h\"}}]\nusers: [{name: u, user: " +
        text + "}]\n");
  };
  EXPECT_EQ(user("{exec: {command: aws}}").error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(user("{username: a, password: s3cret}").error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(user("{client-certificate: a}").error().code, ErrorCode::kInvalid);
  const auto data = user("{client-key-data: \"s3cret!\"}");
  EXPECT_EQ(data.error().code, ErrorCode::kInvalid);
  EXPECT_THAT(data.error().message, HasSubstr("client-key-data"));
  EXPECT_THAT(data.error().message, Not(HasSubstr("s3cret")));
  EXPECT_TRUE(user("{}"));
}

TEST_F(KubeconfigTest, RefusesFilesThatAreNone) {
  EXPECT_EQ(KubeconfigFile((folder_ / "missing").string()).error().code, ErrorCode::kNotFound);
  for (const char* text : {"", "just text", "- a\n- b\n", "contexts: {a: [}", "current-context: x",
                           "current-context: [x]", "current-context: x\ncontexts: {name: x}",
                           "current-context: x\ncontexts: [x, {name: x}]", "a: *nothing"}) {
    EXPECT_FALSE(Read(text)) << text;
  }
}

TEST(InClusterConfigTest, ReadsTheServiceAccount) {
  const auto root = std::filesystem::path(testing::TempDir()) / "in_cluster";
  const auto account = root / "var/run/secrets/kubernetes.io/serviceaccount";
  std::filesystem::create_directories(account);
  std::ofstream(account / "token") << "t";
  std::ofstream(account / "ca.crt") << "c";
  std::ofstream(account / "namespace") << "bimetal-system";
  ::unsetenv("KUBERNETES_SERVICE_HOST");
  EXPECT_EQ(InClusterConfig(root.string()).error().code, ErrorCode::kNotFound);
  ::setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1", 1);
  ::setenv("KUBERNETES_SERVICE_PORT", "443", 1);
  const auto config = InClusterConfig(root.string());
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->server, "https://10.0.0.1:443");
  EXPECT_EQ(config->namespace_name, "bimetal-system");
  EXPECT_EQ(config->token_file, (account / "token").string());
  ::setenv("KUBERNETES_SERVICE_HOST", "fd00::1", 1);
  EXPECT_EQ(InClusterConfig(root.string())->server, "https://kubernetes.default.svc:443");
  EXPECT_EQ(InClusterConfig((root / "nowhere").string()).error().code, ErrorCode::kNotFound);
  ::unsetenv("KUBERNETES_SERVICE_HOST");
}

}  // namespace
}  // namespace bimetal::kube
