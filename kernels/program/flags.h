#pragma once

#include <string>
#include <variant>
#include <vector>

#include "kernels/report/report.h"
#include "kernels/run/run.h"

namespace bimetal::kernels {

// The command line of bimetal-validate, parsed and checked.
struct ProgramOptions {
  enum class Action { kRun, kHelp, kVersion, kList };
  Action action = Action::kRun;
  RunOptions run;
  std::string report_path;  // of the Unix socket; empty: no report
  ReportOptions report;
  // This process is the one that a supervisor started: it calls the vendors and reports to nobody.
  bool worker = false;
};

// Not for people: see ProgramOptions::worker.
inline constexpr const char* kWorkerFlag = "--worker";

// What is wrong with the command line and what to do about it; names the flag.
struct UsageError {
  std::string message;
};

// Accepts --flag VALUE and --flag=VALUE. `arguments` is without the program's name.
std::variant<ProgramOptions, UsageError> ParseFlags(const std::vector<std::string>& arguments);

std::string HelpText();
// Name, version, and the architectures that kernels are embedded for.
std::string VersionText();
// The checks, one a line.
std::string ListText();

}  // namespace bimetal::kernels
