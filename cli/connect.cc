#include "cli/connect.h"

#include <algorithm>
#include <string_view>
#include <vector>

namespace bimetal::cli {
namespace {

// The parts of a list of paths that are not empty.
std::vector<std::string> SplitPaths(std::string_view list) {
  std::vector<std::string> out;
  while (!list.empty()) {
    const std::string_view path = list.substr(0, list.find(':'));
    if (!path.empty()) out.emplace_back(path);
    list.remove_prefix(std::min(list.size(), path.size() + 1));
  }
  return out;
}

}  // namespace

Result<std::string> ChooseKubeconfig(const CommandLine& line, const Surroundings& surroundings) {
  if (!line.kubeconfig.empty()) return line.kubeconfig;
  const std::vector<std::string> listed = SplitPaths(surroundings.kubeconfig_env);
  if (listed.size() > 1) {
    return Fail(ErrorCode::kUnsupported,
                "KUBECONFIG names several files, which are not merged; write them into one with "
                "kubectl config view --flatten, or give one with --kubeconfig");
  }
  if (!listed.empty()) return listed[0];
  const std::string standard = surroundings.home + "/.kube/config";
  if (!surroundings.home.empty() && surroundings.exists(standard)) return standard;
  return std::string();
}

Result<kube::Config> ReadConfig(const CommandLine& line, const Surroundings& surroundings) {
  BIMETAL_TRY_ASSIGN(const std::string file, ChooseKubeconfig(line, surroundings));
  if (file.empty()) {
    if (!line.context.empty()) {
      return Fail(ErrorCode::kNotFound, "context " + line.context +
                                            ": there is no kubeconfig to find it in; give one with "
                                            "--kubeconfig or KUBECONFIG");
    }
    Result<kube::Config> config = kube::InClusterConfig();
    if (config) return config;
    return Fail(ErrorCode::kNotFound,
                "no cluster to talk to: no kubeconfig is there and this is no pod of a cluster; "
                "give one with --kubeconfig or KUBECONFIG");
  }
  Result<kube::Config> config = kube::KubeconfigFile(file, line.context);
  if (!config && config.error().code == ErrorCode::kUnsupported) {
    config.error().message +=
        ", or let kubectl sign in: kubectl proxy, and a kubeconfig with its http address";
  }
  return config;
}

}  // namespace bimetal::cli
