#pragma once

#include <string>
#include <string_view>

#include "cli/connect.h"
#include "cli/flags.h"
#include "core/base/result.h"
#include "core/base/time.h"

namespace bimetal::cli {

inline constexpr int kExitSuccess = 0;
inline constexpr int kExitFailure = 1;
inline constexpr int kExitUsage = 64;  // EX_USAGE of sysexits.h

// What a command wants written.
struct Answer {
  std::string out;   // to standard output
  std::string note;  // to standard error: a remark, not an error
  int exit_status = kExitSuccess;
};

// Does what `line` asks; talks to the cluster for the commands that need it, and blocks for it.
// Errors: the message names the object and what to do.
Result<Answer> RunCommand(const CommandLine& line, const Surroundings& surroundings,
                          const std::string& program, const Clock& clock);

// `error`, which came of asking for `what` (the plural, as kubectl takes it), with what to do about
// it. Pure.
Error WithRemedy(Error error, const CommandLine& line, std::string_view what,
                 const std::string& program);

}  // namespace bimetal::cli
