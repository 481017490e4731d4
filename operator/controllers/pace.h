#pragma once

#include <algorithm>
#include <cstdint>

#include "core/base/time.h"

namespace bimetal::op {

// Keeps the scheduling cycle from taking the loop for itself under a flood of events: over time it
// has a share of the clock, and what it did not use is saved for a while. A cycle may start while
// anything is saved, so a loop that has been idle decides at once, and a cycle that costs more than
// was saved makes the next one wait. Each cycle fills until nothing fits, so fewer of them decide
// no less. Pure; times are of a monotonic clock.
class CyclePace {
 public:
  static constexpr std::int64_t kShare = 4;                // one fourth of the time
  static constexpr std::int64_t kMostSaved = 200'000;      // microseconds
  static constexpr std::int64_t kLongestWait = 1'000'000;  // so that a slow cycle does not stop all

  // A cycle ended at `now` that took this long.
  void Spent(Millis now, std::int64_t micros) {
    saved_ = std::max(Saved(now) - micros, -kLongestWait / kShare);
    at_ = now;
  }
  // How long from `now` until the next may start; 0: at once.
  Millis Wait(Millis now) const {
    const std::int64_t saved = Saved(now);
    return saved > 0 ? Millis{0} : Millis{(-saved * kShare) / 1000 + 1};
  }

 private:
  std::int64_t Saved(Millis now) const {
    return std::min(kMostSaved, saved_ + (now - at_).v * 1000 / kShare);
  }

  std::int64_t saved_ = kMostSaved;  // at `at_`
  Millis at_;
};

}  // namespace bimetal::op
