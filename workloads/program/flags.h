#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace bimetal::workloads {

// The command line of bimetal-workload, parsed and checked.
struct WorkloadOptions {
  enum class Action { kExchange, kSleep, kEnv, kHelp, kVersion };
  Action action = Action::kHelp;
  std::uint64_t rounds = 10;
  std::uint64_t seconds = 0;  // exchange: at least; sleep: exactly
  std::uint64_t values = 1024;
  std::chrono::seconds join_timeout{120};
  std::chrono::seconds round_timeout{30};
};

struct UsageError {
  std::string message;
};

// Accepts --flag VALUE and --flag=VALUE. `arguments` is without the program's name.
std::variant<WorkloadOptions, UsageError> ParseWorkloadFlags(
    const std::vector<std::string>& arguments);

std::string WorkloadHelp();
std::string WorkloadVersion();

}  // namespace bimetal::workloads
