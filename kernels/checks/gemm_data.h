#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "kernels/checks/gemm_args.h"

namespace bimetal::kernels {

// What is known of a format of the matrices.
struct GemmFormatInfo {
  GemmFormat format;
  const char* name;            // in kernel names: "bm_gemm_" + name
  std::uint32_t bytes;         // an element
  std::uint32_t result_bytes;  // an element of the result
  double integers;             // exact inputs are integers up to this, times powers of two
  double roundoff;             // of one addition inside the hardware; 0: integer arithmetic
};

const GemmFormatInfo& FormatInfo(GemmFormat format);

enum class GemmData {
  kExact,   // every product and every partial sum, in any order, is a number of the accumulator
  kRandom,  // random significands with exponents of three steps; rounding errors are bounded
};

struct GemmShape {
  std::uint32_t rows = 0;  // and columns: whole tiles
  std::uint32_t columns = 0;
  std::uint32_t chunks = 0;
};

// One product: packed operands, its reference in double, and how far from it a sound device may be.
// Immutable; shared between devices.
struct GemmProblem {
  GemmFormat format;
  GemmShape shape;
  std::uint32_t depth = 0;        // elements along k
  std::vector<std::byte> a, b;    // as GemmArgs wants them
  std::vector<double> left;       // the same values: row by row
  std::vector<double> right;      // column by column
  std::vector<double> reference;  // rows * columns, row by row, for one pass
  std::vector<double> bound;      // GemmErrorBound of each for one pass; random data only
};

// The same arguments give the same problem.
std::shared_ptr<const GemmProblem> MakeGemmProblem(GemmFormat format, GemmData data,
                                                   GemmShape shape, std::uint64_t seed);

// The bits that a device must return for an exact problem's element.
std::uint64_t ExactBits(const GemmProblem& problem, std::size_t element);

// A result's bits as a number.
double ResultValue(GemmFormat format, std::uint64_t bits);

// Largest sound distance from passes * reference of element (row, column):
//
//   2 u  sum over chunks c, passes p of (n + 2) (|s| + sum over k in c of |a_k b_k|)  +  u |c|
//
// with n elements a chunk, s the exact sum before the chunk, and u the format's `roundoff`. Each of
// the n additions of a chunk, in whatever order or grouping, errs by at most u times the largest
// magnitude that can be met (Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., 4.2);
// tensor cores align and cut the terms of a group before they add (Fasi, Higham, Mikaitis, Pranesh,
// Numerical behavior of NVIDIA tensor cores, PeerJ CS 2021), which u and the factor 2 allow for.
double GemmErrorBound(const GemmProblem& problem, std::uint32_t row, std::uint32_t column,
                      std::uint32_t passes);

}  // namespace bimetal::kernels
