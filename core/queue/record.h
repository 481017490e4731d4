#pragma once

#include <string>
#include <string_view>

#include "core/base/result.h"
#include "core/queue/cycle.h"
#include "core/queue/json.h"

// Cycles as text, so that one can be kept and decided again: JSON with one member for each field,
// in a fixed order, without white space. The same value is always the same bytes.
namespace bimetal::core::queue {

std::string WriteSnapshot(const Snapshot& snapshot);
std::string WritePlan(const Plan& plan);

// Reads what WriteSnapshot wrote; members that are missing keep their defaults, unknown ones are
// passed over. Error kData names the place: "jobs[3].priority: expected an integer". Pure; safe
// with any bytes.
Result<Snapshot> ReadSnapshot(std::string_view json);
Result<Snapshot> SnapshotFromJson(const Json& json);

}  // namespace bimetal::core::queue
