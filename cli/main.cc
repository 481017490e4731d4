// bimetal, also `kubectl bimetal`: what a person asks of a cluster. docs/how-to/cli.md shows it.
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "agent/devices/probe.h"
#include "cli/connect.h"
#include "cli/doctor.h"
#include "cli/flags.h"
#include "cli/replay.h"
#include "cli/run.h"
#include "cli/text.h"
#include "core/base/log.h"

namespace bimetal::cli {
namespace {

std::string Env(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

Surroundings Here() {
  return {Env("KUBECONFIG"), Env("HOME"),
          [](const std::string& path) {
            std::error_code error;
            return std::filesystem::exists(path, error);
          },
          isatty(STDOUT_FILENO) == 1 && Env("NO_COLOR").empty() && Env("TERM") != "dumb"};
}

// One line on standard error; a server's message may hold anything.
void Say(const std::string& program, const std::string& text) {
  std::fprintf(stderr, "%s: %s\n", program.c_str(), OneLine(text).c_str());
}

int Main(int argc, const char* const* argv) {
  signal(SIGPIPE, SIG_IGN);  // a closed pipe is a failed write, reported below
  SetLogLevel(LogLevel::kError);
  const std::string program = ProgramName(argc > 0 ? argv[0] : "");
  const auto line = ParseFlags(std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc));
  if (!line) {
    Say(program, line.error().message + "; see " + program + " --help");
    return kExitUsage;
  }
  const auto answer = RunCommand(*line, Here(), program, SystemClock());
  if (!answer) {
    Say(program, answer.error().message);
    if (line->command == Command::kDoctor) return kExitBlind;
    return line->command == Command::kReplay ? kExitUnread : kExitFailure;
  }
  if (!answer->note.empty()) std::fprintf(stderr, "%s\n", answer->note.c_str());
  if (std::fwrite(answer->out.data(), 1, answer->out.size(), stdout) != answer->out.size() ||
      std::fflush(stdout) != 0) {
    Say(program, "standard output: cannot be written");
    return kExitFailure;
  }
  return answer->exit_status;
}

}  // namespace
}  // namespace bimetal::cli

int main(int argc, char** argv) {
  // The child in which the doctor reads a vendor's devices is this program too.
  if (const auto probe = bimetal::agent::MaybeRunProbe(argc, argv)) return *probe;
  return bimetal::cli::Main(argc, argv);
}
