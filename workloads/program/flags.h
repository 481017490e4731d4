#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace bimetal::workloads {

// The command line of bimetal-workload, parsed and checked.
struct WorkloadOptions {
  enum class Action { kExchange, kSleep, kServe, kAsk, kEnv, kHelp, kVersion };
  Action action = Action::kHelp;
  std::uint64_t rounds = 10;
  std::uint64_t seconds = 0;  // exchange: at least; sleep: exactly; ask: at most
  std::uint64_t values = 1024;
  std::chrono::seconds join_timeout{120};
  std::chrono::seconds round_timeout{30};
  std::string target;         // ask: host:port
  std::uint64_t clients = 4;  // ask
  // serve:
  std::uint64_t port = 8080;
  std::uint64_t delay_ms = 0;
  std::uint64_t warm_up_ms = 0;
  std::uint64_t linger_ms = 1000;
};

struct UsageError {
  std::string message;
};

// Accepts --flag VALUE and --flag=VALUE. `arguments` is without the program's name.
std::variant<WorkloadOptions, UsageError> ParseWorkloadFlags(
    const std::vector<std::string>& arguments);

struct Target {
  std::string host;
  std::uint16_t port = 0;
};
// "host:80"; nullopt where it is not that.
std::optional<Target> TargetOf(const std::string& text);

std::string WorkloadHelp();
std::string WorkloadVersion();

}  // namespace bimetal::workloads
