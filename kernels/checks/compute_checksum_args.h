#pragma once

#include "kernels/device/portable.h"

namespace bimetal::kernels {

struct ChecksumRecord {
  uint64_t token;  // Mix(args.token + thread): proves that the thread ran in this launch
  uint64_t value;
  uint64_t unit;  // the compute unit that it ran on
};

struct ChecksumArgs {
  ChecksumRecord* records;  // one a thread
  uint64_t seed;
  uint64_t token;
  uint64_t iterations;
};

// Where the chain of thread `item` starts: distinct for every thread.
BM_INLINE uint64_t ChecksumStart(uint64_t seed, uint64_t item) { return Mix(seed ^ Mix(item)); }

// One link of the chain: 64-bit multiply, its high half from 32-bit products, add with carry,
// shifts, rotates, logic and a data-dependent choice. Any wrong bit spreads to the whole value.
BM_INLINE uint64_t ChecksumStep(uint64_t value, uint64_t i) {
  const uint64_t low = value & 0xffffffffull;
  const uint64_t high = value >> 32;
  const uint64_t cross = low * high + i;
  const uint64_t rotated = (value << 23) | (value >> 41);
  value = rotated * 0x9e3779b97f4a7c15ull + (cross ^ (cross >> 29));
  value ^= (value & 1) != 0 ? ~high : low << 7;
  return value + (value < cross ? 1 : 0);
}

}  // namespace bimetal::kernels
