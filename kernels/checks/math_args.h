#pragma once

#include "kernels/device/portable.h"

namespace bimetal::kernels {

constexpr uint32_t kMathPoints = 64;  // of the grid, one block's work

// One point of the grid: what each function gets.
struct MathInput {
  float positive;  // 2^-20 to 2^21: log2, rsqrt, rcp, sqrt, numerator
  float exponent;  // -20 to 20: exp2
  float turns;     // -0.5 to 0.5: sin and cos of 2 pi turns
  float divisor;   // 2^-20 to 2^21
  double numerator;
  double denominator;  // and the argument of the square root
};

struct MathOutput {
  uint32_t exp2;
  uint32_t log2;
  uint32_t sine;
  uint32_t cosine;
  uint32_t rsqrt;
  uint32_t reciprocal;
  uint32_t root;
  uint32_t quotient;
  uint64_t quotient64;
  uint64_t root64;
};

struct MathRecord {
  uint64_t token;  // Mix(args.token + block): proves that the block ran in this launch
  uint64_t unit;
};

// Block b computes the points of segment (first_segment + b) modulo `segments` into slot b.
struct MathArgs {
  const MathInput* inputs;  // segments * kMathPoints
  MathOutput* outputs;      // blocks * kMathPoints
  MathRecord* records;      // one a block
  uint64_t token;
  uint64_t mask;  // every word of a result is stored xor this: an old result is no result
  uint32_t segments;
  uint32_t first_segment;
};

}  // namespace bimetal::kernels
