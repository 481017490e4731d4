#include "operator/controllers/node_events.h"

#include "operator/controllers/events.h"

namespace bimetal::op {
api::Event TransitionEvent(const std::string& node, const api::GPUNodeStatus& status,
                           TimePoint now) {
  const bool warning = status.phase() == "Quarantined" || status.phase() == "Lost";
  return MakeEvent("Node", node, status.phase() + "|" + std::to_string(now.ms), status.reason(),
                   "GPU devices are " + status.phase() + ": " + status.message(), warning, now);
}

api::Event FindingEvent(const std::string& node, const std::string& boot_id,
                        const api::Finding& finding, const std::string& key, TimePoint now) {
  std::string message = finding.evidence();
  if (!finding.device().empty()) message = "device " + finding.device() + ": " + message;
  if (!finding.remedy().empty()) message += "; " + finding.remedy();
  return MakeEvent("Node", node, boot_id + "|" + key, finding.code(), message,
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
      MakeEvent(kind, of_job ? pod.job : holds.name,
                uid + "|" + device + "|" + cordoned + "|" + since + "|" + follows, "DeviceFault",
                "pod " + holds.name + " on node " + holds.node.value + " holds device " + device +
                    ", which takes no new work; " + follows + "; finding: " + cordoned,
                true, now);
  PutIn(holds.name_space, uid, &event);
  return event;
}

api::Event BreakerEvent(const std::string& pool, const std::string& text, TimePoint now) {
  return MakeEvent("GPUPool", pool, text, "BreakerOpen", text, true, now);
}

api::Event ObjectEvent(const api::ObjectReference& object, const std::string& reason,
                       const std::string& message, bool warning, TimePoint now) {
  api::Event event = MakeEvent(object.kind(), object.name(),
                               object.uid() + "|" + reason + "|" + std::to_string(now.ms), reason,
                               message, warning, now);
  PutIn(object.namespace_(), object.uid(), &event);
  event.mutable_involved_object()->set_api_version(object.api_version());
  return event;
}

}  // namespace bimetal::op
