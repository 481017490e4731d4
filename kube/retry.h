#pragma once

#include <cstdint>
#include <random>

#include "core/base/time.h"

namespace bimetal::kube {

struct BackoffOptions {
  Millis initial{100};
  Millis cap{30'000};
  // How much of a delay is random, in percent: 25 draws from [75 %, 100 %] of the step.
  int jitter_percent = 25;
};

// Delays that double from `initial` to `cap`, with jitter so that many clients do not return in
// step. The same seed gives the same delays. One thread at a time.
class Backoff {
 public:
  explicit Backoff(BackoffOptions options = {}, std::uint64_t seed = 0);

  // How long to wait now; the next answer is up to twice as long.
  Millis Next();
  // The work succeeded: the next delay is `initial` again.
  void Reset();
  // Calls of Next() since the last Reset().
  int attempts() const { return attempts_; }

 private:
  BackoffOptions options_;
  std::mt19937_64 random_;
  Millis step_;
  int attempts_ = 0;
};

}  // namespace bimetal::kube
