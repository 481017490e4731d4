// The numeric checks over the CUDA and HIP back ends with fake vendor libraries: the launch shapes
// of real devices, 256 threads a block and many tiles.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "kernels/checks/atomics.h"
#include "kernels/checks/gemm.h"
#include "kernels/checks/math.h"
#include "kernels/device/cuda/cuda_backend.h"
#include "kernels/device/hip/hip_backend.h"
#include "tests/unit/kernels/device/fake_library.h"
#include "tests/unit/kernels/gemm/simulated.h"

namespace bimetal::kernels {
namespace {

using testing::HasSubstr;

struct Vendor {
  const char* name;
  const char* library;
  bool built;
  Outcome<std::unique_ptr<Backend>> (*load)(const std::string& library);
};

void PrintTo(const Vendor& vendor, std::ostream* out) { *out << vendor.name; }

class NumericsVendorTest : public testing::TestWithParam<Vendor> {
 protected:
  void SetUp() override {
    if (!GetParam().built) GTEST_SKIP() << "built without kernels for " << GetParam().name;
    state_ = SoundFake(GetParam().library);
    ASSERT_NE(state_, nullptr) << dlerror();
    backend_ = std::move(GetParam().load(GetParam().library).value());
    const auto devices = backend_->Enumerate();
    ASSERT_TRUE(devices.ok());
    device_ = std::move(backend_->Open(devices.value()[0].id).value());
  }

  FakeState* state_ = nullptr;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Device> device_;
};

TEST_P(NumericsVendorTest, SoundDevicePassesInEveryPrecisionOfItsArchitecture) {
  int tried = 0;
  for (const GemmPrecision& precision : kGemmPrecisions) {
    if (!GemmHasPrecision(device_->info().arch, precision)) continue;
    ++tried;
    const CheckResult result = RunGemm(precision, *device_, NumericsRequest());
    EXPECT_EQ(result.verdict, VerdictKind::kPass) << precision.name << ": " << result.evidence;
    EXPECT_EQ(result.capability, precision.name);
    EXPECT_THAT(result.evidence, HasSubstr("4 of 4 compute units ran"));
  }
  EXPECT_EQ(tried, 7);
  EXPECT_EQ(RunMath(*device_, NumericsRequest()).verdict, VerdictKind::kPass);
  EXPECT_EQ(RunAtomics(*device_, NumericsRequest()).verdict, VerdictKind::kPass);
}

// The fake's fault flips the lowest bit alone.
TEST_P(NumericsVendorTest, LowestBitOfOneUnitIsCaughtInEveryPrecision) {
  state_->wrong_unit = 2;
  for (const GemmPrecision& precision : kGemmPrecisions) {
    if (!GemmHasPrecision(device_->info().arch, precision)) continue;
    const CheckResult result = RunGemm(precision, *device_, NumericsRequest());
    EXPECT_EQ(result.verdict, VerdictKind::kFail) << precision.name;
    EXPECT_THAT(result.evidence, HasSubstr(": unit 2: "));
    EXPECT_THAT(result.evidence, testing::Not(HasSubstr("; unit ")));
  }
  for (const auto run : {&RunMath, &RunAtomics}) {
    const CheckResult result = run(*device_, NumericsRequest());
    EXPECT_EQ(result.verdict, VerdictKind::kFail);
    EXPECT_THAT(result.evidence, testing::StartsWith("unit 2: "));
  }
}

TEST_P(NumericsVendorTest, UnitThatNeverGetsWorkIsInconclusiveAndProvesNothing) {
  state_->idle_units = 1;
  const auto devices = backend_->Enumerate();
  const auto device = std::move(backend_->Open(devices.value()[1].id).value());
  if (device->info().compute_units == 4) GTEST_SKIP() << "this back end counted units before";
  const CheckResult result = RunGemm(kGemmPrecisions[7], *device, NumericsRequest());
  EXPECT_EQ(result.verdict, VerdictKind::kInconclusive);
  EXPECT_EQ(result.capability, "");
  EXPECT_THAT(result.evidence, HasSubstr("4 of 5 compute units ran"));
  EXPECT_EQ(RunMath(*device, NumericsRequest()).verdict, VerdictKind::kInconclusive);
  EXPECT_EQ(RunAtomics(*device, NumericsRequest()).verdict, VerdictKind::kInconclusive);
}

TEST_P(NumericsVendorTest, KernelsForAnotherArchitectureAndFullMemoryAreInconclusive) {
  state_->load_error = 209;
  EXPECT_EQ(RunGemm(kGemmPrecisions[3], *device_, NumericsRequest()).verdict,
            VerdictKind::kInconclusive);
  state_->load_error = 0;
  state_->alloc_error = 2;
  EXPECT_EQ(RunGemm(kGemmPrecisions[3], *device_, NumericsRequest()).verdict,
            VerdictKind::kInconclusive);
}

INSTANTIATE_TEST_SUITE_P(
    Vendors, NumericsVendorTest,
    testing::Values(Vendor{"cuda", BIMETAL_FAKE_CUDA, BIMETAL_HAS_CUDA != 0,
                           [](const std::string& library) { return CudaBackend::Load({library}); }},
                    Vendor{"hip", BIMETAL_FAKE_HIP, BIMETAL_HAS_HIP != 0,
                           [](const std::string& library) { return HipBackend::Load({library}); }}),
    [](const auto& param) { return std::string(param.param.name); });

}  // namespace
}  // namespace bimetal::kernels
