#pragma once

#include "operator/metrics/exposition.h"
#include "operator/metrics/metrics.h"

namespace bimetal::op {

// Writes every family that is a function of the fleet's sample.
void AddFleet(const FleetSample& sample, Exposition& out);

}  // namespace bimetal::op
