// The CUDA and HIP back ends: over fake vendor libraries, and where there is none.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "kernels/checks/compute_checksum.h"
#include "kernels/checks/memory_pattern.h"
#include "kernels/device/cuda/cuda_backend.h"
#include "kernels/device/hip/hip_backend.h"
#include "tests/unit/kernels/device/fake_library.h"

namespace bimetal::kernels {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

CheckRequest Request(milliseconds timeout = milliseconds(30'000)) {
  CheckRequest request;
  request.deadline = std::chrono::steady_clock::now() + timeout;
  return request;
}

// One vendor's back end over its fake library.
struct Vendor {
  const char* name;
  const char* library;
  const char* id;   // of device 1
  const char* pci;  // of device 1
  const char* arch;
  bool built;
  Outcome<std::unique_ptr<Backend>> (*load)(const std::string& library);
};

void PrintTo(const Vendor& vendor, std::ostream* out) { *out << vendor.name; }

class VendorBackendTest : public testing::TestWithParam<Vendor> {
 protected:
  void SetUp() override {
    if (!GetParam().built) GTEST_SKIP() << "built without kernels for " << GetParam().name;
    state_ = SoundFake(GetParam().library);
    ASSERT_NE(state_, nullptr) << dlerror();
  }
  std::unique_ptr<Device> OpenSecond() {
    auto backend = GetParam().load(GetParam().library);
    EXPECT_TRUE(backend.ok());
    auto device = backend.value()->Open(GetParam().id);
    EXPECT_TRUE(device.ok()) << device.error().message;
    return std::move(device.value());
  }
  FakeState* state_ = nullptr;
};

TEST_P(VendorBackendTest, DescribesEachDevice) {
  auto backend = GetParam().load(GetParam().library);
  ASSERT_TRUE(backend.ok()) << backend.error().message;
  const auto devices = backend.value()->Enumerate();
  ASSERT_TRUE(devices.ok()) << devices.error().message;
  ASSERT_EQ(devices.value().size(), 2u);
  const DeviceInfo& info = devices.value()[1];
  EXPECT_EQ(info.id, GetParam().id);
  EXPECT_EQ(info.pci_address, GetParam().pci);
  EXPECT_EQ(info.arch, GetParam().arch);
  EXPECT_EQ(info.compute_units, 4u);
  EXPECT_EQ(info.memory_bytes, 8u << 20);
  EXPECT_FALSE(info.simulated);
}

TEST_P(VendorBackendTest, OpensByIdOrPciAddressAndRefusesAStranger) {
  auto backend = GetParam().load(GetParam().library);
  ASSERT_TRUE(backend.ok());
  EXPECT_EQ(backend.value()->Open(GetParam().pci).value()->info().id, GetParam().id);
  const auto stranger = backend.value()->Open("GPU-nobody");
  ASSERT_FALSE(stranger.ok());
  EXPECT_EQ(stranger.error().code, DeviceErrorCode::kNotFound);
  EXPECT_THAT(stranger.error().message, HasSubstr("GPU-nobody"));
}

TEST_P(VendorBackendTest, SoundDevicePassesBothChecks) {
  const auto device = OpenSecond();
  const CheckResult compute = RunComputeChecksum(*device, Request());
  EXPECT_EQ(compute.verdict, VerdictKind::kPass) << compute.evidence;
  EXPECT_EQ(compute.value, "4");
  const CheckResult memory = RunMemoryPattern(*device, Request());
  EXPECT_EQ(memory.verdict, VerdictKind::kPass) << memory.evidence;
  // At least 80 % of the free 4 MiB, in whole pages.
  EXPECT_EQ(memory.value, "3358720");
}

TEST_P(VendorBackendTest, WrongUnitFailsByName) {
  state_->wrong_unit = 3;
  const CheckResult result = RunComputeChecksum(*OpenSecond(), Request());
  EXPECT_EQ(result.verdict, VerdictKind::kFail);
  EXPECT_THAT(result.evidence, HasSubstr("unit 3: "));
}

TEST_P(VendorBackendTest, UnitThatNeverGetsWorkIsInconclusive) {
  state_->idle_units = 1;
  const CheckResult result = RunComputeChecksum(*OpenSecond(), Request());
  EXPECT_EQ(result.verdict, VerdictKind::kInconclusive);
  EXPECT_EQ(result.evidence, "4 of 5 compute units ran in 12 launches");
}

TEST_P(VendorBackendTest, UncorrectableMemoryErrorOfTheDriverFails) {
  const auto device = OpenSecond();
  state_->wait_error = 214;
  const CheckResult result = RunMemoryPattern(*device, Request());
  EXPECT_EQ(result.verdict, VerdictKind::kFail);
  EXPECT_THAT(result.evidence, HasSubstr("error 214"));
}

TEST_P(VendorBackendTest, OtherDriverErrorsAreInconclusive) {
  for (const int error : {700, 719, 101, 999}) {
    const auto device = OpenSecond();
    state_->wait_error = error;
    const CheckResult result = RunComputeChecksum(*device, Request());
    EXPECT_EQ(result.verdict, VerdictKind::kInconclusive) << error;
    EXPECT_THAT(result.evidence, HasSubstr("error " + std::to_string(error)));
    EXPECT_THAT(result.evidence, HasSubstr(GetParam().id));
    state_->wait_error = 0;
  }
}

TEST_P(VendorBackendTest, NoFreeMemoryIsInconclusive) {
  state_->alloc_error = 2;
  const CheckResult refused = RunMemoryPattern(*OpenSecond(), Request());
  EXPECT_EQ(refused.verdict, VerdictKind::kInconclusive);
  state_->alloc_error = 0;
  state_->free_bytes = 4096;
  const CheckResult little = RunMemoryPattern(*OpenSecond(), Request());
  EXPECT_EQ(little.verdict, VerdictKind::kInconclusive);
  EXPECT_THAT(little.evidence, HasSubstr("too few"));
}

TEST_P(VendorBackendTest, StalledKernelIsInconclusiveAndNothingWaitsForIt) {
  state_->stalled = true;
  const auto device = OpenSecond();
  const CheckResult result = RunMemoryPattern(*device, Request(milliseconds(30)));
  EXPECT_EQ(result.verdict, VerdictKind::kInconclusive);
  EXPECT_THAT(result.evidence, HasSubstr("did not finish in time"));
  const auto after = device->QueryMemory();
  ASSERT_FALSE(after.ok());
  EXPECT_EQ(after.error().code, DeviceErrorCode::kTimeout);
}

TEST_P(VendorBackendTest, KernelsForAnotherArchitectureAreInconclusive) {
  const auto device = OpenSecond();
  state_->load_error = 209;
  const CheckResult result = RunComputeChecksum(*device, Request());
  EXPECT_EQ(result.verdict, VerdictKind::kInconclusive);
}

TEST_P(VendorBackendTest, NoDeviceIsSaid) {
  state_->devices = 0;
  const auto backend = GetParam().load(GetParam().library);
  ASSERT_FALSE(backend.ok());
  EXPECT_EQ(backend.error().code, DeviceErrorCode::kNoDevice);
}

TEST_P(VendorBackendTest, LibraryWithoutTheFunctionsIsNamed) {
  const auto backend = GetParam().load("libm.so.6");
  ASSERT_FALSE(backend.ok());
  EXPECT_EQ(backend.error().code, DeviceErrorCode::kNoLibrary);
  EXPECT_THAT(backend.error().message, HasSubstr("libm.so.6 has no function "));
}

TEST_P(VendorBackendTest, MissingLibraryIsNamed) {
  const auto backend = GetParam().load("libbimetal-not-there.so.1");
  ASSERT_FALSE(backend.ok());
  EXPECT_EQ(backend.error().code, DeviceErrorCode::kNoLibrary);
  EXPECT_THAT(backend.error().message, HasSubstr("libbimetal-not-there.so.1"));
}

INSTANTIATE_TEST_SUITE_P(
    Vendors, VendorBackendTest,
    testing::Values(Vendor{"cuda", BIMETAL_FAKE_CUDA, "GPU-65656565-6565-6565-6565-656565656565",
                           "0000:65:00.0", "sm_90", BIMETAL_HAS_CUDA != 0,
                           [](const std::string& library) { return CudaBackend::Load({library}); }},
                    Vendor{"hip", BIMETAL_FAKE_HIP, "GPU-5a1b2c3d4e5f6071", "0000:06:00.0",
                           "gfx942", BIMETAL_HAS_HIP != 0,
                           [](const std::string& library) { return HipBackend::Load({library}); }}),
    [](const auto& param) { return std::string(param.param.name); });

class HipArchTest : public VendorBackendTest {};

TEST_P(HipArchTest, TriesEachImageWhereTheLibraryDoesNotNameTheArchitecture) {
  state_->tells_arch = false;
  for (const char* arch : {"gfx90a", "gfx942", "gfx1100"}) {
    state_->arch = arch;
    EXPECT_EQ(RunComputeChecksum(*OpenSecond(), Request()).verdict, VerdictKind::kPass) << arch;
  }
  state_->arch = "gfx1030";
  const CheckResult other = RunComputeChecksum(*OpenSecond(), Request());
  EXPECT_EQ(other.verdict, VerdictKind::kInconclusive);
  EXPECT_THAT(other.evidence, HasSubstr("were built for gfx90a gfx942"));
}

TEST_P(HipArchTest, NamesTheArchitectureThatHasNoKernels) {
  state_->arch = "gfx1030";
  const CheckResult result = RunComputeChecksum(*OpenSecond(), Request());
  EXPECT_EQ(result.verdict, VerdictKind::kInconclusive);
  EXPECT_THAT(result.evidence, HasSubstr("is gfx1030"));
}

INSTANTIATE_TEST_SUITE_P(Hip, HipArchTest,
                         testing::Values(Vendor{"hip", BIMETAL_FAKE_HIP, "GPU-5a1b2c3d4e5f6071",
                                                "0000:06:00.0", "gfx942", BIMETAL_HAS_HIP != 0,
                                                [](const std::string& library) {
                                                  return HipBackend::Load({library});
                                                }}),
                         [](const auto& param) { return std::string(param.param.name); });

TEST(HipUuidTextTest, ReadsTextBytesAndNothing) {
  hip::HipUuid text{};
  std::copy_n("0123456789abcdef", 16, text.bytes);
  EXPECT_EQ(HipUuidText(text), "GPU-0123456789abcdef");
  hip::HipUuid binary{};
  binary.bytes[0] = static_cast<char>(0xfe);
  EXPECT_EQ(HipUuidText(binary), "GPU-fe000000000000000000000000000000");
  EXPECT_EQ(HipUuidText(hip::HipUuid{}), "");
}

TEST(MatchesIdTest, TakesPciAddressesAsTheyAreWritten) {
  DeviceInfo info;
  info.id = "GPU-ABC";
  info.pci_address = "0000:1A:00.0";
  for (const char* id : {"GPU-abc", "0000:1a:00.0", "00000000:1A:00.0", "1a:00.0"}) {
    EXPECT_TRUE(MatchesId(info, id)) << id;
  }
  for (const char* id : {"", "GPU-ab", "0001:1a:00.0", "1b:00.0"}) {
    EXPECT_FALSE(MatchesId(info, id)) << id;
  }
  info.pci_address = "0001:1a:00.0";
  EXPECT_TRUE(MatchesId(info, "00000001:1a:00.0"));
  EXPECT_FALSE(MatchesId(info, "1a:00.0"));
}

}  // namespace
}  // namespace bimetal::kernels
