#include "operator/tls/identity_store.h"

#include <utility>

#include "kube/client/client.h"

namespace bimetal::op {
namespace {

template <class T>
Status Dropped(Result<T> result) {
  if (!result) return tl::unexpected<Error>(std::move(result).error());
  return {};
}

}  // namespace

KubeIdentityStore::KubeIdentityStore(kube::Client& client, std::string name_space)
    : client_(client), name_space_(std::move(name_space)) {}

Result<api::Secret> KubeIdentityStore::GetSecret(const std::string& name) {
  return client_.Get<api::Secret>(name_space_, name);
}

Status KubeIdentityStore::CreateSecret(const api::Secret& secret) {
  return Dropped(client_.Create(secret));
}

Status KubeIdentityStore::UpdateSecret(const api::Secret& secret) {
  return Dropped(client_.Update(secret));
}

Result<api::ConfigMap> KubeIdentityStore::GetConfigMap(const std::string& name) {
  return client_.Get<api::ConfigMap>(name_space_, name);
}

Status KubeIdentityStore::CreateConfigMap(const api::ConfigMap& config_map) {
  return Dropped(client_.Create(config_map));
}

Status KubeIdentityStore::UpdateConfigMap(const api::ConfigMap& config_map) {
  return Dropped(client_.Update(config_map));
}

}  // namespace bimetal::op
