#pragma once

#include <string>

#include "api/kubernetes.pb.h"
#include "core/base/time.h"
#include "operator/writer/writer.h"

// What every Event of ours has in common. Names are deterministic for what happened, so that a
// repeated create meets its twin: one Event, whoever restarts. Pure.
namespace bimetal::op {

// An Event about a cluster's object; PutIn makes it one of a namespace's. `key` tells what happened
// from all else that happens to the object.
api::Event MakeEvent(const std::string& kind, const std::string& name, const std::string& key,
                     const std::string& reason, const std::string& message, bool warning,
                     TimePoint now);
// The object is `uid` of this namespace.
void PutIn(const std::string& name_space, const std::string& uid, api::Event* event);

// The write that creates `event`; that it exists already is no error.
Write CreateEvent(const api::Event& event);

}  // namespace bimetal::op
