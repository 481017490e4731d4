#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kernels/device/host/host_backend.h"
#include "kernels/device/outcome.h"

namespace bimetal::kernels {

// Reads a machine description for the host back end: `path` is devices.json or the folder that
// holds it. Unknown keys and fault kinds are refused, because a fault that is skipped would be a
// false pass. Errors (kFailed) name the file and the place in it.
Outcome<std::vector<HostDeviceSpec>> ReadMachine(const std::string& path);

// The same for the text of such a file; `name` stands for the file in messages.
Outcome<std::vector<HostDeviceSpec>> ParseMachine(std::string_view text, const std::string& name);

}  // namespace bimetal::kernels
