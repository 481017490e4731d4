#pragma once

#include "kernels/device/portable.h"

namespace bimetal::kernels {

struct ExchangeStepArgs {
  uint64_t* values;
  uint64_t count;
  uint64_t rank;
  uint64_t round;
};

// What a rank contributes at one place in one round. The sum over the ranks 0..n-1 is
// n(n+1)/2 * (round+1) + n * index: known beforehand, different at every place and in every round.
BM_INLINE uint64_t ExchangeValue(uint64_t rank, uint64_t round, uint64_t index) {
  return (rank + 1) * (round + 1) + index;
}

}  // namespace bimetal::kernels
