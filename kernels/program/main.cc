// bimetal-validate: runs native checks on the devices of this machine and says what it found.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <variant>
#include <vector>

#include "kernels/program/flags.h"
#include "kernels/program/supervise.h"
#include "kernels/run/run.h"

namespace bimetal::kernels {
namespace {

constexpr int kExitPass = 0;
constexpr int kExitFail = 1;
constexpr int kExitInconclusive = 2;
constexpr int kExitUsage = 64;  // EX_USAGE of sysexits.h

void PrintLine(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

int StatusOf(const RunSummary& summary) {
  if (summary.verdict == VerdictKind::kPass) return kExitPass;
  return summary.verdict == VerdictKind::kFail ? kExitFail : kExitInconclusive;
}

// The process that calls the vendors' libraries. Whoever started it kills it if it hangs.
int Work(ProgramOptions options) {
  DieWithParent();
  options.run.on_event = PrintLine;
  const RunSummary summary = RunValidation(options.run, PrintLine);
  if (summary.abandoned) {
    std::fflush(nullptr);
    std::_Exit(StatusOf(summary));  // a thread still hangs in a vendor call and cannot be joined
  }
  return StatusOf(summary);
}

int Run(const ProgramOptions& options, const std::vector<std::string>& arguments) {
  const RunSummary summary = Supervise(options.run, arguments, PrintLine);
  int status = StatusOf(summary);
  if (!options.report_path.empty()) {
    const Done sent = SendReport(options.report_path, summary.lines, options.report);
    if (!sent.ok()) {
      std::fprintf(stderr, "bimetal-validate: %s\n", sent.error().message.c_str());
      // A pass that nobody heard of opens no node; a failure stays a failure.
      if (status == kExitPass) status = kExitInconclusive;
    }
  }
  return status;
}

int Main(const std::vector<std::string>& arguments) {
  const auto parsed = ParseFlags(arguments);
  if (const auto* error = std::get_if<UsageError>(&parsed)) {
    std::fprintf(stderr, "bimetal-validate: %s\n", error->message.c_str());
    return kExitUsage;
  }
  const auto& options = std::get<ProgramOptions>(parsed);
  std::string text;
  switch (options.action) {
    case ProgramOptions::Action::kRun:
      return options.worker ? Work(options) : Run(options, arguments);
    case ProgramOptions::Action::kHelp:
      text = HelpText();
      break;
    case ProgramOptions::Action::kVersion:
      text = VersionText();
      break;
    case ProgramOptions::Action::kList:
      text = ListText();
      break;
  }
  std::fputs(text.c_str(), stdout);
  return 0;
}

}  // namespace
}  // namespace bimetal::kernels

int main(int argc, char** argv) {
  return bimetal::kernels::Main(std::vector<std::string>(argv + 1, argv + argc));
}
