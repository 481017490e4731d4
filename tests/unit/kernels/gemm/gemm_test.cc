// Matrix products on the host back end: every precision passes on a sound device and catches a unit
// that flips any one bit of its results.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <random>
#include <string>

#include "kernels/checks/gemm.h"
#include "kernels/checks/gemm_data.h"
#include "kernels/checks/gemm_launch.h"
#include "kernels/checks/modules.h"
#include "kernels/device/host/host_backend.h"
#include "tests/unit/kernels/gemm/simulated.h"

namespace bimetal::kernels {
namespace {

using testing::HasSubstr;
using testing::StartsWith;
using Kind = HostFault::Kind;

class GemmTest : public testing::TestWithParam<GemmPrecision> {};

TEST_P(GemmTest, SoundDevicePassesOnEveryUnitAndProvesThePrecision) {
  const CheckResult result = RunGemm(GetParam(), *Simulated(20), NumericsRequest());
  EXPECT_EQ(result.verdict, VerdictKind::kPass) << result.evidence;
  EXPECT_EQ(result.value, "20");
  EXPECT_EQ(result.unit, "computeUnits");
  EXPECT_EQ(result.capability, GetParam().name);
  EXPECT_THAT(result.evidence, StartsWith("20 of 20 compute units ran, by software"));
}

TEST_P(GemmTest, SoundDevicesPassWithEverySeed) {
  for (std::uint64_t seed = 2; seed < 12; ++seed) {
    const CheckResult result = RunGemm(GetParam(), *Simulated(3), NumericsRequest(seed));
    ASSERT_EQ(result.verdict, VerdictKind::kPass) << seed << ": " << result.evidence;
  }
}

TEST_P(GemmTest, RepeatsBitIdentically) {
  EXPECT_EQ(RunGemm(GetParam(), *Simulated(20), NumericsRequest(5)).evidence,
            RunGemm(GetParam(), *Simulated(20), NumericsRequest(5)).evidence);
}

TEST_P(GemmTest, OneBadUnitOf304IsCaughtByNumber) {
  const CheckResult result =
      RunGemm(GetParam(), *Simulated(304, {FaultOf(Kind::kCompute, 211)}), NumericsRequest());
  EXPECT_EQ(result.verdict, VerdictKind::kFail);
  EXPECT_THAT(result.evidence, HasSubstr(": unit 211: "));
  EXPECT_THAT(result.evidence, HasSubstr(", expected 0x"));
  EXPECT_THAT(result.evidence, testing::Not(HasSubstr("; unit ")));
  EXPECT_EQ(result.capability, "");
}

// No unit's fault: a kernel that lays a matrix out wrongly must not condemn every device there is.
TEST_P(GemmTest, UnitsThatAllAgreeOnWrongResultsAreInconclusive) {
  std::vector<HostFault> all;
  for (std::uint32_t unit = 0; unit < 8; ++unit) all.push_back(FaultOf(Kind::kCompute, unit));
  const CheckResult result = RunGemm(GetParam(), *Simulated(8, all), NumericsRequest());
  EXPECT_EQ(result.verdict, VerdictKind::kInconclusive);
  EXPECT_THAT(result.evidence, StartsWith("all 8 units agree on wrong results"));
  all.pop_back();
  const CheckResult seven = RunGemm(GetParam(), *Simulated(8, all), NumericsRequest());
  EXPECT_EQ(seven.verdict, VerdictKind::kFail);
}

TEST_P(GemmTest, WrongOnlyUnitFails) {
  EXPECT_EQ(
      RunGemm(GetParam(), *Simulated(1, {FaultOf(Kind::kCompute)}), NumericsRequest()).verdict,
      VerdictKind::kFail);
}

TEST_P(GemmTest, DeviceThatOnlyClaimsToHaveRunFails) {
  const CheckResult result =
      RunGemm(GetParam(), *Simulated(20, {FaultOf(Kind::kSkip)}), NumericsRequest());
  EXPECT_EQ(result.verdict, VerdictKind::kFail);
  EXPECT_THAT(result.evidence, HasSubstr("tile 0 left no result"));
}

TEST_P(GemmTest, HungOrVanishedDeviceIsInconclusive) {
  CheckRequest request = NumericsRequest();
  request.deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(20);
  for (const Kind kind : {Kind::kHang, Kind::kVanish}) {
    const CheckResult result = RunGemm(GetParam(), *Simulated(20, {FaultOf(kind)}), request);
    EXPECT_EQ(result.verdict, VerdictKind::kInconclusive);
    EXPECT_EQ(result.capability, "");
  }
}

TEST_P(GemmTest, RateOfASimulatedDeviceIsANumberWithoutAProfile) {
  const CheckResult result = RunGemmRate(
      GetParam(), *Simulated(4, {}, GetParam().formats[0] == kGemmE4m3fnuz ? "gfx942" : "sm_90"),
      NumericsRequest());
  EXPECT_EQ(result.verdict, VerdictKind::kNoProfile) << result.evidence;
  EXPECT_GT(std::stod(result.value), 0);
  ASSERT_TRUE(result.distribution.has_value());
  EXPECT_EQ(result.distribution->samples, 20u);
  EXPECT_THAT(result.evidence, HasSubstr("seed 1"));
  EXPECT_EQ(result.capability, "");
}

TEST_P(GemmTest, RateOfWrongResultsFails) {
  const CheckResult result = RunGemmRate(
      GetParam(), *Simulated(20, {FaultOf(Kind::kCompute, 1)}, "sm_90"), NumericsRequest());
  EXPECT_EQ(result.verdict, VerdictKind::kFail) << result.evidence;
}

INSTANTIATE_TEST_SUITE_P(Precisions, GemmTest, testing::ValuesIn(kGemmPrecisions),
                         [](const auto& param) {
                           std::string name = param.param.name;
                           std::erase(name, '-');
                           return name;
                         });

// The bits of a result that the fault reaches, one at a time, in one unit of a few.
class GemmFormatTest : public testing::TestWithParam<GemmFormat> {};

struct Problems {
  std::shared_ptr<const GemmProblem> exact;
  std::shared_ptr<const GemmProblem> random;
};

TEST_P(GemmFormatTest, ExactDataIsExactWhateverTheOrderOfTheSum) {
  std::mt19937_64 random(11);
  const auto problem = MakeGemmProblem(GetParam(), GemmData::kExact, {128, 128, 4}, 3);
  const bool fp8 = FormatInfo(GetParam()).roundoff == 0x1p-13;
  double largest = 0;
  for (int i = 0; i < 200; ++i) {
    const std::uint64_t row = random() % 128;
    const std::uint64_t column = random() % 128;
    // The sum of the magnitudes bounds every partial sum; scaled to integers it needs few bits.
    double magnitude = 0;
    double unit = 1e300;
    for (std::uint32_t k = 0; k < problem->depth; ++k) {
      const double product =
          problem->left[row * problem->depth + k] * problem->right[column * problem->depth + k];
      magnitude += std::fabs(product);
      if (product == 0) continue;
      int exponent = 0;
      double fraction = std::frexp(std::fabs(product), &exponent);
      while (fraction != std::floor(fraction)) {
        fraction *= 2;
        --exponent;
      }
      unit = std::min(unit, std::ldexp(1.0, exponent));
    }
    largest = std::max(largest, magnitude / unit);
  }
  const double limit = GetParam() == kGemmFp64 ? 0x1p53 : fp8 ? 0x1p13 : 0x1p24;
  EXPECT_LE(largest, GetParam() == kGemmInt8 ? 0x1p31 : limit);
  EXPECT_GT(largest, 64);
}

TEST_P(GemmFormatTest, RandomDataIsWithinTheFormatAndNeverSubnormal) {
  const auto problem = MakeGemmProblem(GetParam(), GemmData::kRandom, {64, 64, 2}, 3);
  for (const double value : problem->left) {
    if (GetParam() == kGemmInt8) continue;
    EXPECT_GE(std::fabs(value), 0.125);
    EXPECT_LE(std::fabs(value), 1);
  }
}

// The bits of one tile as the host's kernel leaves them under a fault of the arithmetic.
std::vector<std::uint64_t> OneTile(const GemmProblem& problem, std::uint64_t fault) {
  const HostKernelTable& table = *GemmModule().host;
  const std::string name = std::string("bm_gemm_") + FormatInfo(problem.format).name;
  const auto* kernel = std::find_if(table.kernels, table.kernels + table.count,
                                    [&](const HostKernel& known) { return known.name == name; });
  std::vector<std::uint64_t> c(256);
  GemmRecord record = {};
  GemmArgs args = {problem.a.data(), problem.b.data(), c.data(), &record, 0, 0, 16, 16, 2, 1, 0, 1};
  host_thread = HostThread{};
  host_thread.alu_fault = fault;
  kernel->call(&args);
  host_thread = HostThread{};
  if (FormatInfo(problem.format).result_bytes == 8) return c;
  std::vector<std::uint64_t> words(256);
  for (std::size_t i = 0; i < 256; ++i) words[i] = c[i / 2] >> (i % 2 * 32) & 0xffffffffu;
  return words;
}

// Every result is compared in all its bits: so no flipped bit of a unit can hide.
TEST_P(GemmFormatTest, EveryFlippedBitReachesEveryResult) {
  const auto problem = MakeGemmProblem(GetParam(), GemmData::kExact, {16, 16, 2}, 5);
  const std::vector<std::uint64_t> sound = OneTile(*problem, 0);
  for (std::size_t i = 0; i < sound.size(); ++i) ASSERT_EQ(sound[i], ExactBits(*problem, i)) << i;
  for (std::uint32_t bit = 0; bit < 64; ++bit) {
    const std::vector<std::uint64_t> wrong = OneTile(*problem, 1ull << bit);
    const bool wide = FormatInfo(GetParam()).result_bytes == 8;
    for (std::size_t i = 0; i < sound.size(); ++i) {
      ASSERT_EQ(sound[i] ^ wrong[i], 1ull << (wide ? bit : bit % 32)) << bit << " of " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, GemmFormatTest,
                         testing::Values(kGemmFp64, kGemmFp32, kGemmTf32, kGemmFp16, kGemmBf16,
                                         kGemmE4m3fn, kGemmE5m2, kGemmE4m3fnuz, kGemmE5m2fnuz,
                                         kGemmInt8),
                         [](const auto& param) {
                           return std::string(FormatInfo(param.param).name);
                         });

TEST(GemmErrorBoundTest, HoldsForSumsThatAreCutAfterEveryAddition) {
  // A tensor core at its worst: each partial sum of fp16 products loses all below 24 bits.
  const auto problem = MakeGemmProblem(kGemmFp16, GemmData::kRandom, {16, 16, 4}, 9);
  for (std::uint32_t row = 0; row < 16; ++row) {
    for (std::uint32_t column = 0; column < 16; ++column) {
      double sum = 0;
      for (std::uint32_t k = 0; k < problem->depth; ++k) {
        sum +=
            problem->left[row * problem->depth + k] * problem->right[column * problem->depth + k];
        int exponent = 0;
        std::frexp(sum, &exponent);
        const double last_place = std::ldexp(1.0, exponent - 24);
        sum = std::trunc(sum / last_place) * last_place;
      }
      const double bound = GemmErrorBound(*problem, row, column, 1);
      EXPECT_LE(std::fabs(sum - problem->reference[row * 16 + column]), bound);
      // A bound that allowed everything would prove nothing.
      EXPECT_LT(bound, 0.05);
    }
  }
}

TEST(GemmPrecisionTest, PassOfOtherUnitsProvesNoCapability) {
  const GemmPrecision& fp8 = kGemmPrecisions[5];
  EXPECT_EQ(RunGemm(fp8, *Simulated(4, {}, "sm_90"), NumericsRequest()).capability, "fp8-ocp");
  const CheckResult widened = RunGemm(fp8, *Simulated(4, {}, "sm_100"), NumericsRequest());
  EXPECT_EQ(widened.verdict, VerdictKind::kPass);
  EXPECT_EQ(widened.capability, "");
  EXPECT_THAT(widened.evidence, HasSubstr("by mma widened to fp16"));
}

TEST(GemmPrecisionTest, EachArchitectureHasItsPrecisions) {
  const auto named = [](std::string_view arch) {
    std::string text;
    for (const GemmPrecision& precision : kGemmPrecisions) {
      if (!GemmHasPrecision(arch, precision)) continue;
      text += std::string(text.empty() ? "" : " ") + precision.name + ":" +
              std::string(GemmMeans(arch, precision));
    }
    return text;
  };
  EXPECT_EQ(named("sm_75"), "fp64:fma fp32:fma fp16:mma int8:mma");
  EXPECT_EQ(named("sm_80"), "fp64:mma fp32:fma tf32:mma fp16:mma bf16:mma int8:mma");
  for (const char* arch : {"sm_89", "sm_120"}) {
    EXPECT_EQ(named(arch), "fp64:mma fp32:fma tf32:mma fp16:mma bf16:mma fp8-ocp:mma int8:mma");
  }
  EXPECT_THAT(named("sm_90"), HasSubstr("fp8-ocp:wgmma"));
  EXPECT_THAT(named("sm_100"), HasSubstr("fp8-ocp:mma widened to fp16"));
  EXPECT_EQ(named("gfx90a"), "fp64:mfma fp32:mfma fp16:mfma bf16:mfma int8:mfma");
  EXPECT_EQ(named("gfx942:sramecc+:xnack-"),
            "fp64:mfma fp32:mfma tf32:mfma fp16:mfma bf16:mfma fp8-fnuz:mfma int8:mfma");
  EXPECT_EQ(named("gfx1100"), "fp64:fma fp32:fma fp16:wmma bf16:wmma int8:wmma");
  EXPECT_EQ(named("unheard-of"), "fp64:fma fp32:fma");
}

}  // namespace
}  // namespace bimetal::kernels
