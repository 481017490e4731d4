#pragma once

#include <optional>
#include <string>

#include "api/gpujob.pb.h"
#include "api/kubernetes.pb.h"
#include "core/base/time.h"

// Which steps of a job's life are told as Events on it. What goes as it should is told by
// conditions alone, because each Event is a write to the API server. Pure.
namespace bimetal::op {

// Tells one step from another: the same key is the same news.
std::string StepOf(const api::GPUJobStatus& status);

// The Event of the step at which the job stands; nullopt where the step is none to be told.
std::optional<api::Event> JobEvent(const api::GPUJob& job, const api::GPUJobStatus& status,
                                   TimePoint now);

// The Event of a budget that is spent or cannot be kept.
api::Event BudgetEvent(const api::GPUJob& job, const std::string& reason,
                       const std::string& message, TimePoint now);

}  // namespace bimetal::op
