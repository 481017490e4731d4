#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "kube/config/config.h"

namespace bimetal::kube {
namespace {

constexpr const char* kAccount = "/var/run/secrets/kubernetes.io/serviceaccount/";

std::string Env(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

}  // namespace

Result<Config> InClusterConfig(const std::string& root) {
  const std::string host = Env("KUBERNETES_SERVICE_HOST");
  const std::string port = Env("KUBERNETES_SERVICE_PORT");
  if (host.empty() || port.empty()) {
    return Fail(
        ErrorCode::kNotFound,
        "not in a cluster: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set");
  }
  const std::string account = root + kAccount;
  Config config;
  // The address works before the cluster's DNS does; the transport cannot dial IPv6 literals, so
  // there the name is used.
  config.server = "https://" +
                  (host.find(':') == std::string::npos ? host : "kubernetes.default.svc") + ":" +
                  port;
  config.ca_file = account + "ca.crt";
  config.token_file = account + "token";
  for (const std::string& file : {config.ca_file, config.token_file}) {
    if (std::error_code error; !std::filesystem::exists(file, error)) {
      return Fail(ErrorCode::kNotFound, "not in a cluster: " + file + " does not exist");
    }
  }
  std::ifstream in(account + "namespace");
  config.namespace_name.assign(std::istreambuf_iterator<char>(in), {});
  while (!config.namespace_name.empty() && config.namespace_name.back() == '\n') {
    config.namespace_name.pop_back();
  }
  if (config.namespace_name.empty()) config.namespace_name = "default";
  return config;
}

}  // namespace bimetal::kube
