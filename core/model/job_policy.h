#pragma once

#include "api/gpujob.pb.h"
#include "core/base/result.h"
#include "core/model/job.h"

namespace bimetal::core {

// Reads what a GPUJob says beyond its gang: selection, preemption, retry, limits, checkpoint. Error
// kInvalid names the field and the remedy. Pure.
Status ReadPolicies(const api::GPUJobSpec& spec, Job* job);

// The numbers of a variant that steer its choice: throughput and price. Pure.
Status ReadVariantPolicy(const api::Variant& from, const std::string& path, Variant* variant);

// Minimum and topology of a role whose replicas are read already. Pure.
Status ReadRolePolicy(const api::Role& from, const std::string& path, Role* role);

}  // namespace bimetal::core
