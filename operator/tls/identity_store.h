#pragma once

#include <string>

#include "operator/tls/serving_identity.h"

namespace bimetal::kube {
class Client;
}  // namespace bimetal::kube

namespace bimetal::op {

// The cluster as the store. `client` must outlive it. Thread-safe as far as the client is.
class KubeIdentityStore final : public IdentityStore {
 public:
  KubeIdentityStore(kube::Client& client, std::string name_space);
  Result<api::Secret> GetSecret(const std::string& name) override;
  Status CreateSecret(const api::Secret& secret) override;
  Status UpdateSecret(const api::Secret& secret) override;
  Result<api::ConfigMap> GetConfigMap(const std::string& name) override;
  Status CreateConfigMap(const api::ConfigMap& config_map) override;
  Status UpdateConfigMap(const api::ConfigMap& config_map) override;

 private:
  kube::Client& client_;
  std::string name_space_;
};

}  // namespace bimetal::op
