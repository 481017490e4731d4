#include "kernels/checks/gemm_data.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <map>
#include <mutex>
#include <tuple>

#include "kernels/checks/gemm_formats.h"

namespace bimetal::kernels {
namespace {

// One addition of the accumulator. fp32 sums are rounded or, in tensor cores, cut (2^-23); Hopper
// keeps about 14 bits of fp8 sums (DeepSeek-V3 technical report, arXiv 2412.19437, 3.3.2).
constexpr double kDouble = 0x1p-53;
constexpr double kSingle = 0x1p-24;
constexpr double kCut = 0x1p-23;
constexpr double kFp8Sum = 0x1p-13;

// integers^2 * depth stays within the accumulator: 53, 24 and, for fp8, 13 bits.
constexpr auto kFormats = std::to_array<GemmFormatInfo>({
    {kGemmFp64, "fp64", 8, 8, 0x1p20, kDouble},
    {kGemmFp32, "fp32", 4, 4, 256, kSingle},
    {kGemmTf32, "tf32", 4, 4, 256, kCut},
    {kGemmFp16, "fp16", 2, 4, 127, kCut},
    {kGemmBf16, "bf16", 2, 4, 127, kCut},
    {kGemmE4m3fn, "e4m3fn", 1, 4, 2, kFp8Sum},
    {kGemmE5m2, "e5m2", 1, 4, 2, kFp8Sum},
    {kGemmE4m3fnuz, "e4m3fnuz", 1, 4, 2, kFp8Sum},
    {kGemmE5m2fnuz, "e5m2fnuz", 1, 4, 2, kFp8Sum},
    {kGemmInt8, "int8", 1, 4, 127, 0},
});

const SmallFormat* Small(GemmFormat format) {
  switch (format) {
    case kGemmTf32:
      return &kFormatTf32;
    case kGemmFp16:
      return &kFormatFp16;
    case kGemmBf16:
      return &kFormatBf16;
    case kGemmE4m3fn:
      return &kFormatE4m3fn;
    case kGemmE5m2:
      return &kFormatE5m2;
    case kGemmE4m3fnuz:
      return &kFormatE4m3fnuz;
    case kGemmE5m2fnuz:
      return &kFormatE5m2fnuz;
    default:
      return nullptr;
  }
}

// Writes the element nearest to `value` and returns what was written.
double Put(GemmFormat format, double value, std::byte* to) {
  if (format == kGemmFp64) {
    std::memcpy(to, &value, 8);
    return value;
  }
  if (format == kGemmFp32) {
    const auto single = static_cast<float>(value);
    std::memcpy(to, &single, 4);
    return single;
  }
  if (format == kGemmInt8) {
    const auto integer = static_cast<std::int8_t>(value);
    std::memcpy(to, &integer, 1);
    return integer;
  }
  const SmallFormat& small = *Small(format);
  const std::uint32_t code = EncodeSmall(small, value);
  // tf32 lies in the upper bits of a word.
  const std::uint32_t word = format == kGemmTf32 ? code << 13 : code;
  std::memcpy(to, &word, FormatInfo(format).bytes);
  return DecodeSmall(small, code);
}

// The value of one element before it is rounded to the format.
double Draw(const GemmFormatInfo& info, GemmData data, std::uint64_t bits, int scale) {
  if (data == GemmData::kExact || info.format == kGemmInt8) {
    const auto span = static_cast<std::uint64_t>(2 * info.integers + 1);
    double value = static_cast<double>(bits % span) - info.integers;
    if (info.format == kGemmInt8) return bits >> 60 == 0 ? -128 : value;  // its lowest, too
    return std::ldexp(value, scale);
  }
  // [1, 2) times 2^-3, 2^-2 or 2^-1: all significand bits vary, nothing is subnormal.
  const double significand = 1 + static_cast<double>(bits >> 12) * 0x1p-52;
  const double value = std::ldexp(significand, -1 - static_cast<int>(bits % 3));
  return (bits & 0x800) != 0 ? -value : value;
}

void FillOperand(const GemmFormatInfo& info, GemmData data, std::uint32_t rows, std::uint32_t depth,
                 std::uint64_t seed, std::vector<std::byte>* packed, std::vector<double>* values) {
  const std::uint32_t per_chunk = kGemmChunkBytes / info.bytes;
  packed->resize(std::size_t{rows} * depth * info.bytes);
  values->resize(std::size_t{rows} * depth);
  for (std::uint32_t row = 0; row < rows; ++row) {
    // A power of two for the whole row keeps its sums exact and moves the exponents.
    const int scale = static_cast<int>(Mix(seed ^ row) % 5) - 2;
    for (std::uint32_t k = 0; k < depth; ++k) {
      const std::size_t index = std::size_t{row} * depth + k;
      const std::size_t place = (std::size_t{k / per_chunk} * rows + row) * kGemmChunkBytes +
                                std::size_t{k % per_chunk} * info.bytes;
      (*values)[index] = Put(info.format, Draw(info, data, Mix(seed ^ Mix(index + 1)), scale),
                             packed->data() + place);
    }
  }
}

std::shared_ptr<const GemmProblem> Compute(GemmFormat format, GemmData data, GemmShape shape,
                                           std::uint64_t seed) {
  const GemmFormatInfo& info = FormatInfo(format);
  auto problem = std::make_shared<GemmProblem>();
  problem->format = format;
  problem->shape = shape;
  problem->depth = shape.chunks * kGemmChunkBytes / info.bytes;
  const std::uint64_t salt = Mix(seed ^ Mix(format * 2 + (data == GemmData::kExact ? 1 : 0)));
  FillOperand(info, data, shape.rows, problem->depth, salt, &problem->a, &problem->left);
  FillOperand(info, data, shape.columns, problem->depth, ~salt, &problem->b, &problem->right);
  problem->reference.resize(std::size_t{shape.rows} * shape.columns);
  for (std::uint32_t row = 0; row < shape.rows; ++row) {
    const double* left = problem->left.data() + std::size_t{row} * problem->depth;
    for (std::uint32_t column = 0; column < shape.columns; ++column) {
      const double* right = problem->right.data() + std::size_t{column} * problem->depth;
      double sum = 0;
      for (std::uint32_t k = 0; k < problem->depth; ++k) sum += left[k] * right[k];
      problem->reference[std::size_t{row} * shape.columns + column] = sum;
    }
  }
  if (data == GemmData::kExact) return problem;
  problem->bound.resize(problem->reference.size());
  for (std::size_t i = 0; i < problem->bound.size(); ++i) {
    problem->bound[i] = GemmErrorBound(*problem, static_cast<std::uint32_t>(i / shape.columns),
                                       static_cast<std::uint32_t>(i % shape.columns), 1);
  }
  return problem;
}

}  // namespace

const GemmFormatInfo& FormatInfo(GemmFormat format) { return kFormats.at(format); }

std::shared_ptr<const GemmProblem> MakeGemmProblem(GemmFormat format, GemmData data,
                                                   GemmShape shape, std::uint64_t seed) {
  // Devices of one shape share a problem within a run.
  static std::mutex mutex;
  static std::map<std::tuple<int, int, std::uint32_t, std::uint32_t, std::uint32_t, std::uint64_t>,
                  std::weak_ptr<const GemmProblem>>
      known;
  const std::lock_guard lock(mutex);
  auto& entry =
      known[{format, static_cast<int>(data), shape.rows, shape.columns, shape.chunks, seed}];
  if (auto shared = entry.lock()) return shared;
  auto problem = Compute(format, data, shape, seed);
  entry = problem;
  return problem;
}

std::uint64_t ExactBits(const GemmProblem& problem, std::size_t element) {
  const double value = problem.reference[element];
  if (problem.format == kGemmFp64) return BitCast<std::uint64_t>(value);
  if (problem.format == kGemmInt8) {
    return static_cast<std::uint32_t>(static_cast<std::int32_t>(value));
  }
  return BitCast<std::uint32_t>(static_cast<float>(value));
}

double ResultValue(GemmFormat format, std::uint64_t bits) {
  if (format == kGemmFp64) return BitCast<double>(bits);
  const auto word = static_cast<std::uint32_t>(bits);
  if (format == kGemmInt8) return static_cast<std::int32_t>(word);
  return BitCast<float>(word);
}

double GemmErrorBound(const GemmProblem& problem, std::uint32_t row, std::uint32_t column,
                      std::uint32_t passes) {
  const GemmFormatInfo& info = FormatInfo(problem.format);
  const std::uint32_t per_chunk = kGemmChunkBytes / info.bytes;
  const double* left = problem.left.data() + std::size_t{row} * problem.depth;
  const double* right = problem.right.data() + std::size_t{column} * problem.depth;
  std::vector<double> sums(problem.shape.chunks);
  std::vector<double> magnitudes(problem.shape.chunks);
  for (std::uint32_t k = 0; k < problem.depth; ++k) {
    const double product = left[k] * right[k];
    sums[k / per_chunk] += product;
    magnitudes[k / per_chunk] += std::fabs(product);
  }
  double sum = 0;
  double met = 0;
  for (std::uint32_t pass = 0; pass < passes; ++pass) {
    for (std::uint32_t chunk = 0; chunk < problem.shape.chunks; ++chunk) {
      met += (per_chunk + 2) * (std::fabs(sum) + magnitudes[chunk]);
      sum += sums[chunk];
    }
  }
  return info.roundoff * (2 * met + std::fabs(sum));
}

}  // namespace bimetal::kernels
