#pragma once

#include <chrono>
#include <cstdint>
#include <functional>

namespace bimetal::op {

// Microseconds of a clock that only goes forward, to measure work by.
using Stopwatch = std::function<std::int64_t()>;

inline std::int64_t SteadyMicros() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace bimetal::op
