#include "operator/pods/job_pod.h"

#include <algorithm>

#include "operator/pods/json.h"
#include "operator/state/store.h"

namespace bimetal::op {
namespace {

constexpr char kProgressDir[] = "/var/run/bimetal-progress";
constexpr char kProgressVolume[] = "bimetal-progress";

std::string HostName(const GangContext& gang, std::size_t role, int index) {
  return gang.job.roles[role].name + "-" + std::to_string(index) + "-a" +
         std::to_string(gang.attempt);
}

// Sets `name` to `value`, over an entry of the same name.
void SetEnv(Json& env, const std::string& name, const Json& entry) {
  for (auto& existing : env) {
    if (existing.value("name", "") == name) {
      existing = entry;
      return;
    }
  }
  env.push_back(entry);
}

void SetEnv(Json& env, const std::string& name, const std::string& value) {
  SetEnv(env, name, Json{{"name", name}, {"value", value}});
}

// What a distributed program expects to find (torchrun's names) and what is ours.
void AddGangEnv(Json& env, const GangContext& gang, std::size_t role, int index) {
  std::int64_t rank = index;
  for (std::size_t r = 0; r < role; ++r) rank += gang.job.roles[r].replicas;
  const std::int64_t world = core::PodCount(gang.job);
  const auto& variant = gang.job.variants[gang.variant];
  const std::string master = world == 1
                                 ? "127.0.0.1"
                                 : HostName(gang, 0, 0) + "." + GangServiceName(gang.object) + "." +
                                       gang.job.name_space + ".svc";
  SetEnv(env, "RANK", std::to_string(rank));
  SetEnv(env, "WORLD_SIZE", std::to_string(world));
  SetEnv(env, "MASTER_ADDR", master);
  SetEnv(env, "MASTER_PORT", std::to_string(kMasterPort));
  SetEnv(env, "BIMETAL_JOB", gang.job.name);
  SetEnv(env, "BIMETAL_JOB_UID", gang.job.uid.value);
  SetEnv(env, "BIMETAL_ATTEMPT", std::to_string(gang.attempt));
  SetEnv(env, "BIMETAL_ROLE", gang.job.roles[role].name);
  SetEnv(env, "BIMETAL_ROLE_INDEX", std::to_string(index));
  SetEnv(env, "BIMETAL_VARIANT", variant.name);
  SetEnv(env, "BIMETAL_VENDOR", std::string(core::VendorName(variant.vendor)));
  SetEnv(env, "BIMETAL_DEVICES_PER_POD", std::to_string(variant.devices_per_pod));
  SetEnv(env, "BIMETAL_PROGRESS_FILE", std::string(kProgressDir) + "/progress.jsonl");
}

// Collective settings that are safe everywhere: a lost peer ends the program instead of hanging it.
// The user's own values win.
void AddCollectiveEnv(Json& env, core::Vendor vendor) {
  const auto add = [&](const char* name, const char* value) {
    const bool set = std::any_of(
        env.begin(), env.end(), [&](const Json& entry) { return entry.value("name", "") == name; });
    if (!set) SetEnv(env, name, std::string(value));
  };
  add("TORCH_NCCL_ASYNC_ERROR_HANDLING", "1");
  // RCCL reads NCCL's names; ROCm documents this one for multi-device work on MI300.
  if (vendor == core::Vendor::kAmd) add("HSA_NO_SCRATCH_RECLAIM", "1");
}

void ApplyVariant(Json& container, const api::Variant& variant, const std::string& resource_name) {
  container["image"] = variant.image();
  if (variant.command_size() > 0) {
    container["command"] =
        std::vector<std::string>(variant.command().begin(), variant.command().end());
  }
  if (variant.args_size() > 0) {
    container["args"] = std::vector<std::string>(variant.args().begin(), variant.args().end());
  }
  Json& env = container["env"];
  if (!env.is_array()) env = Json::array();
  for (const auto& entry : variant.env()) {
    const Json raw = entry.raw().empty() ? Json{{"name", entry.name()}, {"value", entry.value()}}
                                         : Json::parse(entry.raw());
    SetEnv(env, entry.name(), raw);
  }
  container["resources"]["limits"][resource_name] = std::to_string(variant.devices_per_pod());
}

void SetLabels(Json& labels, const GangContext& gang, std::size_t role, int index) {
  labels[kJobUidLabel] = gang.job.uid.value;
  labels[kJobNameLabel] = gang.job.name;
  labels[kAttemptLabel] = std::to_string(gang.attempt);
  labels[kRoleLabel] = gang.job.roles[role].name;
  labels[kIndexLabel] = std::to_string(index);
  labels[kVariantLabel] = gang.job.variants[gang.variant].name;
  labels["app.kubernetes.io/managed-by"] = "bimetal";
}

Json OwnedMetadata(const api::GPUJob& object, const std::string& name) {
  Json meta;
  meta["name"] = name;
  meta["namespace"] = object.metadata().namespace_();
  meta["ownerReferences"] = Json::array({{{"apiVersion", "bimetal.dev/v1alpha1"},
                                          {"kind", "GPUJob"},
                                          {"name", object.metadata().name()},
                                          {"uid", object.metadata().uid()},
                                          {"controller", true}}});
  return meta;
}

Json Build(const GangContext& gang, const core::placement::PodPlacement& placement) {
  const auto& role = gang.object.spec().roles(static_cast<int>(placement.role));
  Json pod = {{"apiVersion", "v1"}, {"kind", "Pod"}};
  pod["metadata"] = OwnedMetadata(gang.object, JobPodName(gang, placement.role, placement.index));
  for (const auto& [key, value] : role.template_().metadata().annotations()) {
    pod["metadata"]["annotations"][key] = value;
  }
  for (const auto& [key, value] : role.template_().metadata().labels())
    pod["metadata"]["labels"][key] = value;
  pod["metadata"]["annotations"][kPinnedNodeAnnotation] = placement.node.value;
  SetLabels(pod["metadata"]["labels"], gang, placement.role, placement.index);

  const auto& raw = role.template_().spec().raw();
  Json spec = raw.empty() ? Json::object() : Json::parse(raw);
  if (!spec["containers"].is_array() || spec["containers"].empty()) {
    spec["containers"] = Json::array({{{"name", "main"}}});
  }
  Json& main = spec["containers"][0];
  const auto& variant = gang.object.spec().variants(static_cast<int>(gang.variant));
  ApplyVariant(main, variant, gang.resource_name);
  AddCollectiveEnv(main["env"], gang.job.variants[gang.variant].vendor);
  AddGangEnv(main["env"], gang, placement.role, placement.index);
  main["volumeMounts"].push_back({{"name", kProgressVolume}, {"mountPath", kProgressDir}});
  spec["volumes"].push_back({{"name", kProgressVolume}, {"emptyDir", Json::object()}});

  PinToNode(spec, placement.node.value);
  spec["restartPolicy"] = "Never";
  spec["enableServiceLinks"] = false;
  spec["hostname"] = HostName(gang, placement.role, placement.index);
  spec["subdomain"] = GangServiceName(gang.object);
  spec["priorityClassName"] = gang.priority_class;
  spec.erase("priority");
  spec.erase("preemptionPolicy");
  spec.erase("nodeName");
  pod["spec"] = std::move(spec);
  return pod;
}

}  // namespace

std::string JobPodName(const GangContext& gang, std::size_t role, int index) {
  return gang.job.name + "-" + std::to_string(gang.attempt) + "-" + gang.job.roles[role].name +
         "-" + std::to_string(index);
}

std::string GangServiceName(const api::GPUJob& object) {
  return object.metadata().name() + "-gang";
}

Result<std::string> BuildJobPod(const GangContext& gang,
                                const core::placement::PodPlacement& placement) {
  try {
    return Build(gang, placement).dump(-1, ' ', false, Json::error_handler_t::replace);
  } catch (const Json::exception& e) {
    return Fail(ErrorCode::kData, "spec.roles[" + std::to_string(placement.role) +
                                      "].template cannot be made into a pod: " + e.what());
  }
}

std::string BuildGangService(const api::GPUJob& object) {
  Json service = {{"apiVersion", "v1"}, {"kind", "Service"}};
  service["metadata"] = OwnedMetadata(object, GangServiceName(object));
  service["metadata"]["labels"] = {{kJobUidLabel, object.metadata().uid()},
                                   {"app.kubernetes.io/managed-by", "bimetal"}};
  // Members must find each other before they are ready.
  service["spec"] = {{"clusterIP", "None"},
                     {"publishNotReadyAddresses", true},
                     {"selector", {{kJobUidLabel, object.metadata().uid()}}}};
  return service.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace bimetal::op
