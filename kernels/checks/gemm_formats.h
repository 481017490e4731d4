#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

namespace bimetal::kernels {

// A binary floating-point format of at most 32 bits. Host only. Sources: IEEE 754-2019 (fp16); OCP
// 8-bit Floating Point Specification 1.0 (e4m3fn, e5m2); "8-bit Numerical Formats for Deep Neural
// Networks", arXiv 2206.02915, and AMD's CDNA 3 ISA (fnuz); NVIDIA PTX ISA (tf32).
struct SmallFormat {
  enum class Specials {
    kIeee,  // the top exponent holds infinity and NaN
    kFn,    // no infinity; only all ones is NaN
    kFnuz,  // no infinity, no negative zero; only the sign bit alone is NaN
  };
  std::uint32_t exponent_bits;
  std::uint32_t mantissa_bits;
  std::int32_t bias;
  Specials specials;

  constexpr std::uint32_t sign_bit() const { return 1u << (exponent_bits + mantissa_bits); }
  constexpr std::uint32_t codes() const { return sign_bit() << 1; }
  constexpr std::uint32_t infinity() const { return ((1u << exponent_bits) - 1) << mantissa_bits; }
  // A quiet NaN.
  constexpr std::uint32_t nan() const {
    if (specials == Specials::kFnuz) return sign_bit();
    if (specials == Specials::kFn) return sign_bit() - 1;
    return infinity() | 1u << (mantissa_bits - 1);
  }
};

inline constexpr SmallFormat kFormatFp16{5, 10, 15, SmallFormat::Specials::kIeee};
inline constexpr SmallFormat kFormatBf16{8, 7, 127, SmallFormat::Specials::kIeee};
inline constexpr SmallFormat kFormatTf32{8, 10, 127, SmallFormat::Specials::kIeee};
inline constexpr SmallFormat kFormatE4m3fn{4, 3, 7, SmallFormat::Specials::kFn};
inline constexpr SmallFormat kFormatE5m2{5, 2, 15, SmallFormat::Specials::kIeee};
inline constexpr SmallFormat kFormatE4m3fnuz{4, 3, 8, SmallFormat::Specials::kFnuz};
inline constexpr SmallFormat kFormatE5m2fnuz{5, 2, 16, SmallFormat::Specials::kFnuz};

// The value of a code; exact.
inline double DecodeSmall(const SmallFormat& format, std::uint32_t code) {
  using Specials = SmallFormat::Specials;
  const std::uint32_t magnitude = code & (format.sign_bit() - 1);
  const bool negative = (code & format.sign_bit()) != 0;
  const std::uint32_t field = magnitude >> format.mantissa_bits;
  const std::uint32_t mantissa = magnitude & ((1u << format.mantissa_bits) - 1);
  if (format.specials == Specials::kIeee && magnitude >= format.infinity()) {
    if (mantissa != 0) return std::numeric_limits<double>::quiet_NaN();
    return negative ? -std::numeric_limits<double>::infinity()
                    : std::numeric_limits<double>::infinity();
  }
  if (format.specials == Specials::kFn && magnitude == format.sign_bit() - 1) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  if (format.specials == Specials::kFnuz && code == format.sign_bit()) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  const std::uint32_t whole = field == 0 ? mantissa : mantissa | 1u << format.mantissa_bits;
  const int exponent = static_cast<int>(field == 0 ? 1 : field) - format.bias -
                       static_cast<int>(format.mantissa_bits);
  const double value = std::ldexp(static_cast<double>(whole), exponent);
  return negative ? -value : value;
}

// The code nearest to `value`, ties to even. Beyond the largest finite value: infinity where the
// format has one, else NaN (OCP's non-saturating mode).
inline std::uint32_t EncodeSmall(const SmallFormat& format, double value) {
  using Specials = SmallFormat::Specials;
  if (std::isnan(value)) return format.nan();
  const bool fnuz = format.specials == Specials::kFnuz;
  const std::uint32_t sign = std::signbit(value) ? format.sign_bit() : 0;
  const std::uint32_t overflow = format.specials == Specials::kIeee
                                     ? (sign | format.infinity())
                                     : (fnuz ? format.nan() : (sign | format.nan()));
  const double magnitude = std::fabs(value);
  if (std::isinf(magnitude)) return overflow;
  if (magnitude == 0) return fnuz ? 0 : sign;
  int exponent = 0;
  std::frexp(magnitude, &exponent);
  const int lowest = 1 - format.bias;
  const int top = exponent - 1 > lowest ? exponent - 1 : lowest;
  const int unit = top - static_cast<int>(format.mantissa_bits);  // 2^unit is one last place
  if (top + format.bias > static_cast<int>(1u << format.exponent_bits)) return overflow;
  const double scaled = std::ldexp(magnitude, -unit);
  double whole = std::floor(scaled);
  const double rest = scaled - whole;
  if (rest > 0.5 || (rest == 0.5 && std::fmod(whole, 2.0) == 1.0)) whole += 1;
  // A carry out of the mantissa steps the exponent by itself.
  const auto steps = static_cast<std::uint32_t>(whole);
  const auto field = static_cast<std::uint32_t>(top + format.bias);
  const std::uint32_t code = (field << format.mantissa_bits) + steps - (1u << format.mantissa_bits);
  const std::uint32_t limit = format.specials == Specials::kIeee ? format.infinity()
                              : fnuz                             ? format.sign_bit()
                                                                 : format.nan();
  if (code >= limit) return overflow;
  if (code == 0 && fnuz) return 0;
  return sign | code;
}

}  // namespace bimetal::kernels
