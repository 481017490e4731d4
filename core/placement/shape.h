#pragma once

#include <string>

#include "core/model/fleet.h"
#include "core/model/job.h"

// What two gangs must have in common to fit in the same places, as texts to remember answers by.
namespace bimetal::core::placement {

// True where `device` is what `variant` asks for, whatever its state. Unknown memory is no match
// for a variant that asks for memory.
bool Matches(const Device& device, const Variant& variant);
// True where what the open devices of a node have proven is what `variant` asks for. Where none is
// open nothing is known, and their pass may yet prove it.
bool MayProve(const NodeDevices& devices, const Variant& variant);

std::string ShapeOfDevices(const Variant& variant);
std::string ShapeOfConstraints(const Role& role);
std::string ShapeOf(const Job& job, const Variant& variant);

}  // namespace bimetal::core::placement
