#include "workloads/program/flags.h"

#include <charconv>
#include <map>
#include <optional>

namespace bimetal::workloads {
namespace {

using Action = WorkloadOptions::Action;

// A flag with a number: its bounds, the commands that know it, and where it goes.
struct NumberFlag {
  std::uint64_t low;
  std::uint64_t high;
  bool for_sleep;
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
      {"exchange", Action::kExchange}, {"sleep", Action::kSleep}, {"env", Action::kEnv},
      {"--help", Action::kHelp},       {"-h", Action::kHelp},     {"--version", Action::kVersion}};
  const auto found = kActions.find(text);
  if (found == kActions.end()) return std::nullopt;
  return found->second;
}

}  // namespace

std::variant<WorkloadOptions, UsageError> ParseWorkloadFlags(
    const std::vector<std::string>& arguments) {
  if (arguments.empty())
    return UsageError{"a command is needed: exchange, sleep or env; see --help"};
  const std::optional<Action> action = ParseAction(arguments[0]);
  if (!action) {
    return UsageError{"unknown command " + arguments[0] + ": exchange, sleep or env; see --help"};
  }
  WorkloadOptions options;
  options.action = *action;
  std::uint64_t join_timeout = 120;
  std::uint64_t round_timeout = 30;
  const std::map<std::string, NumberFlag> flags = {
      {"--rounds", {1, 100'000'000, false, &options.rounds}},
      {"--seconds", {0, 31'536'000, true, &options.seconds}},
      {"--values", {1, 1u << 20, false, &options.values}},
      {"--join-timeout", {1, 86'400, false, &join_timeout}},
      {"--round-timeout", {1, 86'400, false, &round_timeout}}};
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    std::string name = arguments[i];
    std::optional<std::string> text;
    if (const auto equals = name.find('='); equals != std::string::npos) {
      text = name.substr(equals + 1);
      name.resize(equals);
    }
    const auto flag = flags.find(name);
    const bool known =
        flag != flags.end() &&
        (*action == Action::kExchange || (*action == Action::kSleep && flag->second.for_sleep));
    if (!known) return UsageError{"unknown flag " + name + " for " + arguments[0] + ": see --help"};
    if (!text) {
      if (i + 1 == arguments.size()) return UsageError{name + " needs a value: see --help"};
      text = arguments[++i];
    }
    const std::optional<std::uint64_t> value = ParseNumber(*text, flag->second);
    if (!value) {
      return UsageError{name + " must be a whole number from " + std::to_string(flag->second.low) +
                        " to " + std::to_string(flag->second.high)};
    }
    *flag->second.target = *value;
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
       bimetal-workload env
         prints the variables that the operator, device plug-ins and vendors set
       bimetal-workload --help | --version

Appends {"time":ms,"step":n} lines to $BIMETAL_PROGRESS_FILE where that is set.
exit status: 0 done, 1 mismatch, failure or timeout, 64 usage, 143 stopped by a signal
)";
}

std::string WorkloadVersion() { return "bimetal-workload " BIMETAL_VERSION "\n"; }

}  // namespace bimetal::workloads
