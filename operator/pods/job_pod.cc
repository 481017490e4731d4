#include "operator/pods/job_pod.h"

#include <algorithm>

#include "operator/pods/json.h"
#include "operator/pods/pod_parts.h"
#include "operator/state/store.h"

namespace bimetal::op {
namespace {

constexpr char kProgressDir[] = "/var/run/bimetal-progress";
constexpr char kProgressVolume[] = "bimetal-progress";
constexpr char kCheckpointVolume[] = "bimetal-checkpoint";
constexpr int kDefaultGraceSeconds = 30;  // Kubernetes' own

// Pods of a role in this attempt.
std::int64_t PodsOf(const GangContext& gang, std::size_t role) {
  return role < gang.gang.size() ? gang.gang[role] : gang.job.roles[role].replicas;
}

std::string HostName(const GangContext& gang, std::size_t role, int index) {
  return gang.job.roles[role].name + "-" + std::to_string(index) + "-a" +
         std::to_string(gang.attempt);
}

// What a distributed program expects to find (torchrun's names) and what is ours.
void AddGangEnv(Json& env, const GangContext& gang, std::size_t role, int index) {
  std::int64_t rank = index, world = 0;
  for (std::size_t r = 0; r < gang.job.roles.size(); ++r) {
    if (r < role) rank += PodsOf(gang, r);
    world += PodsOf(gang, r);
  }
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
  if (gang.job.checkpoint) SetEnv(env, "BIMETAL_CHECKPOINT_PATH", gang.job.checkpoint->path);
}

// Few kubelets can send a signal of one's own choice, so a hook does it and waits for the program
// to end; SIGTERM comes after it. Where they can (lifecycle.stopSignal), they send the same once
// more.
void AddStopSignal(Json& spec, const std::string& signal) {
  if (!spec.contains("os")) spec["os"] = {{"name", "linux"}};  // stopSignal asks for it
  Json& lifecycle = spec["containers"][0]["lifecycle"];
  const bool own_pids =
      !spec.value("shareProcessNamespace", false) && !spec.value("hostPID", false);
  if (own_pids && !lifecycle.contains("preStop")) {
    const std::string name = signal.substr(3);  // without SIG
    lifecycle["preStop"]["exec"]["command"] = {
        "/bin/sh", "-c", "kill -s " + name + " 1; while kill -0 1 2>/dev/null; do sleep 1; done"};
  }
  if (lifecycle.contains("stopSignal")) return;
  lifecycle["stopSignal"] = signal;
}

// A key that is new to `spec` moves all that is in it, so that nothing of it is held by reference.
void AddCheckpoint(Json& spec, const core::Checkpoint& checkpoint) {
  const std::int64_t grace =
      spec.value("terminationGracePeriodSeconds", std::int64_t{kDefaultGraceSeconds});
  spec["terminationGracePeriodSeconds"] = std::max<std::int64_t>(grace, checkpoint.grace_seconds);
  if (checkpoint.signal != "SIGTERM") AddStopSignal(spec, checkpoint.signal);
  if (checkpoint.claim_name.empty()) return;
  spec["containers"][0]["volumeMounts"].push_back(
      {{"name", kCheckpointVolume}, {"mountPath", checkpoint.path}});
  spec["volumes"].push_back({{"name", kCheckpointVolume},
                             {"persistentVolumeClaim", {{"claimName", checkpoint.claim_name}}}});
}

// "1,7": how many pods each role has, for whoever reads the pods without the status.
std::string GangText(const GangContext& gang) {
  std::string out;
  for (std::size_t r = 0; r < gang.job.roles.size(); ++r) {
    out += (r == 0 ? "" : ",") + std::to_string(PodsOf(gang, r));
  }
  return out;
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

Json Build(const GangContext& gang, const core::placement::PodPlacement& placement) {
  const auto& role = gang.object.spec().roles(static_cast<int>(placement.role));
  Json pod = {{"apiVersion", "v1"}, {"kind", "Pod"}};
  pod["metadata"] = OwnedMetadata("GPUJob", gang.object.metadata(),
                                  JobPodName(gang, placement.role, placement.index));
  for (const auto& [key, value] : role.template_().metadata().annotations()) {
    pod["metadata"]["annotations"][key] = value;
  }
  for (const auto& [key, value] : role.template_().metadata().labels())
    pod["metadata"]["labels"][key] = value;
  pod["metadata"]["annotations"][kPinnedNodeAnnotation] = placement.node.value;
  pod["metadata"]["annotations"][kGangAnnotation] = GangText(gang);
  SetLabels(pod["metadata"]["labels"], gang, placement.role, placement.index);

  Json spec = SpecOfTemplate(role.template_().spec().raw());
  Json& main = spec["containers"][0];
  const auto& variant = gang.object.spec().variants(static_cast<int>(gang.variant));
  ApplyVariant(main, variant, gang.resource_name);
  AddCollectiveEnv(main["env"], gang.job.variants[gang.variant].vendor);
  AddGangEnv(main["env"], gang, placement.role, placement.index);
  main["volumeMounts"].push_back({{"name", kProgressVolume}, {"mountPath", kProgressDir}});
  spec["volumes"].push_back({{"name", kProgressVolume}, {"emptyDir", Json::object()}});
  if (gang.job.checkpoint) AddCheckpoint(spec, *gang.job.checkpoint);

  PinToNode(spec, placement.node.value);
  spec["restartPolicy"] = "Never";
  spec["enableServiceLinks"] = false;
  spec["hostname"] = HostName(gang, placement.role, placement.index);
  spec["subdomain"] = GangServiceName(gang.object);
  SetPodPriority(spec, gang.priority_class);
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
  service["metadata"] = OwnedMetadata("GPUJob", object.metadata(), GangServiceName(object));
  service["metadata"]["labels"] = {{kJobUidLabel, object.metadata().uid()},
                                   {"app.kubernetes.io/managed-by", "bimetal"}};
  // Members must find each other before they are ready.
  service["spec"] = {{"clusterIP", "None"},
                     {"publishNotReadyAddresses", true},
                     {"selector", {{kJobUidLabel, object.metadata().uid()}}}};
  return service.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace bimetal::op
