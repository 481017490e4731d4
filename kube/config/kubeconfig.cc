#include <exception>
#include <filesystem>
#include <string>

#include <yaml-cpp/yaml.h>

#include "core/base/base64.h"
#include "kube/config/config.h"

namespace bimetal::kube {
namespace {

// One file; what is wrong is said with the path of the key, never with a value of it.
class Kubeconfig {
 public:
  Kubeconfig(YAML::Node root, std::string path)
      : root_(std::move(root)),
        path_(std::move(path)),
        folder_(std::filesystem::path(path_).parent_path()) {}

  Result<Config> Read(std::string context_name) const {
    if (!root_.IsMap()) return Fail(ErrorCode::kInvalid, path_ + ": not a kubeconfig");
    if (context_name.empty()) {
      BIMETAL_TRY_ASSIGN(context_name, Text(root_, "current-context", "current-context"));
    }
    if (context_name.empty()) {
      return Fail(ErrorCode::kInvalid, path_ + ": current-context is not set");
    }
    BIMETAL_TRY_ASSIGN(const YAML::Node context, Entry("contexts", "context", context_name));
    Config config;
    BIMETAL_TRY_ASSIGN(const std::string cluster, Text(context, "cluster", "context.cluster"));
    BIMETAL_TRY_ASSIGN(const std::string user, Text(context, "user", "context.user"));
    BIMETAL_TRY_ASSIGN(config.namespace_name, Text(context, "namespace", "context.namespace"));
    if (config.namespace_name.empty()) config.namespace_name = "default";
    BIMETAL_TRY(ReadCluster(cluster, config));
    if (!user.empty()) BIMETAL_TRY(ReadUser(user, config));
    return config;
  }

 private:
  Status ReadCluster(const std::string& name, Config& config) const {
    BIMETAL_TRY_ASSIGN(const YAML::Node cluster, Entry("clusters", "cluster", name));
    BIMETAL_TRY(Refuse(cluster, "cluster", {"proxy-url"}));
    BIMETAL_TRY_ASSIGN(const std::string insecure,
                       Text(cluster, "insecure-skip-tls-verify", "cluster"));
    if (insecure == "true") {
      return Fail(ErrorCode::kUnsupported,
                  path_ + ": insecure-skip-tls-verify is not supported; give the cluster's CA");
    }
    BIMETAL_TRY_ASSIGN(config.server, Text(cluster, "server", "cluster.server"));
    if (config.server.empty()) {
      return Fail(ErrorCode::kInvalid, path_ + ": cluster.server is not set");
    }
    BIMETAL_TRY_ASSIGN(config.tls_server_name,
                       Text(cluster, "tls-server-name", "cluster.tls-server-name"));
    BIMETAL_TRY_ASSIGN(config.ca_file, File(cluster, "certificate-authority"));
    BIMETAL_TRY_ASSIGN(config.ca_pem, Data(cluster, "certificate-authority-data"));
    if (!config.ca_pem.empty()) config.ca_file.clear();  // data wins, as in kubectl
    return {};
  }

  Status ReadUser(const std::string& name, Config& config) const {
    BIMETAL_TRY_ASSIGN(const YAML::Node user, Entry("users", "user", name));
    BIMETAL_TRY(Refuse(user, "user", {"exec", "auth-provider", "username", "password", "as"}));
    BIMETAL_TRY_ASSIGN(config.client_cert_file, File(user, "client-certificate"));
    BIMETAL_TRY_ASSIGN(config.client_key_file, File(user, "client-key"));
    BIMETAL_TRY_ASSIGN(config.client_cert_pem, Data(user, "client-certificate-data"));
    BIMETAL_TRY_ASSIGN(config.client_key_pem, Data(user, "client-key-data"));
    if (!config.client_cert_pem.empty()) config.client_cert_file.clear();
    if (!config.client_key_pem.empty()) config.client_key_file.clear();
    BIMETAL_TRY_ASSIGN(config.token_file, File(user, "tokenFile"));
    BIMETAL_TRY_ASSIGN(config.token, Text(user, "token", "user.token"));
    if (!config.token_file.empty()) config.token.clear();
    const bool has_cert = !config.client_cert_file.empty() || !config.client_cert_pem.empty();
    const bool has_key = !config.client_key_file.empty() || !config.client_key_pem.empty();
    if (has_cert != has_key) {
      return Fail(ErrorCode::kInvalid,
                  path_ + ": user has a client certificate without a key or a key without one");
    }
    return {};
  }

  // The map under `key` of the entry called `name` in the list `list`.
  Result<YAML::Node> Entry(const char* list, const char* key, const std::string& name) const {
    const YAML::Node entries = root_[list];
    if (entries && entries.IsSequence()) {
      for (const auto& entry : entries) {
        if (!entry.IsMap() || !entry["name"] || !entry["name"].IsScalar()) continue;
        if (entry["name"].Scalar() != name) continue;
        const YAML::Node value = entry[key];
        if (value && value.IsMap()) return value;
        return Fail(ErrorCode::kInvalid,
                    path_ + ": " + list + "[" + name + "]." + key + " is not a map");
      }
    }
    return Fail(ErrorCode::kNotFound, path_ + ": no entry called " + name + " in " + list);
  }

  Result<std::string> Text(const YAML::Node& node, const char* key, const char* where) const {
    const YAML::Node value = node[key];
    if (!value || value.IsNull()) return std::string();
    if (!value.IsScalar()) {
      return Fail(ErrorCode::kInvalid, path_ + ": " + where + " is not a text");
    }
    return value.Scalar();
  }

  Result<std::string> Data(const YAML::Node& node, const char* key) const {
    BIMETAL_TRY_ASSIGN(std::string text, Text(node, key, key));
    std::erase_if(text, [](char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; });
    Result<std::string> data = Base64Decode(text);
    if (!data) return tl::unexpected<Error>(WithContext(data.error(), path_ + ": " + key));
    return data;
  }

  Result<std::string> File(const YAML::Node& node, const char* key) const {
    BIMETAL_TRY_ASSIGN(const std::string text, Text(node, key, key));
    if (text.empty()) return text;
    return (folder_ / text).string();  // an absolute text stands for itself
  }

  Status Refuse(const YAML::Node& node, const char* where,
                std::initializer_list<const char*> keys) const {
    for (const char* key : keys) {
      if (!node[key]) continue;
      return Fail(ErrorCode::kUnsupported, path_ + ": " + where + "." + key +
                                               " is not supported; use a certificate or a token");
    }
    return {};
  }

  YAML::Node root_;
  std::string path_;
  std::filesystem::path folder_;
};

}  // namespace

Result<Config> KubeconfigFile(const std::string& path, const std::string& context) {
  try {
    return Kubeconfig(YAML::LoadFile(path), path).Read(context);
  } catch (const YAML::BadFile&) {
    return Fail(ErrorCode::kNotFound, path + ": cannot be read");
  } catch (const std::exception&) {
    // The parser's message may quote the line, and lines hold keys and tokens.
    return Fail(ErrorCode::kInvalid, path + ": not YAML");
  }
}

}  // namespace bimetal::kube
