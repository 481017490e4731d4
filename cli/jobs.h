#pragma once

#include <string>
#include <vector>

#include "api/gpujob.pb.h"
#include "core/base/time.h"

namespace bimetal::cli {

// The table of `bimetal jobs`, by namespace and name. What a job does not have yet is "-"; a cost
// that could not be worked out is the word that says so (PriceMissing). Pure.
std::string RenderJobs(std::vector<api::GPUJob> jobs, TimePoint now);

// The job's cost as text: with currency, or the basis that says why there is none, or "".
std::string CostText(const api::Usage& usage);

}  // namespace bimetal::cli
