#include "operator/pods/validation_pod.h"

#include "core/base/hash.h"
#include "operator/pods/json.h"
#include "operator/state/store.h"

namespace bimetal::op {
namespace {

std::string JoinCommas(const std::vector<std::string>& parts) {
  std::string out;
  for (const auto& part : parts) out += (out.empty() ? "" : ",") + part;
  return out;
}

Json Arguments(const ValidationPodSpec& spec) {
  Json args = Json::array({"--backend", spec.machine_dir.empty() ? "auto" : "host", "--vendor",
                           std::string(core::VendorName(spec.vendor)), "--level",
                           spec.path ? "L0" : spec.level, "--run-id", "$(POD_UID)", "--fingerprint",
                           spec.fingerprint, "--report", "unix:/run/bimetal/agent.sock",
                           "--timeout", std::to_string(spec.timeout.v / 1000)});
  for (const auto& device : spec.devices) {
    if (spec.path) break;  // whatever it is given
    args.push_back("--device");
    args.push_back(device);
  }
  if (!spec.machine_dir.empty()) {
    args.push_back("--machine");
    args.push_back("/machine");
  }
  if (!spec.checks.empty() && !spec.path) {
    args.push_back("--checks");
    args.push_back(JoinCommas(spec.checks));
  }
  return args;
}

// How the pod gets at the devices without asking the scheduler for them. NVIDIA's container runtime
// injects them for an environment variable; AMD's are device nodes of the host.
void GiveDevices(const ValidationPodSpec& spec, Json& container, Json& volumes) {
  const auto mount = [&](const char* name, const std::string& host, const char* path,
                         bool read_only) {
    volumes.push_back({{"name", name}, {"hostPath", {{"path", host}}}});
    container["volumeMounts"].push_back(
        {{"name", name}, {"mountPath", path}, {"readOnly", read_only}});
  };
  if (!spec.machine_dir.empty()) {
    mount("machine", spec.machine_dir, "/machine", true);
    return;
  }
  if (spec.path) return;  // the plug-in and the runtime do
  if (spec.vendor == core::Vendor::kNvidia) {
    container["env"].push_back({{"name", "NVIDIA_VISIBLE_DEVICES"}, {"value", "all"}});
    container["env"].push_back(
        {{"name", "NVIDIA_DRIVER_CAPABILITIES"}, {"value", "compute,utility"}});
    return;
  }
  // Device nodes of the host can be opened only by a privileged container where no plug-in adds
  // them to its cgroup.
  mount("kfd", "/dev/kfd", "/dev/kfd", false);
  mount("dri", "/dev/dri", "/dev/dri", false);
  container["securityContext"] = {{"runAsUser", 0}, {"privileged", true}};
}

}  // namespace

std::string ValidationPodName(core::Vendor vendor, const std::string& node,
                              const std::string& cause) {
  return "bimetal-validate-" + std::string(core::VendorName(vendor)) + "-" +
         ShortHash(node + "\n" + cause);
}

std::string BuildValidationPod(const ValidationPodSpec& spec) {
  Json container = {{"name", "validate"},
                    {"image", spec.image},
                    {"imagePullPolicy", spec.pull_policy},
                    {"args", Arguments(spec)}};
  container["env"] = Json::array(
      {{{"name", "POD_UID"}, {"valueFrom", {{"fieldRef", {{"fieldPath", "metadata.uid"}}}}}}});
  container["resources"] = {{"requests", {{"cpu", "100m"}, {"memory", "128Mi"}}}};
  if (spec.path) container["resources"]["limits"] = {{spec.resource_name, "1"}};
  // Root, because the agent's socket and the devices belong to root; nothing else is granted.
  container["securityContext"] = {{"runAsUser", 0},
                                  {"allowPrivilegeEscalation", false},
                                  {"readOnlyRootFilesystem", true},
                                  {"capabilities", {{"drop", {"ALL"}}}}};
  container["volumeMounts"] = Json::array({{{"name", "agent"}, {"mountPath", "/run/bimetal"}}});
  Json volumes = Json::array({{{"name", "agent"}, {"hostPath", {{"path", spec.socket_dir}}}}});
  GiveDevices(spec, container, volumes);

  Json tolerations = Json::array({{{"operator", "Exists"},
                                   {"effect", "NoSchedule"},
                                   {"key", std::string(core::kUnvalidatedTaint)}}});
  for (const auto& toleration : spec.tolerations) {
    Json entry = Json::object();
    if (!toleration.key.empty()) entry["key"] = toleration.key;
    if (!toleration.op.empty()) entry["operator"] = toleration.op;
    if (!toleration.value.empty()) entry["value"] = toleration.value;
    if (!toleration.effect.empty()) entry["effect"] = toleration.effect;
    tolerations.push_back(entry);
  }
  Json pod = {{"apiVersion", "v1"}, {"kind", "Pod"}};
  pod["metadata"] = {
      {"name", spec.name},
      {"namespace", spec.name_space},
      {"labels",
       {{kValidatesLabel, std::string(core::VendorName(spec.vendor))},
        {kRunLabel, spec.path ? "path" : "kernels"},
        {"app.kubernetes.io/name", "bimetal-validation"},
        {"app.kubernetes.io/managed-by", "bimetal"}}},
      {"annotations",
       {{kPinnedNodeAnnotation, spec.node}, {kRunDevicesAnnotation, JoinCommas(spec.devices)}}}};
  pod["spec"] = {{"restartPolicy", "Never"},
                 {"serviceAccountName", spec.service_account},
                 {"automountServiceAccountToken", false},
                 {"enableServiceLinks", false},
                 {"activeDeadlineSeconds", spec.timeout.v / 1000 + 30},
                 {"terminationGracePeriodSeconds", 2},
                 {"tolerations", tolerations},
                 {"containers", Json::array({container})},
                 {"volumes", volumes}};
  if (!spec.priority_class.empty()) pod["spec"]["priorityClassName"] = spec.priority_class;
  PinToNode(pod["spec"], spec.node);
  return pod.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace bimetal::op
