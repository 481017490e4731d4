#include "tests/integration/kube/support.h"

#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "kube/codec/json.h"
#include "kube/transport/transport.h"

namespace bimetal::test {

void ClusterTest::SetUp() {
  const char* kubeconfig = std::getenv("BIMETAL_TEST_KUBECONFIG");
  if (kubeconfig == nullptr || *kubeconfig == '\0') {
    GTEST_SKIP() << "SKIPPED: BIMETAL_TEST_KUBECONFIG is not set; this needs a real kube-apiserver";
  }
  Result<kube::Config> config = kube::KubeconfigFile(kubeconfig);
  ASSERT_TRUE(config) << config.error().message;
  config_ = *config;
  client_ = NewClient(config_);
  static std::atomic<int> count{0};
  ns_ = "kube-test-" + std::to_string(::getpid()) + "-" + std::to_string(++count);
  api::Namespace ns;
  ns.mutable_metadata()->set_name(ns_);
  const auto created = client_->Create(ns);
  ASSERT_TRUE(created) << created.error().message;
}

void ClusterTest::TearDown() {
  if (!client_ || ns_.empty()) return;
  static_cast<void>(client_->Delete<api::Namespace>("", ns_));
}

std::shared_ptr<kube::Client> ClusterTest::NewClient(kube::Config config) const {
  auto transport = kube::MakeTransport(config);
  EXPECT_TRUE(transport);
  return std::make_shared<kube::Client>(std::move(transport).value());
}

void ClusterTest::CreateDefinition(const std::string& plural) {
  const char* source = std::getenv("BIMETAL_SOURCE_DIR");
  ASSERT_NE(source, nullptr) << "BIMETAL_SOURCE_DIR is not set; run by ctest";
  std::ifstream in(std::string(source) + "/manifests/crds/bimetal.dev_" + plural + ".yaml");
  kube::Request request;
  request.method = "POST";
  request.path_and_query = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
  request.body.assign(std::istreambuf_iterator<char>(in), {});
  request.content_type = "application/yaml";
  const auto created = client_->Raw(request, "create the definition of " + plural);
  if (!created) {
    ASSERT_EQ(created.error().code, ErrorCode::kAlreadyExists) << created.error().message;
  }
}

std::string ClusterTest::PodJson(const std::string& name) const {
  return R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":)" + kube::JsonString(name) +
         R"(,"namespace":)" + kube::JsonString(ns_) +
         R"(,"labels":{"test":"kube"}},"spec":{"schedulerName":"nobody","containers":[)" +
         R"({"name":"c","image":"none"}]}})";
}

api::ConfigMap ClusterTest::MakeConfigMap(const std::string& name, const std::string& value) const {
  api::ConfigMap map;
  map.mutable_metadata()->set_namespace_(ns_);
  map.mutable_metadata()->set_name(name);
  (*map.mutable_data())["value"] = value;
  return map;
}

}  // namespace bimetal::test
