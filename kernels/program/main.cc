// bimetal-validate: runs native checks on the devices of this machine and says what it found.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <variant>
#include <vector>

#include "kernels/program/flags.h"
#include "kernels/run/run.h"

namespace bimetal::kernels {
namespace {

constexpr int kExitPass = 0;
constexpr int kExitFail = 1;
constexpr int kExitInconclusive = 2;
constexpr int kExitUsage = 64;  // EX_USAGE of sysexits.h

int Run(const ProgramOptions& options) {
  const RunSummary summary = RunValidation(options.run, [](const std::string& line) {
    std::printf("%s\n", line.c_str());
    std::fflush(stdout);
  });
  int status = kExitInconclusive;
  if (summary.verdict == VerdictKind::kPass) status = kExitPass;
  if (summary.verdict == VerdictKind::kFail) status = kExitFail;
  if (!options.report_path.empty()) {
    const Done sent = SendReport(options.report_path, summary.lines, options.report);
    if (!sent.ok()) {
      std::fprintf(stderr, "bimetal-validate: %s\n", sent.error().message.c_str());
      // A pass that nobody heard of opens no node; a failure stays a failure.
      if (status == kExitPass) status = kExitInconclusive;
    }
  }
  if (summary.abandoned) {
    std::fflush(nullptr);
    std::_Exit(status);  // a thread still hangs in a vendor call and cannot be joined
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
      return Run(options);
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
