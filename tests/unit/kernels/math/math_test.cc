// Transcendental functions and division on the host back end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "kernels/checks/math.h"
#include "kernels/device/host/host_backend.h"
#include "tests/unit/kernels/gemm/simulated.h"

namespace bimetal::kernels {
namespace {

using testing::HasSubstr;
using Kind = HostFault::Kind;

TEST(MathTest, SoundDevicePassesOnEveryUnitWithEverySeed) {
  for (std::uint64_t seed = 1; seed < 9; ++seed) {
    const CheckResult result = RunMath(*Simulated(20), NumericsRequest(seed));
    ASSERT_EQ(result.verdict, VerdictKind::kPass) << result.evidence;
    EXPECT_THAT(result.evidence, HasSubstr("20 of 20 compute units ran, 10 functions within"));
  }
}

TEST(MathTest, OneBadUnitOf304IsCaughtByNumber) {
  const CheckResult result =
      RunMath(*Simulated(304, {FaultOf(Kind::kCompute, 17)}), NumericsRequest());
  EXPECT_EQ(result.verdict, VerdictKind::kFail);
  EXPECT_THAT(result.evidence, testing::StartsWith("unit 17: 3 of 3 results wrong, first segment"));
  EXPECT_THAT(result.evidence, testing::Not(HasSubstr("; unit")));
}

// A device that is wrong in all its units agrees with itself: only the bound tells.
TEST(MathTest, DeviceThatIsWrongEverywhereBreaksTheBound) {
  const CheckResult one = RunMath(*Simulated(1, {FaultOf(Kind::kCompute, 0)}), NumericsRequest());
  EXPECT_EQ(one.verdict, VerdictKind::kFail);
  EXPECT_THAT(one.evidence, HasSubstr(", reference "));
  const auto both = {FaultOf(Kind::kCompute, 0), FaultOf(Kind::kCompute, 1)};
  const CheckResult two = RunMath(*Simulated(2, both), NumericsRequest());
  EXPECT_EQ(two.verdict, VerdictKind::kInconclusive);
  EXPECT_THAT(two.evidence, HasSubstr("no unit is blamed"));
}

TEST(MathTest, SkippedHungAndVanishedDevices) {
  EXPECT_EQ(RunMath(*Simulated(4, {FaultOf(Kind::kSkip)}), NumericsRequest()).verdict,
            VerdictKind::kFail);
  CheckRequest request = NumericsRequest();
  request.deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(20);
  for (const Kind kind : {Kind::kHang, Kind::kVanish}) {
    EXPECT_EQ(RunMath(*Simulated(4, {FaultOf(kind)}), request).verdict, VerdictKind::kInconclusive);
  }
}

}  // namespace
}  // namespace bimetal::kernels
