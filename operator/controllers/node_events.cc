#include "operator/controllers/node_events.h"

#include "core/base/hash.h"
#include "operator/controllers/conditions.h"

namespace bimetal::op {
namespace {

constexpr std::size_t kMostMessage = 1000;  // the API server takes 1024

// Of a cluster's object; PutIn makes it one of a namespace's.
api::Event Make(const std::string& kind, const std::string& name, const std::string& key,
                const std::string& reason, const std::string& message, bool warning,
                TimePoint now) {
  api::Event event;
  event.mutable_metadata()->set_namespace_("default");  // of cluster objects' events
  event.mutable_metadata()->set_name(Cut(name, 200) + ".bimetal." + ShortHash(key));
  auto* object = event.mutable_involved_object();
  object->set_api_version(kind == "Node" || kind == "Pod" ? "v1" : "bimetal.dev/v1alpha1");
  object->set_kind(kind);
  object->set_name(name);
  // As the kubelet does, so that `kubectl describe node` shows it.
  if (kind == "Node") object->set_uid(name);
  event.set_reason(reason);
  event.set_message(Cut(message, kMostMessage));
  event.set_type(warning ? "Warning" : "Normal");
  event.set_first_timestamp(FormatTime(now));
  event.set_last_timestamp(FormatTime(now));
  event.set_count(1);
  event.mutable_source()->set_component("bimetal-operator");
  event.set_reporting_component("bimetal-operator");
  return event;
}

void PutIn(const std::string& name_space, const std::string& uid, api::Event* event) {
  event->mutable_metadata()->set_namespace_(name_space);
  event->mutable_involved_object()->set_namespace_(name_space);
  event->mutable_involved_object()->set_uid(uid);
}

}  // namespace

api::Event TransitionEvent(const std::string& node, const api::GPUNodeStatus& status,
                           TimePoint now) {
  const bool warning = status.phase() == "Quarantined" || status.phase() == "Lost";
  return Make("Node", node, status.phase() + "|" + std::to_string(now.ms), status.reason(),
              "GPU devices are " + status.phase() + ": " + status.message(), warning, now);
}

api::Event FindingEvent(const std::string& node, const std::string& boot_id,
                        const api::Finding& finding, const std::string& key, TimePoint now) {
  std::string message = finding.evidence();
  if (!finding.device().empty()) message = "device " + finding.device() + ": " + message;
  if (!finding.remedy().empty()) message += "; " + finding.remedy();
  return Make("Node", node, boot_id + "|" + key, finding.code(), message,
              finding.severity() != "Info", now);
}

api::Event DeviceFaultEvent(const PodRecord& pod, const std::string& device,
                            const std::string& cordoned, const std::string& follows,
                            const std::string& since, TimePoint now) {
  const auto& holds = pod.holds;
  const bool of_job = holds.of_job && !pod.job.empty();
  const std::string& uid = of_job ? holds.of_job->job.value : holds.uid.value;
  const std::string kind = of_job ? "GPUJob" : "Pod";
  // What follows comes before the evidence, which may be long.
  api::Event event =
      Make(kind, of_job ? pod.job : holds.name,
           uid + "|" + device + "|" + cordoned + "|" + since + "|" + follows, "DeviceFault",
           "pod " + holds.name + " on node " + holds.node.value + " holds device " + device +
               ", which takes no new work; " + follows + "; finding: " + cordoned,
           true, now);
  PutIn(holds.name_space, uid, &event);
  return event;
}

api::Event BreakerEvent(const std::string& pool, const std::string& text, TimePoint now) {
  return Make("GPUPool", pool, text, "BreakerOpen", text, true, now);
}

Write CreateEvent(const api::Event& event) {
  const auto& meta = event.metadata();
  Write write{"create", "events", meta.namespace_(), meta.name(), kube::ToJson(event), {}, {}};
  write.run = [event](kube::Client& client) -> Status {
    const auto created = client.Create(event);
    if (!created && created.error().code != ErrorCode::kAlreadyExists) {
      return tl::unexpected<Error>(created.error());
    }
    return {};
  };
  return write;
}

}  // namespace bimetal::op
