#pragma once

#include <string>

#include "api/kubernetes.pb.h"
#include "core/base/result.h"
#include "core/base/time.h"
#include "operator/tls/certificates.h"

namespace bimetal::op {

// Where the certificate authority is kept: the Secret and the ConfigMap `bimetal-agent-ca` of the
// operator's namespace. KubeIdentityStore (identity_store.h) is the one of production.
class IdentityStore {
 public:
  virtual ~IdentityStore() = default;
  // Error kNotFound where there is none.
  virtual Result<api::Secret> GetSecret(const std::string& name) = 0;
  // Error kAlreadyExists where somebody was faster.
  virtual Status CreateSecret(const api::Secret& secret) = 0;
  // Replaces the object of this metadata.resourceVersion. Error kConflict where it has changed.
  virtual Status UpdateSecret(const api::Secret& secret) = 0;
  virtual Result<api::ConfigMap> GetConfigMap(const std::string& name) = 0;
  virtual Status CreateConfigMap(const api::ConfigMap& config_map) = 0;
  virtual Status UpdateConfigMap(const api::ConfigMap& config_map) = 0;
};

struct ServingOptions {
  std::string name_space;
  std::string service_name;  // "bimetal-operator.<ns>.svc"; its short and long forms are added
  std::string object_name = "bimetal-agent-ca";
  Millis ca_validity = Minutes(60 * 24 * 365);
  Millis server_validity = Minutes(60 * 24 * 30);
  // A new authority signs nothing before it has been published for this long, so that every agent
  // has read it.
  Millis propagation = Minutes(60);
};

// What the agent service serves with.
struct ServingIdentity {
  KeyPair server;
  std::string ca_bundle_pem;  // what was published: the signer first, then every other valid CA
  TimePoint renew_at;         // call again then; two thirds of the server certificate's life
};

// Makes, renews and publishes the certificate authority as far as needed, and issues a server
// certificate. The authority is renewed when less than a third of its life is left; the old one
// stays in the bundle until it expires. Any number of replicas may call this at once: who loses a
// race reads the winner's. Blocking; call it from an I/O thread. Errors: those of the store; kData
// where the Secret holds something that is not a CA (the message says which key; it is not
// overwritten, because somebody else may have put it there: delete the Secret to have a new one
// made).
Result<ServingIdentity> EnsureServingIdentity(IdentityStore& store, const ServingOptions& options,
                                              TimePoint now);

}  // namespace bimetal::op
