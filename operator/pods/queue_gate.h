#pragma once

#include <string>

#include "core/base/ids.h"
#include "operator/state/queued_pod.h"

// What the operator changes of a pod that somebody else made: two JSON merge patches, nothing else.
// Pure.
namespace bimetal::op {

// Takes our gate off and, where `node` is not empty, narrows the pod's required node affinity to
// that node: one patch that the API server takes only while the pod is as `pod` shows it (uid and
// resource version). REQUIRES: no gate but ours.
std::string AdmissionPatch(const QueuedPod& pod, const Uid& uid, const QueueName& queue,
                           const NodeName& node);

// Says on the pod why it waits, whatever else has changed meanwhile; empty: takes the words off.
std::string WaitingPatch(const Uid& uid, const std::string& text);

}  // namespace bimetal::op
