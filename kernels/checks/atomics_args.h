#pragma once

#include "kernels/device/portable.h"

namespace bimetal::kernels {

// What threads meet in: one cell for all of the device and one for each block.
struct AtomicCell {
  uint64_t add64;
  uint64_t min64;
  uint64_t max64;
  uint64_t cas64;        // added up by compare-and-swap
  uint64_t exchange64;   // the value of whoever came last
  uint64_t exchanged64;  // xor of all values that an exchange gave back
  uint32_t add32;
  uint32_t min32;
  uint32_t max32;
  uint32_t cas32;
  uint32_t exchange32;
  uint32_t exchanged32;
};

struct AtomicRecord {
  uint64_t token;  // Mix(args.token + block): proves that the block ran in this launch
  uint64_t unit;
};

struct AtomicArgs {
  AtomicCell* cells;  // of the device, then one a block
  AtomicRecord* records;
  uint64_t seed;
  uint64_t token;
};

// What a thread brings.
BM_INLINE uint64_t AtomicValue(uint64_t seed, uint64_t thread) { return Mix(seed ^ Mix(thread)); }

}  // namespace bimetal::kernels
