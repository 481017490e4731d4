// bimetal-workload: reference programs that GPU jobs run.
#include <unistd.h>

#include <cstdio>
#include <string>
#include <variant>
#include <vector>

#include "workloads/exchange/exchange.h"
#include "workloads/program/environment.h"
#include "workloads/program/flags.h"
#include "workloads/program/progress.h"
#include "workloads/program/stop.h"
#include "workloads/serve/ask.h"
#include "workloads/serve/serve.h"

namespace bimetal::workloads {
namespace {

constexpr int kExitUsage = 64;  // EX_USAGE of sysexits.h

void Say(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

std::string ProgressFile() { return ProcessEnvironment()("BIMETAL_PROGRESS_FILE").value_or(""); }

int Exchange(const WorkloadOptions& flags) {
  Outcome<GangPlace> place = PlaceFromEnvironment(ProcessEnvironment());
  if (!place.ok()) {
    std::fprintf(stderr, "bimetal-workload: %s\n", place.error().message.c_str());
    return kExitUsage;
  }
  ExchangeOptions options;
  options.place = place.value();
  options.place.join_timeout = flags.join_timeout;
  options.place.round_timeout = flags.round_timeout;
  options.rounds = flags.rounds;
  options.duration = std::chrono::seconds(flags.seconds);
  options.values = flags.values;
  options.progress_file = ProgressFile();
  return RunExchange(options, Say);
}

int Sleep(std::uint64_t seconds) {
  Progress progress(ProgressFile());
  Say("sleep " + std::to_string(seconds) + " s");
  for (std::uint64_t step = 1; step <= seconds; ++step) {
    if (!SleepUnlessStopped(std::chrono::seconds(1))) {
      Say("stopped by a signal after " + std::to_string(step - 1) + " s");
      return kExitStopped;
    }
    progress.Step(step);
  }
  Say("slept " + std::to_string(seconds) + " s ok");
  return 0;
}

int Serve(const WorkloadOptions& flags) {
  const Environment environment = ProcessEnvironment();
  ServeOptions options;
  options.port = static_cast<std::uint16_t>(flags.port);
  options.delay = std::chrono::milliseconds(flags.delay_ms);
  options.warm_up = std::chrono::milliseconds(flags.warm_up_ms);
  options.linger = std::chrono::milliseconds(flags.linger_ms);
  options.replica = environment("BIMETAL_REPLICA").value_or("");
  options.vendor = environment("BIMETAL_VENDOR").value_or("");
  options.variant = environment("BIMETAL_VARIANT").value_or("");
  return RunServe(options, Say);
}

int Ask(const WorkloadOptions& flags) {
  const auto target = TargetOf(flags.target);
  AskOptions options;
  options.host = target->host;  // checked with the flags
  options.port = target->port;
  if (flags.seconds > 0) options.duration = std::chrono::seconds(flags.seconds);
  options.clients = flags.clients;
  return RunAsk(options, Say);
}

int Main(const std::vector<std::string>& arguments) {
  const auto parsed = ParseWorkloadFlags(arguments);
  if (const auto* error = std::get_if<UsageError>(&parsed)) {
    std::fprintf(stderr, "bimetal-workload: %s\n", error->message.c_str());
    return kExitUsage;
  }
  const auto& options = std::get<WorkloadOptions>(parsed);
  WatchStopSignals();
  switch (options.action) {
    case WorkloadOptions::Action::kExchange:
      return Exchange(options);
    case WorkloadOptions::Action::kSleep:
      return Sleep(options.seconds);
    case WorkloadOptions::Action::kServe:
      return Serve(options);
    case WorkloadOptions::Action::kAsk:
      return Ask(options);
    case WorkloadOptions::Action::kEnv:
      for (const std::string& entry : RelevantVariables(environ)) Say(entry);
      return 0;
    case WorkloadOptions::Action::kHelp:
      std::fputs(WorkloadHelp().c_str(), stdout);
      return 0;
    case WorkloadOptions::Action::kVersion:
      std::fputs(WorkloadVersion().c_str(), stdout);
      return 0;
  }
  return kExitUsage;
}

}  // namespace
}  // namespace bimetal::workloads

int main(int argc, char** argv) {
  return bimetal::workloads::Main(std::vector<std::string>(argv + 1, argv + argc));
}
