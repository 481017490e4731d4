#pragma once

#include <string>

#include "api/agent.pb.h"
#include "api/gpunode.pb.h"
#include "api/kubernetes.pb.h"
#include "core/base/time.h"
#include "operator/state/store.h"
#include "operator/writer/writer.h"

// Kubernetes Events, as `kubectl describe` shows them. Names are deterministic for what happened,
// so that a repeated create meets its twin: one Event, whoever restarts. Pure.
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

// The write that creates `event`; that it exists already is no error.
Write CreateEvent(const api::Event& event);

}  // namespace bimetal::op
