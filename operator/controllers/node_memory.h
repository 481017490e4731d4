#pragma once

#include "api/gpunode.pb.h"
#include "core/admission/decide.h"

namespace bimetal::op {

// What admission remembers, to and from the GPUNode's status, where it survives restarts.
void StoreMemory(const core::admission::Memory& memory, api::VendorStatus* out);
core::admission::Memory LoadMemory(const api::VendorStatus& status);

}  // namespace bimetal::op
