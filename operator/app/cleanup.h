#pragma once

#include <string>

#include "core/base/result.h"
#include "kube/client/client.h"

namespace bimetal::op {

// Takes off every node what the operator put there (its taint and its labels) and deletes the
// objects that it made for itself: the agents' CA and the lease. For the end of a release; calling
// it again does no harm. The error is that of the last object that could not be cleaned; the others
// are cleaned all the same.
Status CleanUp(kube::Client& client, const std::string& name_space, const std::string& lease_name);

}  // namespace bimetal::op
