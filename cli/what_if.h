#pragma once

#include <string>

#include "core/model/job.h"
#include "core/queue/cycle.h"

namespace bimetal::cli {

// The text of `bimetal explain --what-if`: what the scheduler's own code would give the waiting
// `job` in `snapshot` as it is, in each of its variants alone, on the other vendor, and as the
// largest gang that could start now. Nothing is changed, and other jobs keep their turns. Pure.
std::string RenderWhatIf(const core::queue::Snapshot& snapshot, const core::Job& job);

}  // namespace bimetal::cli
