// Copies, peers, pinned memory and timers of the three back ends.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

#include "kernels/device/cuda/cuda_backend.h"
#include "kernels/device/hip/hip_backend.h"
#include "kernels/device/hip/sysfs_monitor.h"
#include "kernels/device/host/host_backend.h"
#include "kernels/device/trace.h"
#include "tests/unit/kernels/device/fake_library.h"

namespace bimetal::kernels {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t kBytes = 4096;

Deadline Soon() { return std::chrono::steady_clock::now() + std::chrono::seconds(30); }

HostDeviceSpec Simulated(const std::string& id) {
  HostDeviceSpec spec;
  spec.info.id = id;
  spec.info.vendor = "nvidia";
  spec.info.arch = "sm_90";
  spec.info.compute_units = 4;
  spec.info.memory_bytes = 8u << 20;
  spec.rates = DefaultRates(spec.info);
  return spec;
}

struct BackendCase {
  const char* name;
  const char* library;  // null: the host
  bool built;
};
void PrintTo(const BackendCase& one, std::ostream* out) { *out << one.name; }

class TransferTest : public testing::TestWithParam<BackendCase> {
 protected:
  void SetUp() override {
    if (!GetParam().built) GTEST_SKIP() << "built without kernels for " << GetParam().name;
    const std::string name = GetParam().name;
    if (GetParam().library != nullptr) {
      state_ = SoundFake(GetParam().library);
      ASSERT_NE(state_, nullptr) << dlerror();
    }
    Outcome<std::unique_ptr<Backend>> loaded = std::unique_ptr<Backend>();
    if (name == "cuda") loaded = CudaBackend::Load({GetParam().library});
    if (name == "hip") loaded = HipBackend::Load({GetParam().library});
    if (name == "host") {
      loaded = std::unique_ptr<Backend>(std::make_unique<HostBackend>(
          std::vector<HostDeviceSpec>{Simulated("A"), Simulated("B")}));
    }
    ASSERT_TRUE(loaded.ok()) << loaded.error().message;
    backend_ = std::move(loaded.value());
    const auto infos = backend_->Enumerate();
    ASSERT_TRUE(infos.ok());
    for (const DeviceInfo& info : infos.value()) {
      devices_.push_back(std::move(backend_->Open(info.id).value()));
    }
    ASSERT_EQ(devices_.size(), 2u);
  }
  FakeState* state_ = nullptr;
  std::unique_ptr<Backend> backend_;
  std::vector<std::unique_ptr<Device>> devices_;
};

TEST_P(TransferTest, DataGoesFromPinnedMemoryOverTwoDevicesAndBack) {
  Device& one = *devices_[0];
  Device& two = *devices_[1];
  auto pinned = PinnedMemory::Make(one, kBytes);
  ASSERT_TRUE(pinned.ok()) << pinned.error().message;
  for (std::size_t i = 0; i < kBytes; ++i) pinned.value().bytes()[i] = std::byte(i * 7);
  const auto first = DeviceBuffer::Make(one, kBytes);
  const auto second = DeviceBuffer::Make(one, kBytes);
  const auto third = DeviceBuffer::Make(two, kBytes);
  ASSERT_TRUE(first.ok() && second.ok() && third.ok());
  ASSERT_TRUE(one.QueueUpload(first.value().get(), pinned.value().get(), kBytes).ok());
  ASSERT_TRUE(one.QueueCopy(second.value().get(), first.value().get(), kBytes).ok());
  ASSERT_TRUE(one.CanAccessPeer(two).value());
  ASSERT_TRUE(one.EnablePeer(two).ok());
  ASSERT_TRUE(one.QueueCopyPeer(two, third.value().get(), second.value().get(), kBytes).ok());
  ASSERT_TRUE(one.Synchronize(Soon()).ok());
  auto back = PinnedMemory::Make(two, kBytes);
  ASSERT_TRUE(two.QueueDownload(back.value().get(), third.value().get(), kBytes).ok());
  ASSERT_TRUE(two.Synchronize(Soon()).ok());
  EXPECT_EQ(std::memcmp(back.value().bytes().data(), pinned.value().bytes().data(), kBytes), 0);
}

TEST_P(TransferTest, TimerSaysHowLongTheQueueTook) {
  ASSERT_TRUE(devices_[0]->StartTimer().ok());
  const auto elapsed = devices_[0]->StopTimer(Soon());
  ASSERT_TRUE(elapsed.ok()) << elapsed.error().message;
  if (state_ != nullptr) {
    EXPECT_DOUBLE_EQ(elapsed.value(), 500'000.0);
  } else {
    EXPECT_GE(elapsed.value(), 0.0);
  }
}

TEST_P(TransferTest, CopyBeyondItsBufferIsRefused) {
  const auto buffer = DeviceBuffer::Make(*devices_[0], kBytes);
  const auto pinned = PinnedMemory::Make(*devices_[0], 2 * kBytes);
  EXPECT_FALSE(
      devices_[0]->QueueUpload(buffer.value().get(), pinned.value().get(), 2 * kBytes).ok());
  EXPECT_FALSE(
      devices_[0]->QueueDownload(pinned.value().get(), buffer.value().get(), 2 * kBytes).ok());
}

TEST_P(TransferTest, PeerThatWasEnabledBeforeIsNoError) {
  if (state_ == nullptr) GTEST_SKIP() << "the host has no such state";
  state_->peer_enabled_before = true;
  EXPECT_TRUE(devices_[0]->EnablePeer(*devices_[1]).ok());
  state_->peers_reachable = false;
  EXPECT_FALSE(devices_[0]->CanAccessPeer(*devices_[1]).value());
}

TEST_P(TransferTest, DevicesOfTwoBackEndsAreNoPeers) {
  HostBackend other({HostCpu()});
  if (state_ == nullptr) GTEST_SKIP() << "both are of the host";
  const auto stranger = std::move(other.Open("host-cpu").value());
  EXPECT_FALSE(devices_[0]->CanAccessPeer(*stranger).ok());
}

INSTANTIATE_TEST_SUITE_P(Backends, TransferTest,
                         testing::Values(BackendCase{"cuda", BIMETAL_FAKE_CUDA,
                                                     BIMETAL_HAS_CUDA != 0},
                                         BackendCase{"hip", BIMETAL_FAKE_HIP, BIMETAL_HAS_HIP != 0},
                                         BackendCase{"host", nullptr, true}),
                         [](const auto& param) { return std::string(param.param.name); });

TEST(RateModelTest, ClaimsDependOnSeedCheckAndFaultsAndNeverOnAClock) {
  HostDeviceSpec spec = Simulated("A");
  const auto rates = [](HostDeviceSpec one, std::string_view check, std::uint64_t seed) {
    HostBackend backend({std::move(one)});
    return backend.Open("A").value()->ModelledRates(check, seed, 24).value();
  };
  const auto sound = rates(spec, "hbm-triad", 1);
  EXPECT_EQ(sound, rates(spec, "hbm-triad", 1));
  EXPECT_NE(sound, rates(spec, "hbm-triad", 2));
  for (const double value : sound) {
    EXPECT_GE(value, 2950 * 0.99);
    EXPECT_LE(value, 2950 * 1.01);
  }
  HostFault slow;
  slow.kind = HostFault::Kind::kSlowMemory;
  slow.percent = 40;
  spec.faults = {slow};
  EXPECT_LT(rates(spec, "hbm-triad", 1)[0], 2950 * 0.62);
  EXPECT_EQ(rates(spec, "peer-to-peer", 1), rates(Simulated("A"), "peer-to-peer", 1));
  slow.kind = HostFault::Kind::kLinkDown;
  spec.faults = {slow};
  EXPECT_LT(rates(spec, "peer-to-peer", 1)[0], 30);
  EXPECT_GT(rates(spec, "gemm-rate-of-some-precision", 1)[0], 0);
}

TEST(RateModelTest, TheProcessorItselfIsMeasured) {
  HostBackend backend({HostCpu()});
  EXPECT_FALSE(backend.Open("host-cpu").value()->ModelledRates("hbm-triad", 1, 24).has_value());
}

TEST(SysfsMonitorTest, ReadsWhatThereIsAndLeavesTheRestOpen) {
  namespace fs = std::filesystem;
  const fs::path root = fs::path(testing::TempDir()) / "bimetal_sysfs_monitor_test";
  const fs::path device = root / "sys/bus/pci/devices/0000:c1:00.0";
  fs::create_directories(device / "hwmon/hwmon4");
  fs::create_directories(device / "ras");
  std::ofstream(device / "hwmon/hwmon4/freq1_input") << "2100000000\n";
  std::ofstream(device / "hwmon/hwmon4/power1_average") << "643000000\n";
  std::ofstream(device / "ras/umc_err_count") << "ue: 3\nce: 9\n";
  DeviceInfo info;
  info.pci_address = "0000:C1:00.0";
  const auto monitor = OpenSysfsMonitor(info, root.string());
  ASSERT_NE(monitor, nullptr);
  const Telemetry now = monitor->Sample();
  EXPECT_EQ(now.clock_mhz, 2100.0);
  EXPECT_EQ(now.power_watts, 643.0);
  EXPECT_FALSE(now.temperature_celsius.has_value());
  EXPECT_EQ(now.uncorrected_errors, 3u);
  fs::remove_all(root);
  EXPECT_EQ(OpenSysfsMonitor(info, root.string()), nullptr);
}

TEST(CallTraceTest, NamesTheCallOfItsThread) {
  CallTrace trace;
  EXPECT_EQ(trace.Text(), "");
  trace.Begin("memory-pattern");
  call_trace = &trace;
  {
    const ScopedCall call("cuMemAlloc");
    EXPECT_EQ(trace.Text(), "cuMemAlloc in memory-pattern");
  }
  call_trace = nullptr;
  EXPECT_EQ(trace.Text(), "memory-pattern");
}

}  // namespace
}  // namespace bimetal::kernels
