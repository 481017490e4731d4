#pragma once

#include <string>

#include "core/base/result.h"
#include "tests/bench/place/benches.h"

namespace bimetal::place {

// Placements a second of one core and the time of the slowest hundredth, on the trace's nodes, on
// eight times as many, and on 5,000 equal ones.
Result<bool> PlaceSpeed(const std::string& name, const BenchOptions& options);

}  // namespace bimetal::place
