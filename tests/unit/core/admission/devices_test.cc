// What holds device by device: quarantine, findings, busy devices, the path, expectations,
// breakers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/admission/decide.h"

namespace bimetal::core::admission {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const DeviceId kD0{"d0"}, kD1{"d1"}, kD2{"d2"};

// A node with three devices that our plug-in serves.
class DevicesTest : public ::testing::Test {
 protected:
  DevicesTest() {
    now = TimePoint{1'000'000'000};
    policy.by_device = true;
    facts.report =
        Report{.received = now, .boot_id = "boot-1", .fingerprint = "fp-1", .devices = {}};
    for (const auto& id : {kD0, kD1, kD2}) {
      facts.report->devices.push_back({.id = id, .health = DeviceHealth::kHealthy});
    }
  }

  const Decision& Step() {
    facts.report->received = now;
    decision = Decide(facts, memory, policy, now);
    memory = decision.memory;
    return decision;
  }
  // Starts the run that the decision asks for.
  void Start() {
    ASSERT_TRUE(decision.start_run) << decision.reason << ": " << decision.message;
    facts.pod = RunPod{.id = "pod-" + std::to_string(++pods_),
                       .created = now,
                       .ended = false,
                       .trouble = "",
                       .kind = decision.run_kind,
                       .devices = {decision.run_devices.begin(), decision.run_devices.end()}};
  }
  // It ends with Pass for each of its devices but these.
  const Decision& End(const std::map<DeviceId, Verdict>& others = {},
                      const std::string& capability = "") {
    admission::Run run{
        .id = facts.pod->id, .fingerprint = facts.report->fingerprint, .verdicts = {}};
    run.level = "L1";
    for (const auto& id : facts.pod->devices) {
      const auto it = others.find(id);
      run.verdicts.push_back({.check = "memory",
                              .device = id,
                              .verdict = it == others.end() ? Verdict::kPass : it->second,
                              .evidence = "evidence",
                              .capability = capability});
    }
    facts.run = run;
    Step();
    facts.run.reset();
    facts.pod.reset();
    return Step();
  }
  void Admit() {
    Step();
    Start();
    ASSERT_EQ(End().reason, "Passed");
  }
  ReportedDevice& Device(std::size_t i) { return facts.report->devices[i]; }
  void Find(const std::string& code, Effect effect, const DeviceId& device,
            const std::string& event) {
    facts.report->faults.push_back({.code = code,
                                    .device = device,
                                    .effect = effect,
                                    .event = event,
                                    .evidence = "a line; do this"});
  }

  TimePoint now;
  Facts facts;
  Memory memory;
  Policy policy;
  Decision decision;

 private:
  int pods_ = 0;
};

TEST_F(DevicesTest, OneFailedDeviceLeavesTheOthersOpen) {
  Step();
  Start();
  End({{kD1, Verdict::kFail}});
  EXPECT_EQ(decision.phase, Phase::kQuarantined);
  EXPECT_EQ(decision.reason, "DeviceQuarantined");
  EXPECT_THAT(decision.message, HasSubstr("memory on d1: evidence; repair it, then run bimetal"));
  EXPECT_THAT(decision.open, ElementsAre(kD0, kD2));
  EXPECT_FALSE(decision.shut);
}

TEST_F(DevicesTest, UnderAVendorsPluginOrByProfileOneFailedDeviceShutsAll) {
  Step();
  Start();
  End({{kD1, Verdict::kFail}});
  policy.quarantine_node = true;
  EXPECT_THAT(Step().open, IsEmpty());
  EXPECT_EQ(decision.reason, "CheckFailed");
  EXPECT_TRUE(decision.shut);
  policy.quarantine_node = false;
  policy.by_device = false;
  EXPECT_THAT(Step().open, IsEmpty());
}

TEST_F(DevicesTest, QuarantineStaysWithTheDeviceThroughReRegistrationOfItsNode) {
  Step();
  Start();
  End({{kD1, Verdict::kFail}});
  facts.node_exists = false;
  Step();
  facts.node_exists = true;
  EXPECT_THAT(Step().open, ElementsAre(kD0, kD2));
}

TEST_F(DevicesTest, ANewDeviceOfTheSameKindIsUnprovenAndRunAlone) {
  Admit();
  Device(2).id = DeviceId{"d9"};
  Step();
  EXPECT_THAT(decision.open, ElementsAre(kD0, kD1));
  EXPECT_THAT(decision.run_devices, ElementsAre(DeviceId{"d9"}));
  EXPECT_EQ(decision.reason, "PartlyOpen");
  Start();
  EXPECT_EQ(End().open.size(), 3U);
}

TEST_F(DevicesTest, APartitionChangeClosesTheGateAgain) {
  Admit();
  facts.report->fingerprint = "fp-2";  // a partition mode is part of it
  EXPECT_TRUE(Step().shut);
  EXPECT_EQ(decision.reason, "FingerprintChanged");
  EXPECT_EQ(decision.run_devices.size(), 3U);
}

TEST_F(DevicesTest, AnInconclusiveDeviceIsWithheldAndTriedAloneAgain) {
  Step();
  Start();
  End({{kD2, Verdict::kInconclusive}});
  EXPECT_EQ(decision.phase, Phase::kAdmitted);
  EXPECT_EQ(decision.reason, "PartlyOpen");
  EXPECT_THAT(decision.message, HasSubstr("next try at"));
  EXPECT_THAT(decision.open, ElementsAre(kD0, kD1));
  now = now + Seconds(10);
  EXPECT_THAT(Step().run_devices, ElementsAre(kD2));
}

TEST_F(DevicesTest, AnEventThatCordonsClosesTheDeviceOnceUntilARunBegunAfterItPasses) {
  Admit();
  Find("xid-79", Effect::kCordon, kD0, "e1");
  Step();
  EXPECT_THAT(decision.open, ElementsAre(kD1, kD2));
  EXPECT_EQ(decision.reason, "DeviceCordoned");
  EXPECT_THAT(decision.message, HasSubstr("xid-79: a line; do this"));
  EXPECT_THAT(decision.run_devices, ElementsAre(kD0));
  Start();
  End();
  EXPECT_EQ(decision.reason, "Passed") << "the event is still told, and was acted on";
  EXPECT_FALSE(decision.start_run);
  Find("xid-79", Effect::kCordon, kD0, "e2");
  EXPECT_TRUE(Step().start_run) << "the same again is another event";
}

TEST_F(DevicesTest, AnEventDuringARunVoidsIt) {
  Step();
  Start();
  Find("xid-48", Effect::kCordon, kD1, "e1");
  facts.run = admission::Run{.id = facts.pod->id,
                             .fingerprint = "fp-1",
                             .verdicts = {{"memory", kD0, Verdict::kPass, ""},
                                          {"memory", kD1, Verdict::kPass, ""},
                                          {"memory", kD2, Verdict::kPass, ""}}};
  Step();
  EXPECT_EQ(decision.end_run, "pod-1");
  EXPECT_THAT(decision.open, IsEmpty());
}

TEST_F(DevicesTest, AStateThatCordonsIsNotRunInVainAndIsRunWhenItHasGone) {
  Admit();
  Find("row-remap-pending", Effect::kCordon, kD0, "");
  Step();
  EXPECT_FALSE(decision.start_run);
  EXPECT_THAT(decision.open, ElementsAre(kD1, kD2));
  facts.report->faults.clear();
  Step();
  EXPECT_THAT(decision.run_devices, ElementsAre(kD0));
  Start();
  EXPECT_EQ(End().reason, "Passed");
}

TEST_F(DevicesTest, EventsAreForgottenWithTheirBoot) {
  Admit();
  Find("xid-31", Effect::kRevalidate, kD0, "e1");
  Step();
  EXPECT_THAT(decision.run_devices, ElementsAre(kD0));
  Start();
  End();
  EXPECT_EQ(memory.handled_events.size(), 1U);
  facts.report->faults.clear();
  facts.report->boot_id = "boot-2";
  Step();
  EXPECT_THAT(memory.handled_events, IsEmpty());
}

TEST_F(DevicesTest, ABusyNodeIsRevalidatedDeviceByDeviceAsItsJobsEnd) {
  Admit();
  for (std::size_t i = 0; i < 3; ++i) Device(i).in_use = true;
  facts.revalidate = "now";
  Step();
  EXPECT_FALSE(decision.start_run);
  EXPECT_EQ(decision.reason, "DevicesBusy");
  EXPECT_THAT(decision.open, IsEmpty()) << "nothing new starts, the jobs go on";
  Device(1).in_use = false;
  Step();
  EXPECT_THAT(decision.run_devices, ElementsAre(kD1));
  Start();
  End();
  EXPECT_THAT(decision.open, ElementsAre(kD1));
  EXPECT_THAT(decision.message, HasSubstr("when the job on d0, d2 has ended"));
  Device(0).in_use = Device(2).in_use = false;
  Step();
  EXPECT_THAT(decision.run_devices, ElementsAre(kD0, kD2));
}

TEST_F(DevicesTest, AfterTheKernelsAPodProvesThePathAndOnlyThenJobsComeIn) {
  policy.path_check = true;
  Step();
  Start();
  End();
  EXPECT_EQ(decision.reason, "ProvingPath");
  EXPECT_EQ(decision.run_kind, RunKind::kPath);
  EXPECT_TRUE(decision.shut);
  EXPECT_THAT(decision.open, IsEmpty());
  EXPECT_EQ(decision.offer.size(), 3U) << "the plug-in has something to give";
  Start();
  facts.pod->devices = {kD1};  // it sees the one that it was given
  EXPECT_EQ(End().reason, "Passed");
  EXPECT_EQ(decision.open.size(), 3U);
  EXPECT_FALSE(decision.start_run);
}

TEST_F(DevicesTest, APathThatFailsIsInconclusiveAndTriedAgainThenNoMore) {
  policy.path_check = true;
  policy.retries = 1;
  Step();
  Start();
  End();
  for (const bool again : {true, false}) {
    Start();
    facts.pod->trouble = "Unschedulable: 0/3 nodes: Insufficient nvidia.com/gpu";
    now = now + policy.run_timeout;
    Step();
    facts.pod.reset();
    Step();
    EXPECT_EQ(decision.phase, Phase::kInconclusive);
    EXPECT_EQ(decision.reason, "PathFailed");
    EXPECT_THAT(decision.message, HasSubstr("Insufficient nvidia.com/gpu"));
    EXPECT_TRUE(decision.shut);
    EXPECT_EQ(memory.path.next.has_value(), again);
    Device(0).in_use = true;  // the kubelet still tells of our own pod: that proves nothing
    EXPECT_THAT(Step().open, IsEmpty());
    Device(0).in_use = false;
    now = now + Seconds(10);
    Step();
    EXPECT_EQ(decision.start_run, again);
  }
  facts.revalidate = "mended";
  EXPECT_TRUE(Step().start_run);
}

TEST_F(DevicesTest, APathPodThatSeesAStrangerOrNothingProvesNothing) {
  policy.path_check = true;
  Step();
  Start();
  End();
  Start();
  facts.run = admission::Run{.id = facts.pod->id,
                             .fingerprint = "fp-1",
                             .verdicts = {{"inventory", DeviceId{"other"}, Verdict::kPass, ""}}};
  Step();
  facts.run.reset();
  facts.pod.reset();
  Step();
  EXPECT_EQ(decision.reason, "PathFailed");
  EXPECT_THAT(decision.message, HasSubstr("given device other"));
}

TEST_F(DevicesTest, ThePathToTheSoundDevicesIsProvenBesideOneThatFailed) {
  policy.path_check = true;
  Step();
  Start();
  End({{kD1, Verdict::kFail}});
  EXPECT_EQ(decision.reason, "CheckFailed");
  EXPECT_THAT(decision.message, HasSubstr("the path of jobs to the other devices is being proven"));
  EXPECT_THAT(decision.offer, ElementsAre(kD0, kD2));
  Start();
  facts.run = admission::Run{.id = facts.pod->id,
                             .fingerprint = "fp-1",
                             .verdicts = {{"inventory", kD0, Verdict::kPass, ""},
                                          {"inventory", kD1, Verdict::kInconclusive, "hangs"}}};
  Step();
  EXPECT_EQ(decision.reason, "DeviceQuarantined");
  EXPECT_THAT(decision.open, ElementsAre(kD0, kD2));
}

TEST_F(DevicesTest, ThePathIsTakenAsItIsWhereJobsHoldDevicesAlready) {
  policy.path_check = true;
  Device(0).in_use = true;
  Step();
  EXPECT_THAT(decision.run_devices, ElementsAre(kD1, kD2));
  Start();
  End();
  EXPECT_THAT(decision.open, ElementsAre(kD1, kD2));
}

TEST_F(DevicesTest, AMismatchWithTheProfileFailsAsInventoryUntilItIsMendedAndRun) {
  Admit();
  policy.expect.devices = 4;
  Step();
  EXPECT_EQ(decision.phase, Phase::kQuarantined);
  EXPECT_THAT(decision.message, HasSubstr("the profile expects devices: 4, found 3"));
  EXPECT_EQ(memory.records[kD0].failed_check, "inventory");
  EXPECT_FALSE(decision.start_run) << "no run can mend it";
  policy.expect.devices = 3;
  Step();
  EXPECT_THAT(decision.open, IsEmpty());
  Start();
  EXPECT_EQ(End().reason, "Passed");
}

TEST_F(DevicesTest, ExpectationsOfOneDeviceFailThatDevice) {
  policy.expect.links = 4;
  policy.expect.partition = "SPX/NPS1";
  policy.expect.firmware = {{"vbios", "1"}};
  for (std::size_t i = 0; i < 3; ++i) {
    Device(i).links_up = 4;
    Device(i).partition = "SPX/NPS1";
    Device(i).firmware = {{"vbios", "1"}, {"other", "7"}};
  }
  Admit();
  Device(0).links_up = 3;
  EXPECT_THAT(Step().message, HasSubstr("direct links up: 4, found 3"));
  EXPECT_THAT(decision.open, ElementsAre(kD1, kD2));
  Device(0).links_up = 4;
  Device(1).firmware["vbios"] = "2";
  Step();
  EXPECT_EQ(memory.records[kD1].failed_evidence, "the profile expects firmware vbios 1, found 2");
  policy.expect.driver_version = "550";
  facts.report->driver_version = "535";
  EXPECT_THAT(Step().open, IsEmpty());
}

TEST_F(DevicesTest, WhatCannotBeReadIsNeitherRightNorWrong) {
  policy.expect.links = 4;
  for (std::size_t i = 0; i < 3; ++i) {
    Device(i).links_up = 0;
    Device(i).unread["links"] = "unknown: no library";
  }
  Step();
  Start();
  End();
  EXPECT_EQ(decision.phase, Phase::kInconclusive);
  EXPECT_EQ(decision.reason, "InventoryUnknown");
  EXPECT_TRUE(decision.shut);
}

TEST_F(DevicesTest, ABreakerLeavesAnExpiredPassInForceAndHoldsAnUnprovenNode) {
  policy.expires_after = Minutes(10);
  Admit();
  now = now + Minutes(10);
  facts.breaker = facts.breaker_planned = "3 nodes failed check memory; way back";
  Step();
  EXPECT_EQ(decision.open.size(), 3U);
  EXPECT_EQ(decision.waits, Decision::Waits::kHeld);
  EXPECT_THAT(decision.message, HasSubstr("not run again yet: 3 nodes failed"));
  facts.report->fingerprint = "fp-2";
  Step();
  EXPECT_TRUE(decision.shut);
  EXPECT_EQ(decision.reason, "BreakerOpen");
  EXPECT_FALSE(decision.start_run);
  facts.revalidate = "a person has looked";
  EXPECT_TRUE(Step().start_run);
}

TEST_F(DevicesTest, ABreakerNeverHoldsANewNodeOrAFailedDevice) {
  facts.breaker = facts.breaker_planned = "breaker";
  EXPECT_TRUE(Step().start_run);
  Start();
  End({{kD0, Verdict::kFail}});
  facts.report->boot_id = "boot-2";
  EXPECT_TRUE(Step().start_run) << "it has failed already; a run can only make it better";
}

TEST_F(DevicesTest, WithoutASlotANodeWaitsForItsTurn) {
  facts.no_slot = "16 validation runs under way";
  Step();
  EXPECT_EQ(decision.reason, "RunQueued");
  EXPECT_EQ(decision.waits, Decision::Waits::kQueued);
  facts.no_slot.clear();
  EXPECT_TRUE(Step().start_run);
}

TEST_F(DevicesTest, CapabilitiesAreWhatEveryOpenDeviceHasPassed) {
  Step();
  Start();
  End({}, "fp8-ocp");
  EXPECT_THAT(decision.capabilities, ElementsAre("fp8-ocp"));
  facts.hold = true;
  EXPECT_THAT(Step().capabilities, IsEmpty()) << "published only while it is open";
  facts.hold = false;
  Find("xid-79", Effect::kCordon, kD0, "e1");
  Step();
  Start();
  End({{kD0, Verdict::kNoProfile}}, "fp8-ocp");
  EXPECT_THAT(decision.capabilities, IsEmpty()) << "d0 has not proven it this time";
}

TEST_F(DevicesTest, AHigherLevelOfTheProfileAsksForANewPass) {
  Admit();
  policy.level = "L1";
  EXPECT_FALSE(Step().start_run);
  policy.level = "L2";
  Step();
  EXPECT_TRUE(decision.start_run);
  EXPECT_EQ(decision.reason, "ProfileChanged");
}

TEST_F(DevicesTest, DegradedIsAFailureWhereTheProfileSaysSo) {
  policy.quarantine_degraded = true;
  Step();
  Start();
  End({{kD2, Verdict::kDegraded}});
  EXPECT_EQ(decision.reason, "DeviceQuarantined");
  EXPECT_THAT(decision.open, ElementsAre(kD0, kD1));
}

}  // namespace
}  // namespace bimetal::core::admission
