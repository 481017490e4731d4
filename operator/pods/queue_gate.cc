#include "operator/pods/queue_gate.h"

#include <utility>

#include "operator/pods/json.h"
#include "operator/state/store.h"

namespace bimetal::op {
namespace {

Json ToJson(const std::vector<core::NodeRequirement>& requirements) {
  Json out = Json::array();
  for (const auto& requirement : requirements) {
    Json one = {{"key", requirement.key}, {"operator", requirement.op}};
    if (!requirement.values.empty()) one["values"] = requirement.values;
    out.push_back(std::move(one));
  }
  return out;
}

// The terms as they stand, each with the node's name: terms are alternatives, and the API server
// lets a gated pod's terms gain lines and nothing else. A term without lines allows no node and
// stays so.
Json Narrowed(const std::vector<core::NodeTerm>& terms, const std::string& node) {
  const core::NodeRequirement name{"metadata.name", "In", {node}};
  if (terms.empty()) return Json::array({{{"matchFields", ToJson({name})}}});
  Json out = Json::array();
  for (const auto& term : terms) {
    Json one = Json::object();
    if (!term.labels.empty()) one["matchExpressions"] = ToJson(term.labels);
    auto fields = term.fields;
    if (!term.labels.empty() || !term.fields.empty()) fields.push_back(name);
    if (!fields.empty()) one["matchFields"] = ToJson(fields);
    out.push_back(std::move(one));
  }
  return out;
}

std::string Dump(const Json& patch) {
  return patch.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

std::string AdmissionPatch(const QueuedPod& pod, const Uid& uid, const QueueName& queue,
                           const NodeName& node) {
  Json meta = {{"uid", uid.value}, {"resourceVersion", pod.resource_version}};
  meta["annotations"] = {{kAdmittedToAnnotation, queue.value}, {kWaitingAnnotation, nullptr}};
  Json spec = {{"schedulingGates", nullptr}};
  if (!node.value.empty()) {
    meta["annotations"][kPinnedNodeAnnotation] = node.value;
    spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        ["nodeSelectorTerms"] = Narrowed(pod.affinity, node.value);
  }
  return Dump(Json{{"metadata", std::move(meta)}, {"spec", std::move(spec)}});
}

std::string WaitingPatch(const Uid& uid, const std::string& text) {
  Json patch;
  patch["metadata"]["uid"] = uid.value;
  patch["metadata"]["annotations"][kWaitingAnnotation] = text.empty() ? Json() : Json(text);
  return Dump(patch);
}

}  // namespace bimetal::op
