#pragma once

#include <string>

#include "cli/run.h"

namespace bimetal::cli {

// Exit statuses of `bimetal replay`, beside kExitSuccess and kExitUsage.
inline constexpr int kExitDiffers = 1;
inline constexpr int kExitUnread = 2;  // the file is no recorded cycle

// Decides the cycle in the file line.file again and says whether the plan is the same bytes. Needs
// no cluster. Errors (exit status kExitUnread): kNotFound, kData.
Result<Answer> RunReplay(const CommandLine& line);

}  // namespace bimetal::cli
