#pragma once

#include "kernels/device/portable.h"

namespace bimetal::kernels {

// Data repeats after this many values, so that the host knows what any number of them add up to.
BM_INLINE uint64_t RatePeriod() { return 1024; }

// Whole numbers from 0 to 255: all sums and products of the checks are exact in fp64.
BM_INLINE double RateValue(uint64_t seed, uint64_t index) {
  return static_cast<double>(Mix(seed + (index & (RatePeriod() - 1))) & 255);
}
BM_INLINE double RateScalar() { return 3.0; }

enum RateKind : uint32_t { kRateCopy, kRateScale, kRateAdd, kRateTriad, kRateDot };

// What `kind` makes of one element of a and b.
BM_INLINE double RateResult(uint32_t kind, double a, double b) {
  switch (kind) {
    case kRateCopy:
      return a;
    case kRateScale:
      return RateScalar() * a;
    case kRateAdd:
      return a + b;
    case kRateTriad:
      return a + RateScalar() * b;
    default:
      return a * b;
  }
}

// What one thread saw. Written whole by every thread that ran.
struct RateRecord {
  uint64_t token;       // Mix(args.token + thread): proves that the thread ran in this launch
  uint64_t mismatches;  // verify
  uint64_t first;       // index of the thread's first mismatch
  double expected;
  double found;
  double sum;  // dot
};

// Two values, moved at once.
struct alignas(16) RatePair {
  double x;
  double y;
};

struct RateArgs {
  RatePair* a;
  RatePair* b;
  RatePair* c;
  uint64_t pairs;
  uint64_t seed;
  uint64_t token;
  RateRecord* records;  // one a thread; dot and verify
  uint64_t* launches;   // counted up by one a launch
  uint32_t kind;        // RateKind; what verify expects in c
  uint32_t reserved;
};

// All-reduce of 64-bit words, modulo 2^64.
struct RingArgs {
  uint64_t* words;
  const uint64_t* other;
  uint64_t count;
  uint64_t seed;
  uint64_t rank;
  uint64_t ranks;
  uint64_t token;
  RateRecord* records;
};

BM_INLINE uint64_t RingValue(uint64_t seed, uint64_t rank, uint64_t index) {
  return Mix(seed ^ Mix(rank)) + index * (2 * rank + 1);
}

struct StressArgs {
  uint64_t seed;
  uint64_t token;
  uint64_t iterations;
  RateRecord* records;  // `found` and `sum` hold the ends of the thread's chains
};

// Threads of one lane compute the same.
BM_INLINE uint64_t StressLanes() { return 64; }

// The chains of a thread: chaotic, so that the bits keep moving, and rounded the same everywhere,
// so that the result is the same bit for bit.
BM_INLINE float StressStart(uint64_t seed, uint64_t lane, uint64_t chain) {
  return 0.1f + static_cast<float>((Mix(seed) + lane * 4 + chain) % 769) / 1024.0f;
}
BM_INLINE float StressStep(float value) { return 3.9f * __builtin_fmaf(-value, value, value); }

}  // namespace bimetal::kernels
