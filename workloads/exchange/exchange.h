#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "workloads/exchange/all_reduce.h"

namespace bimetal::workloads {

struct ExchangeOptions {
  GangPlace place;
  std::uint64_t rounds = 10;
  std::chrono::milliseconds duration{0};  // at least; rounds are spread over it
  std::uint64_t values = 1024;            // of one contribution
  std::string progress_file;              // empty: none
};

// Runs the gang: every round each rank computes its contribution on its devices, all sum them over
// the network, and each verifies the exact sum. Returns the process's exit status: 0, 1 on any
// mismatch, failure or timeout (said on stderr), kExitStopped where a signal asked to stop. `say`
// gets the progress lines.
int RunExchange(const ExchangeOptions& options, const std::function<void(const std::string&)>& say);

}  // namespace bimetal::workloads
