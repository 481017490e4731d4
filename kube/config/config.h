#pragma once

#include <string>

#include "core/base/result.h"

namespace bimetal::kube {

// Where an API server is and who we are to it. Files win over inline text, are read again for every
// new connection (certificates) or every minute (token), and so may be rotated. Immutable.
struct Config {
  // "https://host:port", without a path. "http://" only for loopback hosts.
  std::string server;
  // The cluster's CA in PEM; trusted alone, the system's store is not used.
  std::string ca_pem;
  std::string ca_file;
  // A client certificate and its key in PEM, as files or inline; empty for none.
  std::string client_cert_file;
  std::string client_key_file;
  std::string client_cert_pem;
  std::string client_key_pem;
  // A bearer token, as file or inline; empty for none.
  std::string token_file;
  std::string token;
  // The namespace of this pod, or the context's; "default" where neither says.
  std::string namespace_name;
  // The name in the server's certificate where it is not the host of `server`.
  std::string tls_server_name;
};

// The configuration of a pod: the service account's token, CA and namespace, and the server's
// address from the environment. `root` is put before the account's paths (tests).
// Errors: kNotFound outside a cluster.
Result<Config> InClusterConfig(const std::string& root = "");

// One context of a kubeconfig file; its current one where `context` is empty. Relative paths are
// relative to the file. Errors: kNotFound, kInvalid (with the path of the key), kUnsupported for
// exec and auth-provider plug-ins, passwords, proxies and insecure-skip-tls-verify.
Result<Config> KubeconfigFile(const std::string& path, const std::string& context = "");

}  // namespace bimetal::kube
