// Rates, peers, ring and stress: data is verified, faults are blamed on whom they belong to.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <utility>

#include "kernels/checks/rate_common.h"
#include "kernels/checks/rates.h"
#include "kernels/device/cuda/cuda_backend.h"
#include "kernels/device/hip/hip_backend.h"
#include "kernels/device/host/host_backend.h"
#include "tests/unit/kernels/device/fake_library.h"

namespace bimetal::kernels {
namespace {

using Kind = HostFault::Kind;
using testing::ElementsAre;
using testing::HasSubstr;

CheckRequest Request() {
  CheckRequest request;
  request.seed = 7;
  request.stress = std::chrono::milliseconds(1);
  request.deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  return request;
}

HostFault Of(Kind kind, std::uint32_t percent = 0) {
  HostFault fault;
  fault.kind = kind;
  fault.percent = percent;
  return fault;
}

using Faults = std::vector<std::vector<HostFault>>;
Faults Sound(std::size_t devices) { return Faults(devices); }
Faults Faulty(std::vector<HostFault> faults) { return Faults(1, std::move(faults)); }

// Simulated devices "0", "1", ... with the faults of each.
class Node {
 public:
  explicit Node(const Faults& faults) {
    std::vector<HostDeviceSpec> specs;
    for (std::size_t i = 0; i < faults.size(); ++i) {
      HostDeviceSpec spec;
      spec.info.id = std::to_string(i);
      spec.info.vendor = "nvidia";
      spec.info.arch = "sm_90";
      spec.info.compute_units = 3;
      spec.info.memory_bytes = 80ull << 30;
      spec.faults = faults[i];
      spec.rates = DefaultRates(spec.info);
      specs.push_back(std::move(spec));
    }
    HostBackend backend(specs);
    for (const HostDeviceSpec& spec : specs) {
      opened_.push_back(std::move(backend.Open(spec.info.id).value()));
      devices_.push_back({spec.info, opened_.back().get()});
    }
  }
  std::vector<NodeDevice>& devices() { return devices_; }
  Device& operator[](std::size_t i) { return *opened_[i]; }

 private:
  std::vector<std::unique_ptr<Device>> opened_;
  std::vector<NodeDevice> devices_;
};

std::vector<VerdictKind> Verdicts(const std::vector<CheckResult>& results) {
  std::vector<VerdictKind> verdicts;
  for (const CheckResult& result : results) verdicts.push_back(result.verdict);
  return verdicts;
}

constexpr VerdictKind kFail = VerdictKind::kFail;
constexpr VerdictKind kNone = VerdictKind::kNoProfile;

TEST(SummarizeTest, TakesTheNearestRankAndNeverTheBest) {
  std::vector<double> samples;
  for (int i = 40; i >= 1; --i) samples.push_back(i);
  const Distribution spread = Summarize(samples);
  EXPECT_EQ(spread.samples, 40u);
  EXPECT_EQ(spread.min, 1);
  EXPECT_EQ(spread.p5, 2);
  EXPECT_EQ(spread.median, 20);
  EXPECT_EQ(spread.p95, 38);
  EXPECT_EQ(spread.max, 40);
  EXPECT_EQ(Summarize({3.0}).p5, 3.0);
}

TEST(BlameTest, FindsWhoIsInMostBadPairs) {
  using Suspects = std::vector<bool>;
  EXPECT_THAT(Blame(Suspects(4), {}), ElementsAre(false, false, false, false));
  EXPECT_THAT(Blame(Suspects(4), {{0, 3}, {3, 1}, {2, 3}}), ElementsAre(false, false, false, true));
  // Nothing tells the two ends of one pair apart, but what is known of one of them.
  EXPECT_THAT(Blame(Suspects(3), {{0, 1}, {1, 0}}), ElementsAre(true, true, false));
  EXPECT_THAT(Blame({false, true, false}, {{0, 1}}), ElementsAre(false, true, false));
  EXPECT_THAT(Blame({false, true, false}, {}), ElementsAre(false, false, false));
  EXPECT_THAT(Blame(Suspects(5), {{0, 1}, {0, 2}, {0, 3}, {4, 1}, {4, 2}, {4, 3}}),
              ElementsAre(true, false, false, false, true));
}

using RunCheck = CheckResult (*)(Device&, const CheckRequest&);
struct RateCase {
  const char* name;
  RunCheck run;
  const char* unit;
  Kind slow;
};
void PrintTo(const RateCase& one, std::ostream* out) { *out << one.name; }

class RateTest : public testing::TestWithParam<RateCase> {};

TEST_P(RateTest, SimulatedRateHasASpreadAndNoFloor) {
  Node node(Sound(1));
  const CheckResult result = GetParam().run(node[0], Request());
  EXPECT_EQ(result.verdict, kNone) << result.evidence;
  EXPECT_EQ(result.unit, GetParam().unit);
  ASSERT_TRUE(result.distribution.has_value());
  EXPECT_EQ(result.distribution->samples, kRateSamples);
  EXPECT_LE(result.distribution->min, result.distribution->p5);
  EXPECT_LE(result.distribution->p5, result.distribution->median);
  EXPECT_THAT(result.evidence, HasSubstr("data exact"));
}

TEST_P(RateTest, SlowDeviceIsSlower) {
  Node node({{}, {Of(GetParam().slow, 40)}});
  const double sound = GetParam().run(node[0], Request()).distribution->median;
  const double slow = GetParam().run(node[1], Request()).distribution->median;
  if (GetParam().slow == Kind::kErrors) return;  // no fault slows a launch
  EXPECT_NEAR(slow / sound, 0.6, 0.03);
}

TEST_P(RateTest, DeviceThatOnlyClaimsToHaveRunFails) {
  Node node(Faulty({Of(Kind::kSkip)}));
  const CheckResult result = GetParam().run(node[0], Request());
  EXPECT_EQ(result.verdict, kFail) << result.evidence;
  EXPECT_FALSE(result.distribution.has_value());
}

TEST_P(RateTest, VanishedDeviceAndNoMemoryAreInconclusive) {
  Node node({{Of(Kind::kVanish)}, {Of(Kind::kNoMemory)}});
  EXPECT_EQ(GetParam().run(node[0], Request()).verdict, VerdictKind::kInconclusive);
  EXPECT_EQ(GetParam().run(node[1], Request()).verdict, VerdictKind::kInconclusive);
}

TEST_P(RateTest, ProcessorIsReallyMeasured) {
  HostBackend backend({HostCpu()});
  const auto device = std::move(backend.Open("host-cpu").value());
  CheckRequest request = Request();
  request.memory_bytes = 3u << 20;
  const CheckResult result = GetParam().run(*device, request);
  EXPECT_EQ(result.verdict, kNone) << result.evidence;
  EXPECT_EQ(result.distribution->samples, kRateSamples);
  EXPECT_GT(result.distribution->min, 0);
}

INSTANTIATE_TEST_SUITE_P(
    Rates, RateTest,
    testing::Values(RateCase{"copy", &RunHbmCopy, "GB/s", Kind::kSlowMemory},
                    RateCase{"scale", &RunHbmScale, "GB/s", Kind::kSlowMemory},
                    RateCase{"add", &RunHbmAdd, "GB/s", Kind::kSlowMemory},
                    RateCase{"triad", &RunHbmTriad, "GB/s", Kind::kSlowMemory},
                    RateCase{"dot", &RunHbmDot, "GB/s", Kind::kSlowMemory},
                    RateCase{"up", &RunHostToDevice, "GB/s", Kind::kSlowHost},
                    RateCase{"down", &RunDeviceToHost, "GB/s", Kind::kSlowHost},
                    RateCase{"latency", &RunLaunchLatency, "us", Kind::kErrors}),
    [](const auto& param) { return std::string(param.param.name); });

TEST(CopyTest, FlippedBitOnTheWayFailsWithValueAndPlace) {
  Node node(Faulty({Of(Kind::kCorruptHost)}));
  for (const RunCheck run : {&RunHostToDevice, &RunDeviceToHost}) {
    const CheckResult result = run(node[0], Request());
    EXPECT_EQ(result.verdict, kFail);
    EXPECT_THAT(result.evidence, HasSubstr("wrong data: value 4096 is "));
  }
}

TEST(PeerToPeerTest, SoundNodeNamesEachPeer) {
  Node node(Sound(3));
  const auto results = RunPeerToPeer(node.devices(), Request());
  EXPECT_THAT(Verdicts(results), ElementsAre(kNone, kNone, kNone));
  EXPECT_THAT(results[1].evidence, HasSubstr("p5 to 0 3"));
  EXPECT_NEAR(results[1].distribution->p5, 380, 5);
}

TEST(PeerToPeerTest, CorruptingDeviceFailsAloneAndItsPeersKeepTheirRate) {
  Node node({{}, {}, {Of(Kind::kCorruptPeer)}, {}});
  const auto results = RunPeerToPeer(node.devices(), Request());
  EXPECT_THAT(Verdicts(results), ElementsAre(kNone, kNone, kFail, kNone));
  EXPECT_THAT(results[2].evidence, HasSubstr("copy from 0 to 2: wrong data"));
}

TEST(PeerToPeerTest, SlowLinkCountsAgainstItsDeviceOnly) {
  Node node({{}, {Of(Kind::kSlowLink, 50)}, {}, {}});
  const auto results = RunPeerToPeer(node.devices(), Request());
  EXPECT_NEAR(results[0].distribution->p5, 380, 5);
  EXPECT_NEAR(results[1].distribution->p5, 190, 5);
  EXPECT_THAT(results[0].evidence, HasSubstr("2 copies slow by the peer's fault"));
}

TEST(PeerToPeerTest, LinkThatIsDownGoesThroughTheHostAndIsSaid) {
  Node node({{}, {Of(Kind::kLinkDown)}, {}, {}});
  const auto results = RunPeerToPeer(node.devices(), Request());
  EXPECT_LT(results[1].distribution->max, 30);
  EXPECT_THAT(results[1].evidence, HasSubstr("no direct path to 3 peers"));
  EXPECT_GT(results[0].distribution->min, 370);
}

TEST(PeerToPeerTest, DeviceThatCouldNotBeOpenedIsInconclusiveAndTheRestIsMeasured) {
  Node node(Sound(3));
  node.devices()[1].device = nullptr;
  node.devices()[1].error = {DeviceErrorCode::kBusy, "device 1 is busy"};
  const auto results = RunPeerToPeer(node.devices(), Request());
  EXPECT_THAT(Verdicts(results), ElementsAre(kNone, VerdictKind::kInconclusive, kNone));
  EXPECT_EQ(results[1].evidence, "device 1 is busy");
}

TEST(PeerToPeerTest, ManyDevicesAreTriedAroundARing) {
  Node node(Sound(20));
  const auto results = RunPeerToPeer(node.devices(), Request());
  EXPECT_THAT(results[5].evidence, HasSubstr("p5 to 4 "));
  EXPECT_THAT(results[5].evidence, HasSubstr(", 6 "));
  EXPECT_THAT(results[5].evidence, testing::Not(HasSubstr(", 7 ")));
}

TEST(CollectiveTest, SumsAreExactForAnyNumberOfDevices) {
  for (std::size_t n = 2; n <= 9; ++n) {
    Node node(Sound(n));
    for (const CheckResult& result : RunCollective(node.devices(), Request())) {
      EXPECT_EQ(result.verdict, kNone) << n << ": " << result.evidence;
      EXPECT_NEAR(result.distribution->p5, 470, 6);
    }
  }
}

TEST(CollectiveTest, CorruptingMemberFailsAndTheRingClosesWithoutIt) {
  Node node({{}, {}, {Of(Kind::kCorruptPeer)}, {}});
  const auto results = RunCollective(node.devices(), Request());
  EXPECT_THAT(Verdicts(results), ElementsAre(kNone, kNone, kFail, kNone));
  EXPECT_THAT(results[0].evidence, HasSubstr("over 3 devices"));
  EXPECT_THAT(results[2].evidence, HasSubstr("copies of this device deliver wrong data"));
}

TEST(CollectiveTest, MemberThatVanishesLeavesAllInconclusive) {
  Node node({{}, {Of(Kind::kVanish)}});
  EXPECT_THAT(Verdicts(RunCollective(node.devices(), Request())),
              ElementsAre(VerdictKind::kInconclusive, VerdictKind::kInconclusive));
}

TEST(StressTest, SoundDevicePassesAndSaysWhatItCouldNotRead) {
  Node node(Sound(1));
  const CheckResult result = RunStress(node[0], Request());
  EXPECT_EQ(result.verdict, VerdictKind::kPass) << result.evidence;
  EXPECT_THAT(result.evidence, HasSubstr("power unknown"));
  EXPECT_THAT(result.evidence, HasSubstr("uncorrected errors 0 -> 0"));
}

TEST(StressTest, ErrorsCountedUnderLoadFail) {
  HostFault errors = Of(Kind::kErrors);
  errors.count = 3;
  Node node({{errors}, {Of(Kind::kSkip)}});
  const CheckResult result = RunStress(node[0], Request());
  EXPECT_EQ(result.verdict, kFail);
  EXPECT_THAT(result.evidence, HasSubstr("uncorrected errors 0 -> 3"));
  EXPECT_EQ(RunStress(node[1], Request()).verdict, kFail);
}

TEST(StressTest, ErrorsThatEarlierChecksOfTheRunBroughtUpCountToo) {
  HostFault errors = Of(Kind::kErrors);
  errors.count = 2;
  Node node({{errors}});
  ASSERT_NE(RunHbmTriad(node[0], Request()).verdict, VerdictKind::kInconclusive);
  CheckRequest request = Request();
  EXPECT_EQ(RunStress(node[0], request).verdict, VerdictKind::kPass) << "old errors are no load's";
  request.errors_at_start = 0;
  const CheckResult result = RunStress(node[0], request);
  EXPECT_EQ(result.verdict, kFail);
  EXPECT_THAT(result.evidence, HasSubstr("uncorrected errors 0 -> 2"));
}

TEST(StressTest, ProcessorComputesAsTheReferenceDoes) {
  HostBackend backend({HostCpu()});
  const CheckResult result = RunStress(*backend.Open("host-cpu").value(), Request());
  EXPECT_EQ(result.verdict, VerdictKind::kPass) << result.evidence;
  EXPECT_THAT(result.evidence, HasSubstr("uncorrected errors unknown -> unknown"));
}

// Over the fake vendor libraries, whose events say that everything takes half a millisecond.
class VendorRateTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const bool cuda = std::string(GetParam()) == "cuda";
    if ((cuda ? BIMETAL_HAS_CUDA : BIMETAL_HAS_HIP) == 0) GTEST_SKIP() << "built without it";
    const char* library = cuda ? BIMETAL_FAKE_CUDA : BIMETAL_FAKE_HIP;
    state_ = SoundFake(library);
    ASSERT_NE(state_, nullptr) << dlerror();
    auto loaded = cuda ? CudaBackend::Load({library}) : HipBackend::Load({library});
    ASSERT_TRUE(loaded.ok());
    backend_ = std::move(loaded.value());
    const auto infos = backend_->Enumerate();
    for (const DeviceInfo& info : infos.value()) {
      devices_.push_back(std::move(backend_->Open(info.id).value()));
      node_.push_back({info, devices_.back().get()});
    }
  }
  FakeState* state_ = nullptr;
  std::unique_ptr<Backend> backend_;
  std::vector<std::unique_ptr<Device>> devices_;
  std::vector<NodeDevice> node_;
};

TEST_P(VendorRateTest, RateIsBytesByTheTimeBetweenEvents) {
  const CheckResult result = RunHbmTriad(*devices_[0], Request());
  ASSERT_TRUE(result.distribution.has_value()) << result.evidence;
  // 80 % of the free 4 MiB in three arrays of whole pages.
  EXPECT_DOUBLE_EQ(result.distribution->p5, 3 * 1118208 / 500'000.0);
  EXPECT_THAT(RunHostToDevice(*devices_[0], Request()).evidence, HasSubstr("data exact"));
}

TEST_P(VendorRateTest, PeersAndRingAreExactAndAFlippedBitIsSeen) {
  CheckRequest request = Request();
  request.memory_bytes = 128u << 10;
  EXPECT_THAT(Verdicts(RunPeerToPeer(node_, request)), ElementsAre(kNone, kNone));
  EXPECT_THAT(Verdicts(RunCollective(node_, request)), ElementsAre(kNone, kNone));
  state_->corrupt_peer = true;
  EXPECT_THAT(Verdicts(RunPeerToPeer(node_, request)), ElementsAre(kFail, kFail));
  // What failed by itself is to blame for what is wrong between the two.
  node_[1].failed = true;
  EXPECT_THAT(Verdicts(RunPeerToPeer(node_, request)),
              ElementsAre(VerdictKind::kInconclusive, kFail));
  node_[1].failed = false;
  EXPECT_THAT(Verdicts(RunCollective(node_, request)), ElementsAre(kFail, kFail));
  state_->corrupt_host = true;
  EXPECT_EQ(RunDeviceToHost(*devices_[0], request).verdict, kFail);
}

INSTANTIATE_TEST_SUITE_P(Vendors, VendorRateTest, testing::Values("cuda", "hip"),
                         [](const auto& param) { return std::string(param.param); });

}  // namespace
}  // namespace bimetal::kernels
