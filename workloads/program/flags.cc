#include "workloads/program/flags.h"

#include <charconv>
#include <map>
#include <optional>
#include <set>

namespace bimetal::workloads {
namespace {

using Action = WorkloadOptions::Action;

// A flag with a number: its bounds, the commands that know it, and where it goes.
struct NumberFlag {
  std::uint64_t low;
  std::uint64_t high;
  std::set<Action> commands;
  std::uint64_t* target;
};

std::optional<std::uint64_t> ParseNumber(const std::string& text, const NumberFlag& flag) {
  std::uint64_t value = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || end.ec != std::errc() || end.ptr != text.data() + text.size() ||
      value < flag.low || value > flag.high) {
    return std::nullopt;
  }
  return value;
}

std::optional<Action> ParseAction(const std::string& text) {
  static const std::map<std::string, Action> kActions = {
      {"exchange", Action::kExchange}, {"sleep", Action::kSleep},      {"serve", Action::kServe},
      {"ask", Action::kAsk},           {"env", Action::kEnv},          {"--help", Action::kHelp},
      {"-h", Action::kHelp},           {"--version", Action::kVersion}};
  const auto found = kActions.find(text);
  if (found == kActions.end()) return std::nullopt;
  return found->second;
}

}  // namespace

std::optional<Target> TargetOf(const std::string& text) {
  const auto colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0) return std::nullopt;
  std::uint16_t port = 0;
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data() + colon + 1, end, port);
  if (read.ec != std::errc() || read.ptr != end || port == 0) return std::nullopt;
  return Target{text.substr(0, colon), port};
}

std::variant<WorkloadOptions, UsageError> ParseWorkloadFlags(
    const std::vector<std::string>& arguments) {
  if (arguments.empty())
    return UsageError{"a command is needed: exchange, sleep, serve, ask or env; see --help"};
  const std::optional<Action> action = ParseAction(arguments[0]);
  if (!action) {
    return UsageError{"unknown command " + arguments[0] +
                      ": exchange, sleep, serve, ask or env; see --help"};
  }
  WorkloadOptions options;
  options.action = *action;
  std::uint64_t join_timeout = 120;
  std::uint64_t round_timeout = 30;
  const std::set<Action> exchange = {Action::kExchange}, serve = {Action::kServe};
  const std::map<std::string, NumberFlag> flags = {
      {"--rounds", {1, 100'000'000, exchange, &options.rounds}},
      {"--seconds",
       {0, 31'536'000, {Action::kExchange, Action::kSleep, Action::kAsk}, &options.seconds}},
      {"--values", {1, 1u << 20, exchange, &options.values}},
      {"--join-timeout", {1, 86'400, exchange, &join_timeout}},
      {"--round-timeout", {1, 86'400, exchange, &round_timeout}},
      {"--clients", {1, 256, {Action::kAsk}, &options.clients}},
      {"--port", {0, 65'535, serve, &options.port}},
      {"--delay-ms", {0, 60'000, serve, &options.delay_ms}},
      {"--warm-up-ms", {0, 3'600'000, serve, &options.warm_up_ms}},
      {"--linger-ms", {0, 3'600'000, serve, &options.linger_ms}}};
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    std::string name = arguments[i];
    std::optional<std::string> text;
    if (const auto equals = name.find('='); equals != std::string::npos) {
      text = name.substr(equals + 1);
      name.resize(equals);
    }
    const auto flag = flags.find(name);
    const bool is_target = name == "--target" && *action == Action::kAsk;
    const bool known =
        is_target || (flag != flags.end() && flag->second.commands.contains(*action));
    if (!known) return UsageError{"unknown flag " + name + " for " + arguments[0] + ": see --help"};
    if (!text) {
      if (i + 1 == arguments.size()) return UsageError{name + " needs a value: see --help"};
      text = arguments[++i];
    }
    if (is_target) {
      options.target = *text;
      continue;
    }
    const std::optional<std::uint64_t> value = ParseNumber(*text, flag->second);
    if (!value) {
      return UsageError{name + " must be a whole number from " + std::to_string(flag->second.low) +
                        " to " + std::to_string(flag->second.high)};
    }
    *flag->second.target = *value;
  }
  if (*action == Action::kAsk && !TargetOf(options.target)) {
    return UsageError{"ask needs --target HOST:PORT"};
  }
  options.join_timeout = std::chrono::seconds(join_timeout);
  options.round_timeout = std::chrono::seconds(round_timeout);
  return options;
}

std::string WorkloadHelp() {
  return R"(bimetal-workload: reference programs for GPU jobs.

usage: bimetal-workload exchange [--rounds N] [--seconds N] [--values N]
                                 [--join-timeout SECONDS] [--round-timeout SECONDS]
         a gang: each rank computes integers on its devices (or the processor, and says so), all
         sum them over TCP, each verifies the exact sum. Reads RANK, WORLD_SIZE, MASTER_ADDR and
         MASTER_PORT; without them it is a gang of one. --seconds spreads the rounds (10) over time.
       bimetal-workload sleep --seconds N
       bimetal-workload serve [--port N] [--delay-ms N] [--warm-up-ms N] [--linger-ms N]
         an inference server: GET /predict?input=N runs a small network on the devices (or the
         processor, and says so), GET /healthz is 200 once it takes requests. After a stop signal it
         goes on answering for --linger-ms (1000) and ends when every answer is out.
       bimetal-workload ask --target HOST:PORT [--seconds N] [--clients N]
         asks such a server until the time is over (10 s) or a signal comes, checks every answer, and
         prints how many there were, how many failed, and which vendor gave them
       bimetal-workload env
         prints the variables that the operator, device plug-ins and vendors set
       bimetal-workload --help | --version

Appends {"time":ms,"step":n} lines to $BIMETAL_PROGRESS_FILE where that is set.
exit status: 0 done (serve: stopped in order; ask: nothing failed), 1 mismatch, failure or timeout, 64 usage, 143 stopped by a signal
)";
}

std::string WorkloadVersion() { return "bimetal-workload " BIMETAL_VERSION "\n"; }

}  // namespace bimetal::workloads
