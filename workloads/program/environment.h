#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/device/outcome.h"
#include "workloads/exchange/all_reduce.h"

namespace bimetal::workloads {

// Looks a variable up; empty where it is not set.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;
Environment ProcessEnvironment();

// The gang's place from RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT, BIMETAL_JOB_UID and
// BIMETAL_ATTEMPT. None of the first four set: a gang of one. Errors name the variable.
kernels::Outcome<GangPlace> PlaceFromEnvironment(const Environment& environment);

// "NAME=value" of the variables that the operator, the device plug-ins and the vendors set, sorted.
// Names that speak of a secret are left out.
std::vector<std::string> RelevantVariables(const char* const* environ);

}  // namespace bimetal::workloads
