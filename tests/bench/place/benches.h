#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "tests/bench/place/policy.h"

namespace bimetal::place {

struct BenchOptions {
  std::filesystem::path traces;  // the folder of the openb trace
  std::uint64_t first_seed = 42, last_seed = 51;
  std::int64_t arrivals = 400'000;  // of a churn
  bool alone = false;               // a churn without the rule it is held against
  std::vector<std::string> lists;   // instead of a bench's own, for a look at others
  PolicyOptions policy;
};

// Runs one bench and prints its loads and, last, its line. False where a bar is missed.
// Error: the traces cannot be read.
Result<bool> RunBench(const std::string& name, const BenchOptions& options);
std::vector<std::string> BenchNames();

}  // namespace bimetal::place
