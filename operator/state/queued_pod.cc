#include "operator/state/queued_pod.h"

#include <charconv>

#include "operator/state/store.h"

namespace bimetal::op {
namespace {

// JobSet puts this on the pods of all its Jobs.
constexpr char kJobSetUidLabel[] = "jobset.sigs.k8s.io/jobset-uid";
constexpr char kCompletionIndexLabel[] = "batch.kubernetes.io/job-completion-index";

using StringMap = google::protobuf::Map<std::string, std::string>;

std::string Value(const StringMap& map, const char* key) {
  const auto it = map.find(key);
  return it == map.end() ? std::string() : it->second;
}

int IndexOf(const std::string& text) {
  int value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() && value >= 0 ? value : -1;
}

std::vector<core::NodeRequirement> Requirements(
    const google::protobuf::RepeatedPtrField<api::NodeSelectorRequirement>& list) {
  std::vector<core::NodeRequirement> out;
  for (const auto& one : list) {
    out.push_back({one.key(), one.operator_(), {one.values().begin(), one.values().end()}});
  }
  return out;
}

void ReadOwner(const api::ObjectMeta& meta, QueuedPod& out) {
  for (const auto& owner : meta.owner_references()) {
    if (!owner.controller()) continue;
    out.owner_api_version = owner.api_version();
    out.owner_kind = owner.kind();
    out.owner_name = owner.name();
    out.owner_uid = owner.uid();
  }
  const std::string job_set = Value(meta.labels(), kJobSetUidLabel);
  out.root_uid = job_set.empty() ? out.owner_uid : job_set;
}

void ReadConstraints(const api::PodSpec& spec, QueuedPod& out) {
  for (const auto& toleration : spec.tolerations()) {
    out.tolerations.push_back(
        {toleration.key(), toleration.operator_(), toleration.value(), toleration.effect()});
  }
  out.node_selector = {spec.node_selector().begin(), spec.node_selector().end()};
  const auto& required =
      spec.affinity().node_affinity().required_during_scheduling_ignored_during_execution();
  for (const auto& term : required.node_selector_terms()) {
    out.affinity.push_back(
        {Requirements(term.match_expressions()), Requirements(term.match_fields())});
  }
}

}  // namespace

std::shared_ptr<const QueuedPod> ReadQueuedPod(const api::Pod& pod) {
  const auto& meta = pod.metadata();
  if (meta.labels().contains(kJobUidLabel) || meta.labels().contains(kValidatesLabel))
    return nullptr;
  QueuedPod out;
  for (const auto& gate : pod.spec().scheduling_gates()) {
    (gate.name() == kQueueGate ? out.gated : out.other_gates) = true;
  }
  out.queue = Value(meta.labels(), kQueueNameLabel);
  out.admitted_to = Value(meta.annotations(), kAdmittedToAnnotation);
  if (out.queue.empty() && out.admitted_to.empty() && !out.gated) return nullptr;
  out.resource_version = meta.resource_version();
  out.group = Value(meta.labels(), kPodGroupLabel);
  out.group_size = Value(meta.annotations(), kPodGroupSizeAnnotation);
  out.waiting = Value(meta.annotations(), kWaitingAnnotation);
  out.preemptible = Value(meta.annotations(), kPreemptibleAnnotation) == "true";
  out.index = IndexOf(Value(meta.labels(), kCompletionIndexLabel));
  out.priority = pod.spec().priority();
  ReadOwner(meta, out);
  ReadConstraints(pod.spec(), out);
  return std::make_shared<const QueuedPod>(std::move(out));
}

}  // namespace bimetal::op
