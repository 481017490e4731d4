#pragma once

#include <algorithm>
#include <cstdint>

#include "core/base/time.h"

namespace bimetal::op {

// Keeps one kind of work from taking the loop for itself under a flood of events: over time it has
// one part in `share` of the clock, and what it did not use is saved for a while. It may start
// while anything is saved, so a loop that has been idle works at once, and what costs more than was
// saved makes the next one wait. Pure; times are of a monotonic clock.
class Pace {
 public:
  struct Limits {
    std::int64_t share = 1;         // one part in so many of the time
    std::int64_t most_saved = 0;    // microseconds
    std::int64_t longest_wait = 0;  // microseconds, so that one slow turn does not stop all
  };

  explicit Pace(const Limits& limits) : limits_(limits), saved_(limits.most_saved) {}

  // A turn ended at `now` that took this long.
  void Spent(Millis now, std::int64_t micros) {
    saved_ = std::max(Saved(now) - micros, -limits_.longest_wait / limits_.share);
    at_ = now;
  }
  // How long from `now` until the next may start; 0: at once.
  Millis Wait(Millis now) const {
    const std::int64_t saved = Saved(now);
    return saved > 0 ? Millis{0} : Millis{(-saved * limits_.share) / 1000 + 1};
  }

 private:
  std::int64_t Saved(Millis now) const {
    return std::min(limits_.most_saved, saved_ + (now - at_).v * 1000 / limits_.share);
  }

  Limits limits_;
  std::int64_t saved_ = 0;  // at `at_`
  Millis at_;
};

// Of scheduling cycles. Each fills until nothing fits, so fewer of them decide no less.
inline constexpr Pace::Limits kCyclePace{
    .share = 6, .most_saved = 200'000, .longest_wait = 1'000'000};
// Of sums over the whole fleet, for statuses and metrics.
inline constexpr Pace::Limits kFleetPace{
    .share = 50, .most_saved = 50'000, .longest_wait = 10'000'000};

}  // namespace bimetal::op
