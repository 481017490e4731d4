#pragma once

#include "kernels/device/portable.h"

namespace bimetal::kernels {

enum MemoryPattern : uint32_t {
  kPatternAddress,     // each word holds its own byte offset
  kPatternWalkingOne,  // one bit set, moving up by one a word
  kPatternCheckered,   // 0x55.., each walk of the moving inversions flips it
  kPatternRandom,      // a seeded hash of the word's index
};

// What one thread saw. Written whole by every thread that ran.
struct MemoryRecord {
  uint64_t token;       // Mix(args.token + thread): proves that the thread ran in this launch
  uint64_t mismatches;  // words
  uint64_t first;       // index of the thread's first mismatching word
  uint64_t expected;
  uint64_t found;
  uint64_t bits;  // union of all differing bits
};

struct MemoryArgs {
  uint64_t* words;
  uint64_t count;  // words
  uint64_t seed;
  uint64_t token;
  MemoryRecord* records;  // one a thread; verify only
  uint32_t pattern;       // MemoryPattern
  uint32_t inverted;      // 1: every expected bit is flipped
  uint32_t rewrite;       // 1: verify leaves the inverse of what it expected
  uint32_t reserved;
};

BM_INLINE uint64_t PatternValue(uint32_t pattern, uint64_t index, uint64_t seed) {
  switch (pattern) {
    case kPatternAddress:
      return index * 8;
    case kPatternWalkingOne:
      return 1ull << (index & 63);
    case kPatternCheckered:
      return 0x5555555555555555ull;
    default:
      return Mix(seed + index);
  }
}

}  // namespace bimetal::kernels
