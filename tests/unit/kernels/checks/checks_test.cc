// Both checks on the host back end: a sound device passes, each fault gives its verdict.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <utility>

#include "kernels/checks/compute_checksum.h"
#include "kernels/checks/memory_pattern.h"
#include "kernels/device/host/host_backend.h"
#include "kernels/device/host/host_device.h"

namespace bimetal::kernels {
namespace {

using Kind = HostFault::Kind;
using testing::HasSubstr;

constexpr std::uint64_t kBytes = 1u << 20;

HostFault StuckBit(std::uint64_t offset, std::uint32_t bit, bool stuck) {
  HostFault fault;
  fault.offset = offset;
  fault.bit = bit;
  fault.stuck = stuck;
  return fault;
}

HostFault OfKind(Kind kind, std::uint32_t unit = 0) {
  HostFault fault;
  fault.kind = kind;
  fault.unit = unit;
  return fault;
}

std::unique_ptr<Device> Simulated(std::vector<HostFault> faults) {
  HostDeviceSpec spec;
  spec.info.id = "GPU-sim";
  spec.info.vendor = "nvidia";
  spec.info.compute_units = 20;
  spec.info.memory_bytes = 80ull << 30;
  spec.faults = std::move(faults);
  HostBackend backend({spec});
  return std::move(backend.Open("GPU-sim").value());
}

CheckRequest Request(std::uint64_t seed = 1) {
  CheckRequest request;
  request.seed = seed;
  request.memory_bytes = kBytes;
  request.deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  return request;
}

TEST(MemoryPatternTest, SoundMemoryPassesAndSaysHowMuchWasTested) {
  const CheckResult result = RunMemoryPattern(*Simulated({}), Request());
  EXPECT_EQ(result.verdict, VerdictKind::kPass) << result.evidence;
  EXPECT_EQ(result.value, std::to_string(kBytes));
  EXPECT_EQ(result.unit, "bytes");
}

struct StuckCase {
  std::uint64_t offset;
  std::uint32_t bit;
  bool stuck;
  std::string evidence;
};

TEST(MemoryPatternTest, EveryStuckBitFailsWithItsAddressAndBits) {
  const StuckCase cases[] = {
      {0x80000, 3, true, "offset 0x80000, expected 0x80000, found 0x80008"},
      {0, 0, true, "offset 0x0, expected 0x0, found 0x1"},
      // Bit 63 is first expected to be set where the walking zero passes elsewhere.
      {8, 63, false, "offset 0x8, expected 0xfffffffffffffffd, found 0x7ffffffffffffffd"},
      {kBytes - 8, 40, true, "offset 0xffff8, expected 0xffff8, found 0x100000ffff8"},
      // A fault in the middle of a word is found in that word.
      {0x1004, 1, true, "offset 0x1000, expected 0x1000, found 0x200001000"},
  };
  for (const StuckCase& c : cases) {
    const CheckResult result =
        RunMemoryPattern(*Simulated({StuckBit(c.offset, c.bit, c.stuck)}), Request());
    EXPECT_EQ(result.verdict, VerdictKind::kFail) << c.evidence;
    EXPECT_THAT(result.evidence, HasSubstr("first mismatch at " + c.evidence));
  }
}

TEST(MemoryPatternTest, EveryBitOfAWordIsTestedBothWays) {
  for (std::uint32_t bit = 0; bit < 64; ++bit) {
    for (const bool stuck : {false, true}) {
      const CheckResult result =
          RunMemoryPattern(*Simulated({StuckBit(0x4008, bit, stuck)}), Request(bit));
      EXPECT_EQ(result.verdict, VerdictKind::kFail) << bit << " stuck at " << stuck;
    }
  }
}

TEST(MemoryPatternTest, LowestAddressOfSeveralIsNamedAndAllAreCounted) {
  const CheckResult result = RunMemoryPattern(
      *Simulated({StuckBit(0x9000, 5, true), StuckBit(0x2000, 6, true)}), Request());
  EXPECT_THAT(result.evidence, HasSubstr("offset 0x2000,"));
  EXPECT_THAT(result.evidence, HasSubstr("differing bits 0x60"));
}

TEST(MemoryPatternTest, FaultOutsideTheTestedRegionIsInconclusive) {
  const CheckResult result = RunMemoryPattern(*Simulated({StuckBit(kBytes, 0, true)}), Request());
  EXPECT_EQ(result.verdict, VerdictKind::kInconclusive);
  EXPECT_THAT(result.evidence, HasSubstr("offset 1048576 lies outside the tested region"));
}

TEST(MemoryPatternTest, DefaultRegionGrowsToHoldTheFault) {
  CheckRequest request = Request();
  request.memory_bytes = 0;
  const CheckResult result = RunMemoryPattern(*Simulated({StuckBit(20u << 20, 0, true)}), request);
  EXPECT_EQ(result.verdict, VerdictKind::kFail);
  EXPECT_THAT(result.evidence, HasSubstr("offset 0x1400000,"));
}

TEST(MemoryPatternTest, MoreThanTheHostMayHoldIsInconclusive) {
  CheckRequest request = Request();
  request.memory_bytes = kHostMemoryLimit + 4096;
  const CheckResult result = RunMemoryPattern(*Simulated({}), request);
  EXPECT_EQ(result.verdict, VerdictKind::kInconclusive);
  EXPECT_THAT(result.evidence, HasSubstr("no room for"));
}

TEST(ComputeChecksumTest, SoundDevicePassesOnEveryUnit) {
  const CheckResult result = RunComputeChecksum(*Simulated({}), Request());
  EXPECT_EQ(result.verdict, VerdictKind::kPass) << result.evidence;
  EXPECT_EQ(result.value, "20");
  EXPECT_THAT(result.evidence, HasSubstr("20 of 20 compute units ran"));
}

TEST(ComputeChecksumTest, RepeatsBitIdenticallyAndDependsOnTheSeed) {
  const CheckResult first = RunComputeChecksum(*Simulated({}), Request(7));
  const CheckResult again = RunComputeChecksum(*Simulated({}), Request(7));
  const CheckResult other = RunComputeChecksum(*Simulated({}), Request(8));
  EXPECT_EQ(first.evidence, again.evidence);
  EXPECT_NE(first.evidence, other.evidence);
}

TEST(ComputeChecksumTest, WrongUnitFailsByNumberWithExpectedAndFound) {
  const CheckResult result =
      RunComputeChecksum(*Simulated({OfKind(Kind::kCompute, 17)}), Request());
  EXPECT_EQ(result.verdict, VerdictKind::kFail);
  EXPECT_THAT(result.evidence,
              testing::ContainsRegex("^unit 17: 6 of 6 results wrong, first item 17, expected "
                                     "0x[0-9a-f]+, found 0x[0-9a-f]+; 20 of 20 compute units ran"));
}

TEST(ComputeChecksumTest, ManyWrongUnitsAreCounted) {
  std::vector<HostFault> faults;
  for (std::uint32_t unit = 0; unit < 20; ++unit) faults.push_back(OfKind(Kind::kCompute, unit));
  const CheckResult result = RunComputeChecksum(*Simulated(std::move(faults)), Request());
  EXPECT_EQ(result.verdict, VerdictKind::kFail);
  EXPECT_THAT(result.evidence, HasSubstr("unit 7: "));
  EXPECT_THAT(result.evidence, HasSubstr("12 more units wrong"));
}

using Run = CheckResult (*)(Device&, const CheckRequest&);
class EveryCheckTest : public testing::TestWithParam<Run> {};

TEST_P(EveryCheckTest, HungDeviceIsInconclusiveAtTheDeadline) {
  CheckRequest request = Request();
  request.deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(20);
  const CheckResult result = GetParam()(*Simulated({OfKind(Kind::kHang)}), request);
  EXPECT_EQ(result.verdict, VerdictKind::kInconclusive);
  EXPECT_THAT(result.evidence, HasSubstr("GPU-sim"));
  EXPECT_THAT(result.evidence, HasSubstr("did not finish in time"));
}

TEST_P(EveryCheckTest, VanishedDeviceIsInconclusive) {
  const CheckResult result = GetParam()(*Simulated({OfKind(Kind::kVanish)}), Request());
  EXPECT_EQ(result.verdict, VerdictKind::kInconclusive);
  EXPECT_THAT(result.evidence, HasSubstr("GPU-sim is gone"));
}

TEST_P(EveryCheckTest, DeviceThatOnlyClaimsToHaveRunFails) {
  const CheckResult result = GetParam()(*Simulated({OfKind(Kind::kSkip)}), Request());
  EXPECT_EQ(result.verdict, VerdictKind::kFail);
  EXPECT_THAT(result.evidence, HasSubstr("thread 0 left no result"));
}

TEST_P(EveryCheckTest, PassedDeadlineIsInconclusive) {
  CheckRequest request = Request();
  request.deadline = std::chrono::steady_clock::now();
  const CheckResult result = GetParam()(*Simulated({}), request);
  EXPECT_EQ(result.verdict, VerdictKind::kInconclusive);
}

INSTANTIATE_TEST_SUITE_P(Checks, EveryCheckTest,
                         testing::Values(&RunMemoryPattern, &RunComputeChecksum));

TEST(HostDeviceTest, RefusesAKernelThatTheModuleLacks) {
  const auto device = Simulated({});
  const ModuleImage none;
  const Done done = device->Launch(none, "bm_nothing", {1, 1}, {});
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().code, DeviceErrorCode::kNoKernel);
}

TEST(HostDeviceTest, FreedMemoryIsGivenOutAgainFromTheLowestOffset) {
  const auto device = Simulated({});
  const Buffer first = device->Allocate(8192).value();
  const Buffer second = device->Allocate(4096).value();
  EXPECT_EQ(first.offset, 0u);
  EXPECT_EQ(second.offset, 8192u);
  ASSERT_TRUE(device->Free(first).ok());
  EXPECT_EQ(device->Allocate(4096).value().offset, 0u);
}

}  // namespace
}  // namespace bimetal::kernels
