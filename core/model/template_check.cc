#include "core/model/template_check.h"

#include <set>
#include <string_view>

#include "core/model/check.h"
#include "core/model/demand.h"

namespace bimetal::core {
namespace {

constexpr int kMaxContainers = 16, kMaxTolerations = 32;
constexpr std::size_t kMaxImage = 1024;

// The vendors' whole devices, their shared ones and their partitions.
bool IsGpuResource(std::string_view name) {
  return name.starts_with("nvidia.com/gpu") || name.starts_with("nvidia.com/mig-") ||
         name.starts_with("amd.com/gpu");
}

Status CheckNoGpu(const QuantityMap& quantities, const std::string& path) {
  std::set<std::string> found;  // the map has no order; the message must have one
  for (const auto& [name, quantity] : quantities) {
    if (IsGpuResource(name)) found.insert(name);
  }
  if (found.empty()) return {};
  return FieldError(path + "[\"" + *found.begin() + "\"]",
                    "GPU resources are not allowed in a role's template; set devicesPerPod in the "
                    "variants");
}

Status CheckContainers(const ContainerList& containers, const std::string& path, bool first_is_ours,
                       std::set<std::string>& names) {
  BIMETAL_TRY(CheckCount(path, containers.size(), 0, kMaxContainers));
  for (int i = 0; i < containers.size(); ++i) {
    const auto& container = containers[i];
    const std::string at = At(path, i);
    BIMETAL_TRY(CheckLabelName(at + ".name", container.name(), 63));
    BIMETAL_TRY(CheckUnique(at + ".name", container.name(), names));
    BIMETAL_TRY(CheckNoGpu(container.resources().requests(), at + ".resources.requests"));
    BIMETAL_TRY(CheckNoGpu(container.resources().limits(), at + ".resources.limits"));
    if (first_is_ours && i == 0) {
      if (!container.image().empty()) {
        return FieldError(at + ".image",
                          "the first container takes its image from the chosen variant; remove "
                          "image here and set it in the variants");
      }
    } else {
      BIMETAL_TRY(CheckText(at + ".image", container.image(), kMaxImage));
    }
  }
  return {};
}

Status CheckToleration(const api::Toleration& toleration, const std::string& path) {
  const auto& op = toleration.operator_();
  if (!op.empty() && op != "Exists" && op != "Equal") {
    return FieldError(path + ".operator", Quoted(op) + " is unknown; use Exists or Equal");
  }
  if (op == "Exists" && !toleration.value().empty()) {
    return FieldError(path + ".value", "must be empty with operator Exists; remove it");
  }
  if (toleration.key().empty() && op != "Exists") {
    return FieldError(path + ".operator", "must be Exists where key is empty; set it");
  }
  if (toleration.key() == kUnvalidatedTaint) {
    return FieldError(path + ".key",
                      "a job cannot tolerate nodes that have not passed validation; "
                      "remove this toleration");
  }
  const auto& effect = toleration.effect();
  if (effect.empty() || effect == "NoSchedule" || effect == "PreferNoSchedule" ||
      effect == "NoExecute") {
    return {};
  }
  return FieldError(path + ".effect", Quoted(effect) +
                                          " is unknown; use NoSchedule, PreferNoSchedule or "
                                          "NoExecute, or leave it out for all");
}

}  // namespace

Status ReadTemplate(const api::PodTemplateSpec& pod_template, const std::string& path, Role* role) {
  const auto& spec = pod_template.spec();
  const std::string at = path + ".spec";
  if (!spec.node_name().empty()) {
    return FieldError(at + ".nodeName",
                      "is not allowed, because the operator places the pods; remove it, and use "
                      "nodeSelector to narrow the choice");
  }
  std::set<std::string> names;
  BIMETAL_TRY(CheckContainers(spec.containers(), at + ".containers", true, names));
  BIMETAL_TRY(CheckContainers(spec.init_containers(), at + ".initContainers", false, names));
  BIMETAL_TRY_ASSIGN(const PodDemand demand,
                     DemandOfPod(spec.containers(), spec.init_containers(), {}, at));
  role->requests = demand.requests;
  BIMETAL_TRY(CheckCount(at + ".tolerations", spec.tolerations_size(), 0, kMaxTolerations));
  for (int i = 0; i < spec.tolerations_size(); ++i) {
    const auto& toleration = spec.tolerations(i);
    BIMETAL_TRY(CheckToleration(toleration, At(at + ".tolerations", i)));
    role->tolerations.push_back(Toleration{.key = toleration.key(),
                                           .op = toleration.operator_(),
                                           .value = toleration.value(),
                                           .effect = toleration.effect()});
  }
  role->node_selector.insert(spec.node_selector().begin(), spec.node_selector().end());
  return {};
}

}  // namespace bimetal::core
