#pragma once

#include <string>

#include "api/gpujob.pb.h"
#include "core/base/time.h"

namespace bimetal::cli {

// The text of `bimetal explain`: state and reason, place in the queue, one row a variant, the
// attempts, the bill. It says what the job's status says and guesses nothing: what is not there is
// "-". Pure.
std::string RenderExplain(const api::GPUJob& job, TimePoint now);

}  // namespace bimetal::cli
