#pragma once

#include <functional>
#include <string>

#include "cli/flags.h"
#include "core/base/result.h"
#include "kube/config/config.h"

namespace bimetal::cli {

// What the choice of a configuration depends on, beside the command line.
struct Surroundings {
  std::string kubeconfig_env;  // $KUBECONFIG
  std::string home;            // $HOME
  std::function<bool(const std::string& path)> exists;
  bool terminal = false;  // standard output is one, and wants colours
};

// The kubeconfig to read; "" for the account of the pod that this program runs in (or nothing at
// all). Pure but for `exists`. Errors: kUnsupported for a $KUBECONFIG that names several files.
Result<std::string> ChooseKubeconfig(const CommandLine& line, const Surroundings& surroundings);

// The cluster to talk to. Errors: those of kube/config, with the remedy.
Result<kube::Config> ReadConfig(const CommandLine& line, const Surroundings& surroundings);

}  // namespace bimetal::cli
