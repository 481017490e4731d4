// Atomic operations on the host back end, whose threads really meet.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "kernels/checks/atomics.h"
#include "kernels/device/host/host_backend.h"
#include "tests/unit/kernels/gemm/simulated.h"

namespace bimetal::kernels {
namespace {

using testing::HasSubstr;
using Kind = HostFault::Kind;

TEST(AtomicsTest, SoundDevicePassesOnEveryUnitWithEverySeed) {
  for (std::uint64_t seed = 1; seed < 20; ++seed) {
    const CheckResult result = RunAtomics(*Simulated(20), NumericsRequest(seed));
    ASSERT_EQ(result.verdict, VerdictKind::kPass) << result.evidence;
    EXPECT_EQ(result.evidence, "20 of 20 compute units ran, in 3 launches, 10 operations exact");
  }
}

TEST(AtomicsTest, OneBadUnitOf304IsCaughtByNumber) {
  const CheckResult result =
      RunAtomics(*Simulated(304, {FaultOf(Kind::kCompute, 17)}), NumericsRequest());
  EXPECT_EQ(result.verdict, VerdictKind::kFail);
  EXPECT_THAT(result.evidence, testing::StartsWith("unit 17: block 17, add64, expected 0x"));
  EXPECT_THAT(result.evidence, testing::Not(HasSubstr("; unit")));
}

TEST(AtomicsTest, SkippedHungAndVanishedDevices) {
  const CheckResult skipped = RunAtomics(*Simulated(4, {FaultOf(Kind::kSkip)}), NumericsRequest());
  EXPECT_EQ(skipped.verdict, VerdictKind::kFail);
  EXPECT_THAT(skipped.evidence, HasSubstr("block 0 left no result"));
  CheckRequest request = NumericsRequest();
  request.deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(20);
  for (const Kind kind : {Kind::kHang, Kind::kVanish}) {
    EXPECT_EQ(RunAtomics(*Simulated(4, {FaultOf(kind)}), request).verdict,
              VerdictKind::kInconclusive);
  }
}

}  // namespace
}  // namespace bimetal::kernels
