#include "operator/pods/service_pod.h"

#include "operator/pods/json.h"
#include "operator/pods/pod_parts.h"
#include "operator/state/store.h"

namespace bimetal::op {
namespace {

// Name of the port in every replica; its number may differ by variant.
constexpr char kPortName[] = "bimetal-http";
constexpr std::int64_t kDefaultDrainSeconds = 5, kDefaultGraceSeconds = 30;
constexpr int kDefaultPort = 80;

int Or(int value, int fallback) { return value == 0 ? fallback : value; }

void AddReplicaEnv(Json& env, const ReplicaContext& replica) {
  const auto& variant = replica.service.replica.variants[replica.variant];
  SetEnv(env, "BIMETAL_SERVICE", replica.service.replica.name);
  SetEnv(env, "BIMETAL_SERVICE_UID", replica.service.replica.uid.value);
  SetEnv(env, "BIMETAL_REPLICA", ReplicaPodName(replica));
  SetEnv(env, "BIMETAL_VARIANT", variant.name);
  SetEnv(env, "BIMETAL_VENDOR", std::string(core::VendorName(variant.vendor)));
  SetEnv(env, "BIMETAL_DEVICES_PER_POD", std::to_string(variant.devices_per_pod));
  SetEnv(env, "BIMETAL_PORT", std::to_string(replica.service.variants[replica.variant].port));
}

void AddPort(Json& container, int port) {
  Json& ports = container["ports"];
  if (!ports.is_array()) ports = Json::array();
  for (std::size_t i = 0; i < ports.size(); ++i) {
    // The user may have named the port already; a pod must not have it twice.
    if (ports[i].value("containerPort", 0) == port || ports[i].value("name", "") == kPortName) {
      ports.erase(i--);
    }
  }
  ports.push_back({{"name", kPortName}, {"containerPort", port}, {"protocol", "TCP"}});
}

void AddReadiness(Json& container, const api::Readiness& readiness, int port) {
  if (container.contains("readinessProbe")) return;
  const int asked = Or(readiness.port(), port);
  Json probe;
  if (readiness.path().empty()) {
    probe["tcpSocket"] = {{"port", asked}};
  } else {
    probe["httpGet"] = {{"path", readiness.path()}, {"port", asked}};
  }
  probe["periodSeconds"] = Or(readiness.period_seconds(), 5);
  probe["timeoutSeconds"] = Or(readiness.timeout_seconds(), 2);
  probe["failureThreshold"] = Or(readiness.failure_threshold(), 3);
  container["readinessProbe"] = std::move(probe);
}

// A pod that is deleted leaves the Service at once; the program hears of it only after the pause,
// so that requests on their way still find it.
void AddDrain(Json& spec, Json& container, std::int64_t seconds) {
  const std::int64_t grace =
      spec.value("terminationGracePeriodSeconds", std::int64_t{kDefaultGraceSeconds});
  if (seconds == 0) return;
  if (container.contains("lifecycle") && container["lifecycle"].contains("preStop")) return;
  container["lifecycle"]["preStop"] = {{"sleep", {{"seconds", seconds}}}};
  spec["terminationGracePeriodSeconds"] = grace + seconds;
}

void SetReplicaLabels(Json& labels, const ReplicaContext& replica) {
  labels[kServiceUidLabel] = replica.service.replica.uid.value;
  labels[kServiceNameLabel] = replica.service.replica.name;
  labels[kRevisionLabel] = replica.service.variants[replica.variant].revision;
  labels[kIndexLabel] = std::to_string(replica.index);
  labels[kVariantLabel] = replica.service.replica.variants[replica.variant].name;
  labels["app.kubernetes.io/managed-by"] = "bimetal";
}

Json Build(const ReplicaContext& replica, const std::string& node) {
  const auto& from = replica.object.spec();
  Json pod = {{"apiVersion", "v1"}, {"kind", "Pod"}};
  pod["metadata"] = OwnedMetadata("GPUService", replica.object.metadata(), ReplicaPodName(replica));
  for (const auto& [key, value] : from.template_().metadata().annotations()) {
    pod["metadata"]["annotations"][key] = value;
  }
  for (const auto& [key, value] : from.template_().metadata().labels()) {
    // What begins so is the operator's, and makes a pod another's.
    if (key.rfind("bimetal.dev/", 0) != 0) pod["metadata"]["labels"][key] = value;
  }
  pod["metadata"]["annotations"][kPinnedNodeAnnotation] = node;
  SetReplicaLabels(pod["metadata"]["labels"], replica);

  Json spec = SpecOfTemplate(from.template_().spec().raw());
  Json& main = spec["containers"][0];
  const auto& variant = replica.service.replica.variants[replica.variant];
  const int port = replica.service.variants[replica.variant].port;
  ApplyVariant(main, core::VariantOf(from.variants(static_cast<int>(replica.variant))),
               replica.resource_name);
  AddCollectiveEnv(main["env"], variant.vendor);
  AddReplicaEnv(main["env"], replica);
  AddPort(main, port);
  AddReadiness(main, from.readiness(), port);
  AddDrain(spec, main, from.has_drain_seconds() ? from.drain_seconds() : kDefaultDrainSeconds);
  PinToNode(spec, node);
  spec["restartPolicy"] = "Always";
  spec["enableServiceLinks"] = false;
  SetPodPriority(spec, replica.priority_class);
  spec.erase("nodeName");
  pod["spec"] = std::move(spec);
  return pod;
}

}  // namespace

std::string ReplicaPodName(const ReplicaContext& replica) {
  return replica.service.replica.name + "-" + replica.service.variants[replica.variant].revision +
         "-" + std::to_string(replica.index);
}

Result<std::string> BuildReplicaPod(const ReplicaContext& replica, const std::string& node) {
  try {
    return Build(replica, node).dump(-1, ' ', false, Json::error_handler_t::replace);
  } catch (const Json::exception& e) {
    return Fail(ErrorCode::kData,
                std::string("spec.template cannot be made into a pod: ") + e.what());
  }
}

std::string ReplicaSelector(const std::string& service_uid) {
  return std::string(kServiceUidLabel) + "=" + service_uid;
}

std::string BuildReplicaService(const api::GPUService& object) {
  Json service = {{"apiVersion", "v1"}, {"kind", "Service"}};
  service["metadata"] = OwnedMetadata("GPUService", object.metadata(), object.metadata().name());
  service["metadata"]["labels"] = {{kServiceUidLabel, object.metadata().uid()},
                                   {"app.kubernetes.io/managed-by", "bimetal"}};
  service["spec"] = {{"selector", {{kServiceUidLabel, object.metadata().uid()}}},
                     {"ports", Json::array({{{"name", "http"},
                                             {"protocol", "TCP"},
                                             {"port", Or(object.spec().port(), kDefaultPort)},
                                             {"targetPort", kPortName}}})}};
  return service.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace bimetal::op
