// The small floating-point formats: every code, every rounding boundary.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "kernels/checks/gemm_formats.h"

namespace bimetal::kernels {
namespace {

struct Case {
  const char* name;
  SmallFormat format;
  double largest;      // finite
  double smallest;     // positive
  std::uint32_t nans;  // codes that are none
};

// The limits as the specifications print them.
const Case kCases[] = {
    {"fp16", kFormatFp16, 65504, 0x1p-24, 2 * 1023},
    {"bf16", kFormatBf16, 0x1.fep127, 0x1p-133, 2 * 127},
    {"tf32", kFormatTf32, 0x1.ffcp127, 0x1p-136, 2 * 1023},
    {"e4m3fn", kFormatE4m3fn, 448, 0x1p-9, 2},
    {"e5m2", kFormatE5m2, 57344, 0x1p-16, 6},
    {"e4m3fnuz", kFormatE4m3fnuz, 240, 0x1p-10, 1},
    {"e5m2fnuz", kFormatE5m2fnuz, 57344, 0x1p-17, 1},
};

class SmallFormatTest : public testing::TestWithParam<Case> {};

TEST_P(SmallFormatTest, EveryCodeComesBackFromItsValue) {
  const SmallFormat& format = GetParam().format;
  std::uint32_t nans = 0;
  double largest = 0;
  double smallest = std::numeric_limits<double>::infinity();
  for (std::uint32_t code = 0; code < format.codes(); ++code) {
    const double value = DecodeSmall(format, code);
    if (std::isnan(value)) {
      ++nans;
      EXPECT_TRUE(std::isnan(DecodeSmall(format, EncodeSmall(format, value)))) << code;
      continue;
    }
    ASSERT_EQ(EncodeSmall(format, value), code) << value;
    if (std::isfinite(value)) largest = std::max(largest, value);
    if (value > 0) smallest = std::min(smallest, value);
  }
  EXPECT_EQ(nans, GetParam().nans);
  EXPECT_EQ(largest, GetParam().largest);
  EXPECT_EQ(smallest, GetParam().smallest);
}

// Between any two neighbours: the middle goes to the even code, anything else to the nearer one.
TEST_P(SmallFormatTest, EveryGapRoundsToNearestTiesToEven) {
  const SmallFormat& format = GetParam().format;
  for (std::uint32_t code = 0; code + 1 < format.sign_bit(); ++code) {
    const double low = DecodeSmall(format, code);
    const double high = DecodeSmall(format, code + 1);
    if (!std::isfinite(low) || !std::isfinite(high)) break;
    ASSERT_LT(low, high);
    const double middle = low + (high - low) / 2;
    const std::uint32_t even = code % 2 == 0 ? code : code + 1;
    ASSERT_EQ(EncodeSmall(format, middle), even) << middle;
    ASSERT_EQ(EncodeSmall(format, std::nextafter(middle, 0.0)), code) << middle;
    ASSERT_EQ(EncodeSmall(format, std::nextafter(middle, high)), code + 1) << middle;
    const double back = DecodeSmall(format, EncodeSmall(format, -middle));
    ASSERT_EQ(back, -DecodeSmall(format, even)) << middle;
  }
}

TEST_P(SmallFormatTest, BeyondTheLargestValueIsNoFiniteNumber) {
  const SmallFormat& format = GetParam().format;
  const double largest = GetParam().largest;
  const double below = DecodeSmall(format, EncodeSmall(format, largest) - 1);
  const double next = largest + (largest - below);
  const double middle = largest + (largest - below) / 2;
  // The top code of e4m3fn is even; all others are odd, and their middle goes up.
  const bool stays = EncodeSmall(format, largest) % 2 == 0;
  EXPECT_EQ(std::isfinite(DecodeSmall(format, EncodeSmall(format, middle))), stays);
  EXPECT_EQ(DecodeSmall(format, EncodeSmall(format, std::nextafter(middle, 0.0))), largest);
  for (const double value : {next, 1e300, std::numeric_limits<double>::infinity()}) {
    for (const double sign : {1.0, -1.0}) {
      const double back = DecodeSmall(format, EncodeSmall(format, sign * value));
      if (format.specials == SmallFormat::Specials::kIeee) {
        EXPECT_EQ(back, sign * std::numeric_limits<double>::infinity());
      } else {
        EXPECT_TRUE(std::isnan(back)) << value;
      }
    }
  }
}

TEST_P(SmallFormatTest, TinyValuesRoundToZeroOrTheSmallest) {
  const SmallFormat& format = GetParam().format;
  const double smallest = GetParam().smallest;
  EXPECT_EQ(DecodeSmall(format, EncodeSmall(format, smallest / 2)), 0);
  EXPECT_EQ(DecodeSmall(format, EncodeSmall(format, std::nextafter(smallest / 2, 1))), smallest);
  EXPECT_EQ(DecodeSmall(format, EncodeSmall(format, 1e-300)), 0);
  const bool fnuz = format.specials == SmallFormat::Specials::kFnuz;
  EXPECT_EQ(EncodeSmall(format, -0.0), fnuz ? 0 : format.sign_bit());
  EXPECT_EQ(EncodeSmall(format, -1e-300), fnuz ? 0 : format.sign_bit());
}

INSTANTIATE_TEST_SUITE_P(Formats, SmallFormatTest, testing::ValuesIn(kCases),
                         [](const auto& param) { return std::string(param.param.name); });

// bf16 and tf32 are the upper bits of a float, rounded: an independent way to the same codes.
TEST(SmallFormatTest, AgreesWithRoundedUpperBitsOfAFloat) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 100000; ++i) {
    const auto bits = static_cast<std::uint32_t>(random());
    const float value = std::bit_cast<float>(bits);
    if (!std::isfinite(value)) continue;
    for (const auto& [format, drop] : {std::pair{kFormatBf16, 16u}, {kFormatTf32, 13u}}) {
      const std::uint32_t half = (1u << (drop - 1)) - 1 + (bits >> drop & 1);
      ASSERT_EQ(EncodeSmall(format, value), static_cast<std::uint32_t>((bits + half) >> drop));
    }
  }
}

}  // namespace
}  // namespace bimetal::kernels
