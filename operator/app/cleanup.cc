#include "operator/app/cleanup.h"

#include "api/kubernetes.pb.h"
#include "core/base/log.h"
#include "kube/codec/codec.h"
#include "kube/codec/json.h"
#include "operator/state/store.h"

namespace bimetal::op {
namespace {

constexpr char kPrefix[] = "bimetal.dev/";
constexpr int kTries = 5;  // against other writers of the same node

bool IsOurs(const std::string& key) {
  return key.rfind(kPrefix, 0) == 0 || key.rfind(kCapabilityLabelPrefix, 0) == 0;
}

// Empty where the node carries nothing of ours.
std::string PatchOf(const api::Node& node) {
  std::string labels, taints;
  bool tainted = false;
  for (const auto& [key, value] : node.metadata().labels()) {
    if (IsOurs(key)) labels += (labels.empty() ? "" : ",") + kube::JsonString(key) + ":null";
  }
  for (const auto& taint : node.spec().taints()) {
    if (taint.key() == core::kUnvalidatedTaint) {
      tainted = true;
      continue;
    }
    taints += (taints.empty() ? "" : ",") + kube::ToJson(taint);
  }
  if (labels.empty() && !tainted) return "";
  std::string out =
      R"({"metadata":{"resourceVersion":)" + kube::JsonString(node.metadata().resource_version());
  if (!labels.empty()) out += R"(,"labels":{)" + labels + "}";
  out += "}";
  if (tainted) out += R"(,"spec":{"taints":[)" + taints + "]}";
  return out + "}";
}

Status CleanNode(kube::Client& client, api::Node node) {
  for (int attempt = 1;; ++attempt) {
    const std::string patch = PatchOf(node);
    if (patch.empty()) return {};
    const auto patched =
        client.Patch<api::Node>("", node.metadata().name(), patch, kube::PatchType::kMerge);
    if (patched) {
      Log(LogLevel::kInfo, "node cleaned", {{"node", node.metadata().name()}});
      return {};
    }
    if (patched.error().code != ErrorCode::kConflict || attempt == kTries) {
      return tl::unexpected<Error>(patched.error());
    }
    BIMETAL_TRY_ASSIGN(node, client.Get<api::Node>("", node.metadata().name()));
  }
}

}  // namespace

Status CleanUp(kube::Client& client, const std::string& name_space, const std::string& lease_name) {
  Status last;
  const auto note = [&last](const Status& status, const std::string& what) {
    if (status || status.error().code == ErrorCode::kNotFound) return;
    Log(LogLevel::kWarning, "not cleaned", {{"object", what}, {"error", status.error().message}});
    last = status;
  };
  const auto nodes = client.ListAll<api::Node>();
  if (!nodes) return tl::unexpected<Error>(nodes.error());
  for (const auto& node : nodes->items) note(CleanNode(client, node), node.metadata().name());
  note(client.Delete<api::Secret>(name_space, "bimetal-agent-ca"), "the CA's Secret");
  note(client.Delete<api::ConfigMap>(name_space, "bimetal-agent-ca"), "the CA's ConfigMap");
  note(client.Delete<api::Lease>(name_space, lease_name), "the Lease");
  return last;
}

}  // namespace bimetal::op
