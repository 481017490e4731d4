#pragma once

#include <algorithm>

#include "core/base/time.h"

namespace bimetal::op {

// No pause between two tries is longer than this.
inline constexpr Millis kLongestPause = Minutes(5);

// The pause after the `times`-th failure in a row: `first`, doubled with each that follows, at most
// kLongestPause. Pure.
inline Millis Doubled(Millis first, int times) {
  Millis pause = first;
  for (int i = 1; i < times && pause < kLongestPause; ++i) pause = pause + pause;
  return std::min(pause, kLongestPause);
}

}  // namespace bimetal::op
