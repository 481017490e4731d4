#include "core/admission/decide.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace bimetal::core::admission {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// One vendor of one node, with an operator that does what the decisions say.
class AdmissionTest : public ::testing::Test {
 protected:
  AdmissionTest() {
    now = TimePoint{1'000'000'000};
    Hear({"d0", "d1"});
  }

  void Hear(const std::vector<std::string>& devices, const std::string& boot = "boot-1",
            const std::string& fingerprint = "fp-1") {
    Report report{.received = now, .boot_id = boot, .fingerprint = fingerprint, .devices = {}};
    for (const auto& id : devices) {
      report.devices.push_back(
          ReportedDevice{.id = DeviceId{id}, .health = DeviceHealth::kHealthy});
    }
    facts.report = report;
  }
  void HearAgain() { facts.report->received = now; }

  const Decision& Step() {
    decision = Decide(facts, memory, policy, now);
    const Decision again = Decide(facts, decision.memory, policy, now);
    EXPECT_EQ(again.memory, decision.memory);
    EXPECT_EQ(again.phase, decision.phase);
    EXPECT_EQ(again.reason, decision.reason);
    EXPECT_EQ(again.message, decision.message);
    EXPECT_EQ(again.open, decision.open);
    EXPECT_EQ(again.start_run, decision.start_run);
    EXPECT_EQ(again.end_run, decision.end_run);
    EXPECT_EQ(again.wake, decision.wake);
    EXPECT_GT(decision.wake.value_or(now + Millis{1}), now);
    memory = decision.memory;
    return decision;
  }
  void StartPod(const std::string& id) {
    facts.pod = RunPod{.id = id, .created = now, .ended = false, .trouble = ""};
  }
  void HandIn(Verdict d0, Verdict d1, const std::string& fingerprint = "fp-1") {
    facts.run = admission::Run{.id = facts.pod->id,
                               .fingerprint = fingerprint,
                               .verdicts = {{"memory", DeviceId{"d0"}, d0, "evidence"},
                                            {"memory", DeviceId{"d1"}, d1, "evidence"}}};
  }
  // Runs a validation with these verdicts to its end; the pod is gone afterwards.
  const Decision& Validate(Verdict d0, Verdict d1, const std::string& fingerprint = "fp-1") {
    EXPECT_TRUE(Step().start_run) << decision.reason;
    StartPod("pod-" + std::to_string(++pods));
    EXPECT_FALSE(Step().start_run);
    HandIn(d0, d1, fingerprint);
    EXPECT_EQ(Step().end_run, facts.pod->id);
    facts.pod.reset();
    facts.run.reset();
    return Step();
  }
  void Admit() { ASSERT_EQ(Validate(Verdict::kPass, Verdict::kPass).phase, Phase::kAdmitted); }
  void Advance(Millis by) { now = now + by; }
  std::vector<DeviceId> Failed() const {
    std::vector<DeviceId> out;
    for (const auto& [id, record] : memory.records) {
      if (!record.failed_check.empty()) out.push_back(id);
    }
    return out;
  }

  TimePoint now;
  Facts facts;
  Memory memory;
  Policy policy;
  Decision decision;
  int pods = 0;
};

TEST_F(AdmissionTest, WithoutAReportTheNodeIsShutAndWaits) {
  facts.report.reset();
  Step();
  EXPECT_EQ(decision.phase, Phase::kDiscovered);
  EXPECT_EQ(decision.reason, "WaitingForReport");
  EXPECT_TRUE(decision.shut);
  EXPECT_FALSE(decision.start_run);
}

// An operator that took over from one on the node that died.
TEST_F(AdmissionTest, ANodeThatWasHeardBeforeTheOperatorsStartAndNotSinceIsLost) {
  memory.seen_fingerprint = "f1";
  facts.report.reset();
  Step();
  EXPECT_EQ(decision.phase, Phase::kLost);
  EXPECT_EQ(decision.reason, "AgentSilent");
  EXPECT_TRUE(decision.shut);
  EXPECT_FALSE(decision.start_run);
}

TEST_F(AdmissionTest, ZeroDevicesAreNotValidated) {
  Hear({});
  Step();
  EXPECT_EQ(decision.reason, "NoDevices");
  EXPECT_TRUE(decision.shut);
  EXPECT_FALSE(decision.start_run);
}

TEST_F(AdmissionTest, OpensOnlyAfterAPass) {
  EXPECT_TRUE(Step().shut);
  EXPECT_EQ(decision.phase, Phase::kValidating);
  EXPECT_EQ(decision.reason, "NotValidated");
  StartPod("pod");
  EXPECT_TRUE(Step().shut);
  HandIn(Verdict::kPass, Verdict::kPass);
  Step();
  EXPECT_FALSE(decision.shut);
  EXPECT_EQ(decision.phase, Phase::kAdmitted);
  EXPECT_EQ(decision.reason, "Passed");
  EXPECT_THAT(decision.open, ElementsAre(DeviceId{"d0"}, DeviceId{"d1"}));
  EXPECT_EQ(decision.end_run, "pod");
}

TEST_F(AdmissionTest, DegradedAndNoProfileCountAsPassWithAMessage) {
  Validate(Verdict::kDegraded, Verdict::kNoProfile);
  EXPECT_EQ(decision.phase, Phase::kAdmitted);
  EXPECT_THAT(decision.message, HasSubstr("degraded: memory on d0"));
  EXPECT_THAT(decision.message, HasSubstr("no profile: memory on d1"));
}

TEST_F(AdmissionTest, ANewBootShutsAndValidatesAgain) {
  Admit();
  Hear({"d0", "d1"}, "boot-2");
  Step();
  EXPECT_TRUE(decision.shut);
  EXPECT_TRUE(decision.start_run);
  EXPECT_EQ(decision.reason, "Rebooted");
  EXPECT_THAT(decision.open, IsEmpty());
}

TEST_F(AdmissionTest, ANewFingerprintShutsAndValidatesAgain) {
  Admit();
  Hear({"d0", "d1"}, "boot-1", "fp-2");
  Step();
  EXPECT_TRUE(decision.shut);
  EXPECT_TRUE(decision.start_run);
  EXPECT_EQ(decision.reason, "FingerprintChanged");
  EXPECT_EQ(Validate(Verdict::kPass, Verdict::kPass, "fp-2").phase, Phase::kAdmitted);
}

TEST_F(AdmissionTest, ARunThatTheNodeRebootedUnderProvesNothing) {
  Step();
  StartPod("old");
  Step();
  Hear({"d0", "d1"}, "boot-2");
  HandIn(Verdict::kPass, Verdict::kPass);  // handed in after the reboot
  Step();
  EXPECT_EQ(decision.end_run, "old");
  EXPECT_TRUE(decision.shut);
  EXPECT_FALSE(memory.records[DeviceId{"d0"}].passed_at);
}

TEST_F(AdmissionTest, AFailQuarantinesAndNamesTheCheck) {
  Validate(Verdict::kPass, Verdict::kFail);
  EXPECT_EQ(decision.phase, Phase::kQuarantined);
  EXPECT_EQ(decision.reason, "CheckFailed");
  EXPECT_THAT(decision.message, HasSubstr("memory on d1: evidence"));
  EXPECT_TRUE(decision.shut);
  EXPECT_THAT(decision.open, IsEmpty());
  EXPECT_THAT(Failed(), ElementsAre(DeviceId{"d1"}));
  Advance(Minutes(60));
  HearAgain();
  EXPECT_FALSE(Step().start_run);  // nothing clears it by itself
  EXPECT_EQ(decision.phase, Phase::kQuarantined);
}

TEST_F(AdmissionTest, QuarantineSurvivesARestartAndALostNode) {
  Validate(Verdict::kPass, Verdict::kFail);
  facts.report.reset();  // the operator has restarted and heard nothing yet
  EXPECT_EQ(Step().phase, Phase::kQuarantined);
  facts.node_exists = false;
  EXPECT_EQ(Step().reason, "NodeGone");
  facts.node_exists = true;  // added again under the same name
  Hear({"d0", "d1"});
  Step();
  EXPECT_EQ(decision.phase, Phase::kQuarantined);
  EXPECT_TRUE(decision.shut);
}

TEST_F(AdmissionTest, ARestartAloneNeitherClearsAVerdictNorStartsTheTriesAnew) {
  Validate(Verdict::kPass, Verdict::kFail);
  memory.seen_boot_id.clear();
  memory.seen_fingerprint.clear();
  EXPECT_FALSE(Step().start_run);
  EXPECT_EQ(decision.phase, Phase::kQuarantined);

  memory = Memory{};
  policy.retries = 0;
  Validate(Verdict::kInconclusive, Verdict::kPass);
  memory.seen_boot_id.clear();
  memory.seen_fingerprint.clear();
  EXPECT_FALSE(Step().start_run);
  EXPECT_EQ(decision.reason, "RetriesExhausted");
}

TEST_F(AdmissionTest, ARestartDuringARunGivesItUpAndMakesAnother) {
  Step();
  StartPod("pod");
  HandIn(Verdict::kPass, Verdict::kPass);
  memory.seen_boot_id.clear();  // under which boot this pod began is not known any more
  memory.seen_fingerprint.clear();
  EXPECT_EQ(Step().end_run, "pod");
  EXPECT_TRUE(decision.shut);
  facts.pod.reset();
  facts.run.reset();
  EXPECT_TRUE(Step().start_run);
}

TEST_F(AdmissionTest, ANewBootTestsAQuarantinedNodeButOnlyAPassOpensIt) {
  Validate(Verdict::kPass, Verdict::kFail);
  Hear({"d0", "d1"}, "boot-2");
  EXPECT_TRUE(Step().start_run);
  EXPECT_EQ(decision.phase, Phase::kQuarantined);
  EXPECT_EQ(Validate(Verdict::kFail, Verdict::kPass).phase, Phase::kQuarantined);
  EXPECT_THAT(Failed(), ElementsAre(DeviceId{"d0"}));  // d1 has passed meanwhile
  EXPECT_FALSE(Step().start_run);
  Hear({"d0", "d1"}, "boot-3");
  EXPECT_EQ(Validate(Verdict::kPass, Verdict::kPass).phase, Phase::kAdmitted);
  EXPECT_THAT(Failed(), IsEmpty());
}

TEST_F(AdmissionTest, RevalidateIsTheWayOutOfQuarantine) {
  Validate(Verdict::kPass, Verdict::kFail);
  facts.revalidate = "after-repair";
  EXPECT_EQ(Validate(Verdict::kPass, Verdict::kPass).phase, Phase::kAdmitted);
  EXPECT_FALSE(Step().start_run);  // acted on once
  facts.revalidate = "";
  EXPECT_FALSE(Step().start_run);  // taking the word back asks for nothing
}

TEST_F(AdmissionTest, AFailedDeviceThatWasTakenOutIsRememberedForItsReturn) {
  Validate(Verdict::kPass, Verdict::kFail);
  Hear({"d0"}, "boot-2", "fp-2");
  EXPECT_TRUE(Step().start_run);
  StartPod("p");
  facts.run = admission::Run{.id = "p",
                             .fingerprint = "fp-2",
                             .verdicts = {{"memory", DeviceId{"d0"}, Verdict::kPass, ""}}};
  EXPECT_EQ(Step().phase, Phase::kAdmitted);
  facts.pod.reset();
  facts.run.reset();
  Hear({"d0", "d1"}, "boot-3", "fp-3");
  EXPECT_EQ(Step().phase, Phase::kQuarantined);
}

TEST_F(AdmissionTest, RevalidatingAnAdmittedNodeShutsItWhileTheRunHasTheDevices) {
  Admit();
  facts.revalidate = "now";
  EXPECT_TRUE(Step().shut);
  EXPECT_EQ(decision.reason, "Revalidating");
  // Busy devices: not rechecked, so the node keeps its state.
  Validate(Verdict::kInconclusive, Verdict::kPass);
  EXPECT_EQ(decision.phase, Phase::kAdmitted);
  EXPECT_FALSE(decision.shut);
  EXPECT_THAT(decision.message, HasSubstr("not rechecked: memory on d0"));
}

TEST_F(AdmissionTest, InconclusiveRunsAreRetriedWithGrowingPausesAndThenNoMore) {
  policy.retries = 3;
  for (const std::int64_t pause : {10, 20, 40}) {
    Validate(Verdict::kInconclusive, Verdict::kPass);
    EXPECT_EQ(decision.phase, Phase::kInconclusive);
    EXPECT_EQ(decision.reason, "RunInconclusive");
    EXPECT_TRUE(decision.shut);
    EXPECT_EQ(memory.next_run, now + Seconds(pause));
    EXPECT_FALSE(decision.start_run);
    Advance(Seconds(pause));
    HearAgain();
  }
  Validate(Verdict::kInconclusive, Verdict::kPass);
  EXPECT_EQ(decision.reason, "RetriesExhausted");
  EXPECT_FALSE(memory.next_run);
  Advance(Minutes(600));
  HearAgain();
  EXPECT_FALSE(Step().start_run);
  facts.revalidate = "again";
  EXPECT_EQ(Validate(Verdict::kPass, Verdict::kPass).phase, Phase::kAdmitted);
}

TEST_F(AdmissionTest, PausesStopGrowingAtTenMinutes) {
  policy.retries = 100;
  for (int i = 0; i < 20; ++i) {
    Validate(Verdict::kInconclusive, Verdict::kPass);
    EXPECT_LE(*memory.next_run - now, Minutes(10));
    now = *memory.next_run;
    HearAgain();
  }
  EXPECT_EQ(memory.inconclusive_runs, 20);
}

TEST_F(AdmissionTest, ANewBootStartsTheTriesAnew) {
  policy.retries = 0;
  Validate(Verdict::kInconclusive, Verdict::kPass);
  EXPECT_EQ(decision.reason, "RetriesExhausted");
  Hear({"d0", "d1"}, "boot-2");
  EXPECT_TRUE(Step().start_run);
  EXPECT_EQ(memory.inconclusive_runs, 0);
}

TEST_F(AdmissionTest, APodThatNeverAnswersIsInconclusiveWithItsTrouble) {
  Step();
  StartPod("pod");
  facts.pod->trouble = "image cannot be pulled: no such image";
  Step();
  EXPECT_THAT(decision.message, HasSubstr("image cannot be pulled"));
  EXPECT_EQ(decision.phase, Phase::kValidating);
  Advance(policy.run_timeout);
  HearAgain();
  Step();
  EXPECT_EQ(decision.end_run, "pod");
  EXPECT_EQ(decision.phase, Phase::kInconclusive);
  EXPECT_THAT(decision.message, HasSubstr("no result within 2m: image cannot be pulled"));
  EXPECT_EQ(memory.inconclusive_runs, 1);
}

TEST_F(AdmissionTest, APodThatEndsWithoutResultHasFifteenSecondsMore) {
  Step();
  StartPod("pod");
  Step();
  Advance(Seconds(20));
  HearAgain();
  facts.pod->ended = true;
  EXPECT_EQ(Step().phase, Phase::kValidating);
  Advance(Millis{14'999});
  EXPECT_EQ(Step().phase, Phase::kValidating);
  EXPECT_EQ(decision.wake, now + Millis{1});
  Advance(Millis{1});
  EXPECT_EQ(Step().phase, Phase::kInconclusive);
  EXPECT_THAT(decision.message, HasSubstr("ended without a result"));
}

TEST_F(AdmissionTest, AResultOfAnotherOrALateRunIsIgnored) {
  Step();
  StartPod("pod");
  HandIn(Verdict::kPass, Verdict::kPass);
  facts.run->id = "other";
  EXPECT_EQ(Step().phase, Phase::kValidating);
  Advance(policy.run_timeout);
  HearAgain();
  Step();  // given up
  facts.run->id = "pod";
  Step();
  EXPECT_FALSE(memory.records[DeviceId{"d0"}].passed_at);
  EXPECT_EQ(memory.inconclusive_runs, 1);
  facts.pod.reset();
  Step();  // no pod: nobody may speak
  EXPECT_FALSE(memory.records[DeviceId{"d0"}].passed_at);
}

TEST_F(AdmissionTest, IncompleteOrForeignVerdictsAreInconclusive) {
  const auto judge = [&](std::vector<CheckVerdict> verdicts,
                         const std::string& fingerprint = "fp-1") {
    memory = Memory{};
    facts.pod.reset();
    facts.run.reset();
    Step();
    StartPod("pod");
    facts.run =
        admission::Run{.id = "pod", .fingerprint = fingerprint, .verdicts = std::move(verdicts)};
    return Step();
  };
  const CheckVerdict d0{"memory", DeviceId{"d0"}, Verdict::kPass, ""};
  const CheckVerdict d1{"memory", DeviceId{"d1"}, Verdict::kPass, ""};
  const CheckVerdict stranger{"memory", DeviceId{"d9"}, Verdict::kPass, ""};
  EXPECT_EQ(judge({d0, d1}).phase, Phase::kAdmitted);
  EXPECT_THAT(judge({d0}).message, HasSubstr("no verdict on device d1"));
  EXPECT_EQ(decision.phase, Phase::kInconclusive);
  EXPECT_THAT(judge({d0, d1, stranger}).message, HasSubstr("d9"));
  EXPECT_EQ(decision.phase, Phase::kInconclusive);
  EXPECT_THAT(judge({d0, d1}, "").message, HasSubstr("changed during the run"));
  EXPECT_EQ(decision.phase, Phase::kInconclusive);
  EXPECT_EQ(judge({d0, d1}, "fp-0").phase, Phase::kInconclusive);
  EXPECT_EQ(judge({}).phase, Phase::kInconclusive);
  policy.required_checks = {"memory", "integer"};
  EXPECT_THAT(judge({d0, d1}).message, HasSubstr("no verdict of integer on device d0"));
}

TEST_F(AdmissionTest, AProvenFailCountsEvenWhereTheRunIsIncomplete) {
  Step();
  StartPod("pod");
  facts.run =
      admission::Run{.id = "pod",
                     .fingerprint = "fp-1",
                     .verdicts = {{"memory", DeviceId{"d0"}, Verdict::kFail, "bit 3 flipped"}}};
  EXPECT_EQ(Step().phase, Phase::kQuarantined);
}

TEST_F(AdmissionTest, UnhealthyAndUnknownDevicesAreWithheldAndComeBack) {
  Admit();
  facts.report->devices[1].health = DeviceHealth::kUnhealthy;
  Step();
  EXPECT_EQ(decision.reason, "DeviceUnhealthy");
  EXPECT_THAT(decision.open, ElementsAre(DeviceId{"d0"}));
  EXPECT_FALSE(decision.shut);
  facts.report->devices[1].health = DeviceHealth::kUnknown;
  Step();
  EXPECT_EQ(decision.reason, "HealthUnknown");
  EXPECT_THAT(decision.open, ElementsAre(DeviceId{"d0"}));
  facts.report->devices[0].health = DeviceHealth::kUnknown;
  EXPECT_TRUE(Step().shut);
  for (auto& device : facts.report->devices) device.health = DeviceHealth::kHealthy;
  Step();
  EXPECT_EQ(decision.open.size(), 2U);
  EXPECT_FALSE(decision.start_run);
}

TEST_F(AdmissionTest, ASilentAgentShutsForNewWorkAndComesBackWithoutARun) {
  Admit();
  Advance(policy.stale_after);
  EXPECT_EQ(Step().phase, Phase::kAdmitted);
  EXPECT_EQ(decision.wake, now + Millis{1});
  Advance(Millis{1});
  Step();
  EXPECT_EQ(decision.phase, Phase::kLost);
  EXPECT_EQ(decision.reason, "AgentSilent");
  EXPECT_THAT(decision.open, IsEmpty());
  EXPECT_TRUE(decision.shut);
  HearAgain();
  Step();
  EXPECT_EQ(decision.phase, Phase::kAdmitted);
  EXPECT_FALSE(decision.start_run);
}

TEST_F(AdmissionTest, APassExpiresAndANewRunIsMade) {
  policy.expires_after = Minutes(10);
  policy.stale_after = Minutes(1000);
  Admit();
  EXPECT_EQ(decision.wake, now + Minutes(10));
  Advance(Minutes(10));
  Step();
  EXPECT_EQ(decision.reason, "Expired");
  EXPECT_TRUE(decision.shut);
  EXPECT_TRUE(decision.start_run);
  EXPECT_EQ(Validate(Verdict::kPass, Verdict::kPass).phase, Phase::kAdmitted);
}

TEST_F(AdmissionTest, AHoldShutsWithoutForgettingThePass) {
  Admit();
  facts.hold = true;
  Step();
  EXPECT_EQ(decision.phase, Phase::kAdmitted);
  EXPECT_EQ(decision.reason, "Held");
  EXPECT_TRUE(decision.shut);
  Hear({"d0", "d1"}, "boot-2");
  EXPECT_FALSE(Step().start_run);  // no run disturbs the admin
  Hear({"d0", "d1"});
  facts.hold = false;
  Step();
  EXPECT_FALSE(decision.shut);
}

TEST_F(AdmissionTest, ObserveNeverShutsButTellsTheVerdict) {
  policy.enforce = false;
  EXPECT_FALSE(Step().shut);
  EXPECT_EQ(decision.open.size(), 2U);
  Validate(Verdict::kFail, Verdict::kPass);
  EXPECT_EQ(decision.phase, Phase::kQuarantined);
  EXPECT_FALSE(decision.shut);
  EXPECT_EQ(decision.open.size(), 2U);
  facts.report->devices[0].health = DeviceHealth::kUnknown;
  EXPECT_THAT(Step().open, ElementsAre(DeviceId{"d1"}));
}

TEST_F(AdmissionTest, WithoutABootIdOrFingerprintNothingPassesAndTriesAreBounded) {
  policy.retries = 1;
  Hear({"d0", "d1"}, "", "fp-1");
  Validate(Verdict::kPass, Verdict::kPass);
  EXPECT_EQ(decision.phase, Phase::kInconclusive);
  EXPECT_TRUE(decision.shut);
}

TEST_F(AdmissionTest, NothingStartsWhileAnOldPodIsStillThere) {
  Step();
  StartPod("pod");
  HandIn(Verdict::kInconclusive, Verdict::kPass);
  Step();
  Advance(Seconds(10));
  HearAgain();
  EXPECT_FALSE(Step().start_run);
  EXPECT_EQ(decision.end_run, "pod");
  facts.pod.reset();
  EXPECT_TRUE(Step().start_run);
}

TEST(AdmissionNamesTest, PhasesAndVerdictsReadBack) {
  for (const Phase phase : {Phase::kDiscovered, Phase::kValidating, Phase::kAdmitted,
                            Phase::kQuarantined, Phase::kInconclusive, Phase::kLost}) {
    EXPECT_EQ(ParsePhase(PhaseName(phase)), phase);
  }
  EXPECT_EQ(ParseVerdict("NoProfile"), Verdict::kNoProfile);
  EXPECT_FALSE(ParseVerdict("pass"));
  EXPECT_FALSE(ParsePhase(""));
}

}  // namespace
}  // namespace bimetal::core::admission
