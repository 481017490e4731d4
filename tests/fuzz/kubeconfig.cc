// A kubeconfig file.
#include "kube/config/config.h"

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/tree.h"

BIMETAL_FUZZ(text) {
  static const Tree tree;
  tree.Write("config", text);
  if (const auto config = kube::KubeconfigFile(tree.root() + "/config")) {
    Require(!config->server.empty());
  }
}
