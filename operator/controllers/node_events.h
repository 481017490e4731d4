#pragma once

#include <string>

#include "api/agent.pb.h"
#include "api/gpunode.pb.h"
#include "api/kubernetes.pb.h"
#include "core/base/time.h"
#include "operator/controllers/events.h"
#include "operator/state/store.h"

// Kubernetes Events about nodes and devices, as `kubectl describe` shows them. Pure.
namespace bimetal::op {

// A node has come into another phase.
api::Event TransitionEvent(const std::string& node, const api::GPUNodeStatus& status,
                           TimePoint now);
// The agent has found something. `boot_id`: the same in another boot is news.
api::Event FindingEvent(const std::string& node, const std::string& boot_id,
                        const api::Finding& finding, const std::string& key, TimePoint now);
// `pod` holds a device that is closed for `cordoned`, a finding; `follows`: what happens to it now.
// On the pod's GPUJob, by which it is told once; on the pod itself where it is of no job.
// `since` tells one closing of the device from another.
api::Event DeviceFaultEvent(const PodRecord& pod, const std::string& device,
                            const std::string& cordoned, const std::string& follows,
                            const std::string& since, TimePoint now);
// A breaker of a pool has opened.
api::Event BreakerEvent(const std::string& pool, const std::string& text, TimePoint now);

// Something about an object of a namespace that is not ours: a pod, a Job, a ReplicaSet.
api::Event ObjectEvent(const api::ObjectReference& object, const std::string& reason,
                       const std::string& message, bool warning, TimePoint now);

}  // namespace bimetal::op
