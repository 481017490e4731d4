#pragma once

#include <string>
#include <vector>

#include "api/gpunode.pb.h"

namespace bimetal::cli {

// The table of `bimetal nodes`, by name. Below a node that jobs may not use, or not wholly, stands
// the message that says why. What is not known is shown as "?". Pure.
std::string RenderNodes(std::vector<api::GPUNode> nodes);

}  // namespace bimetal::cli
