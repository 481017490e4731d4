#include "operator/controllers/gated_pods.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/operator/controllers/gated_world.h"

namespace bimetal::test {
namespace {

using core::Vendor;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using testing::StartsWith;
using testing::UnorderedElementsAre;

class GatedPodsTest : public testing::Test {
 protected:
  void Turn() { w_.Turn(); }
  void Settle() {
    w_.Turn();
    w_.TakePatches();
    w_.Turn();
    w_.TakePatches();
  }
  std::vector<op::Write> Events() const { return w_.world.writes.Of("create", "events"); }

  GatedWorld w_;
};

TEST_F(GatedPodsTest, AGangGoesWhenItIsWholeAndInOnePatchAPod) {
  w_.AdmitNodes(8, 0);
  for (const char* name : {"train-0", "train-1", "train-2"})
    w_.Show(PodMaker(name).Devices(kNvidia, 2).OfGang("train", 4));
  Turn();
  EXPECT_THAT(w_.Opened(), IsEmpty());
  w_.Show(PodMaker("train-3").Devices(kNvidia, 2).OfGang("train", 4));
  Turn();
  EXPECT_THAT(w_.Opened(), ElementsAre("train-0", "train-1", "train-2", "train-3"));
  EXPECT_EQ(w_.Used("default", Vendor::kNvidia), 8) << "held before the watch shows it";
  Turn();
  EXPECT_THAT(w_.Opened(), SizeIs(4)) << "asked once";
  w_.TakePatches();
  for (const auto& [name, pod] : w_.pods) {
    EXPECT_THAT(pod.spec().scheduling_gates(), IsEmpty());
    const auto& terms = pod.spec()
                            .affinity()
                            .node_affinity()
                            .required_during_scheduling_ignored_during_execution()
                            .node_selector_terms();
    ASSERT_THAT(terms, SizeIs(1));
    EXPECT_EQ(terms[0].match_fields(0).values(0), "n1");
    EXPECT_EQ(pod.metadata().annotations().at(op::kAdmittedToAnnotation), "default");
  }
  Turn();
  EXPECT_THAT(w_.gated->AssumedPods(), IsEmpty());
  EXPECT_EQ(w_.Used("default", Vendor::kNvidia), 8);
  EXPECT_THAT(Events(), IsEmpty()) << "nothing waited long enough to be told";
}

TEST_F(GatedPodsTest, AGangThatDoesNotFitSaysSoOnEachPodAndOnItsOwnerOnce) {
  w_.AdmitNodes(8, 0);
  for (const char* name : {"big-0", "big-1", "big-2"})
    w_.Show(PodMaker(name).Devices(kNvidia, 4).OfGang("big", 3));
  Settle();
  EXPECT_THAT(w_.Opened(), IsEmpty());
  for (const auto& [name, pod] : w_.pods) {
    EXPECT_THAT(w_.Words(name), StartsWith("ExceedsCapacity: "));
    EXPECT_THAT(w_.Words(name), HasSubstr("12 devices"));
  }
  ASSERT_THAT(Events(), SizeIs(4)) << "three pods and the Job";
  EXPECT_THAT(Events()[1].body, HasSubstr(R"("kind":"Job","name":"big")"));
  EXPECT_THAT(Events()[1].body, HasSubstr(R"("type":"Warning")"));
  w_.ForgetWrites();
  for (int i = 0; i < 5; ++i) {
    w_.world.clock.Advance(Minutes(1));
    Settle();
  }
  EXPECT_THAT(w_.world.writes.Of("patch", "pods"), IsEmpty());
  EXPECT_THAT(Events(), IsEmpty());
}

TEST_F(GatedPodsTest, WhatWaitsForDevicesGoesWhenTheyAreFreeAndItsWordsGoWithTheGate) {
  w_.AdmitNodes(8, 0);
  w_.Show(PodMaker("first").Devices(kNvidia, 8));
  Settle();
  w_.Run("first");
  w_.Show(PodMaker("second").Devices(kNvidia, 8));
  Settle();
  EXPECT_THAT(w_.Words("second"), StartsWith("WaitingForDevices: "));
  w_.End("first", "Succeeded");
  Settle();
  EXPECT_THAT(w_.pods.at("second").spec().scheduling_gates(), IsEmpty());
  EXPECT_EQ(w_.Words("second"), "");
  EXPECT_EQ(w_.Used("default", Vendor::kNvidia), 8);
}

TEST_F(GatedPodsTest, MissingPodsOfAGangAreNewsOnlyAfterAWhile) {
  w_.AdmitNodes(8, 0);
  w_.Show(PodMaker("train-0").Devices(kNvidia, 2).OfGang("train", 2));
  Settle();
  EXPECT_EQ(w_.Words("train-0"), "");
  ASSERT_TRUE(w_.gated->NextWake());
  w_.world.clock.Advance(*w_.gated->NextWake() - w_.world.clock.Now());
  Settle();
  EXPECT_THAT(w_.Words("train-0"), StartsWith("PodGroupIncomplete: Job train announces 2 pods, 1"));
}

TEST_F(GatedPodsTest, OneMoreThanAnnouncedStaysBehindAndTheGangGoes) {
  w_.AdmitNodes(8, 0);
  for (const char* name : {"train-0", "train-1", "train-2"}) {
    w_.Show(PodMaker(name).Devices(kNvidia, 1).OfGang("train", 2));
    w_.world.clock.Advance(Seconds(1));
  }
  Settle();
  EXPECT_THAT(w_.Opened(), ElementsAre("train-0", "train-1"));
  EXPECT_THAT(w_.Words("train-2"), StartsWith("PodGroupTooLarge: "));
  EXPECT_EQ(w_.Used("default", Vendor::kNvidia), 2);
}

TEST_F(GatedPodsTest, ANameOfAnothersGroupJoinsNobody) {
  w_.AdmitNodes(8, 0);
  const auto of = [](const std::string& pod, const std::string& job) {
    return PodMaker(pod).Devices(kNvidia, 1).OfGang(job, 2).Label(op::kPodGroupLabel, "ring");
  };
  w_.Show(of("a-0", "a"));
  w_.Show(of("b-0", "b"));
  Settle();
  EXPECT_THAT(w_.Opened(), IsEmpty());
  w_.Show(of("a-1", "a"));
  Settle();
  EXPECT_THAT(w_.Opened(), ElementsAre("a-0", "a-1"));
}

TEST_F(GatedPodsTest, PodsOfOneJobSetFormAGroupOverItsJobs) {
  w_.AdmitNodes(8, 0);
  const auto of = [](const std::string& pod, const std::string& job) {
    return PodMaker(pod)
        .Devices(kNvidia, 1)
        .OfGang(job, 2)
        .Label(op::kPodGroupLabel, "all")
        .Label("jobset.sigs.k8s.io/jobset-uid", "set");
  };
  w_.Show(of("leader-0", "leader"));
  w_.Show(of("worker-0", "worker"));
  Settle();
  EXPECT_THAT(w_.Opened(), ElementsAre("leader-0", "worker-0"));
}

TEST_F(GatedPodsTest, MembersThatDisagreeOnQueueOrSizeAreToldSo) {
  w_.AdmitNodes(8, 0);
  w_.Show(PodMaker("ring-0").Devices(kNvidia, 1).OfGang("ring", 2));
  w_.world.clock.Advance(Seconds(1));
  w_.Show(PodMaker("ring-1").Devices(kNvidia, 1).OfGang("ring", 2).Label(op::kQueueNameLabel, "x"));
  w_.Show(PodMaker("ring-2").Devices(kNvidia, 1).OfGang("ring", 3));
  Settle();
  w_.world.clock.Advance(Seconds(6));
  Settle();
  EXPECT_THAT(w_.Opened(), IsEmpty());
  EXPECT_THAT(w_.Words("ring-1"), StartsWith("PodGroupMismatch: the pod names queue x"));
  EXPECT_THAT(w_.Words("ring-2"), StartsWith("PodGroupMismatch: the pod announces a group of 3"));
  EXPECT_THAT(w_.Words("ring-0"), StartsWith("PodGroupIncomplete: "));
}

TEST_F(GatedPodsTest, AQueueThatIsMissingOrStoppedIsNamedAndHealsByItself) {
  w_.AdmitNodes(8, 0);
  w_.Show(PodMaker("p").Devices(kNvidia, 1).Label(op::kQueueNameLabel, "team"));
  w_.Show(PodMaker("bare").Label(op::kQueueNameLabel, "team"));  // asks for no device
  Settle();
  EXPECT_THAT(w_.Words("p"), StartsWith("QueueNotFound: queue team does not exist"));
  EXPECT_THAT(w_.Words("bare"), StartsWith("QueueNotFound: queue team does not exist"));
  api::GPUQueue queue;
  queue.mutable_metadata()->set_name("team");
  queue.mutable_spec()->set_stop_policy("Hold");
  w_.world.store.queues["team"] = queue;
  w_.world.clock.Advance(Minutes(1));
  w_.gated->TouchAll();
  Settle();
  EXPECT_THAT(w_.Words("p"), StartsWith("QueueStopped: "));
  EXPECT_THAT(w_.Words("bare"), StartsWith("QueueStopped: "));
  w_.world.store.queues["team"].mutable_spec()->set_stop_policy("None");
  w_.gated->TouchAll();
  Settle();
  EXPECT_THAT(w_.Opened(), UnorderedElementsAre("p", "bare"));
  EXPECT_EQ(w_.Used("team", Vendor::kNvidia), 1);
}

TEST_F(GatedPodsTest, AStopAboveTheQueueHoldsPodsWithoutDevicesToo) {
  w_.AdmitNodes(8, 0);
  auto& top = w_.world.store.queues["top"];
  top.mutable_metadata()->set_name("top");
  top.mutable_spec()->set_stop_policy("Hold");
  auto& team = w_.world.store.queues["team"];
  team.mutable_metadata()->set_name("team");
  team.mutable_spec()->set_parent_name("top");
  w_.Show(PodMaker("bare").Label(op::kQueueNameLabel, "team"));
  Settle();
  EXPECT_THAT(w_.Opened(), IsEmpty());
  EXPECT_THAT(w_.Words("bare"), StartsWith("QueueStopped: queue top, which is above queue team"));
}

TEST_F(GatedPodsTest, TheQuotaOfTheQueueHoldsForPodsToo) {
  w_.AdmitNodes(8, 0);
  auto* quota = w_.world.store.queues["default"].mutable_spec()->add_quotas();
  quota->set_device_class("nvidia");
  quota->set_limit(2);
  for (const char* name : {"a", "b", "c"}) {
    w_.Show(PodMaker(name).Devices(kNvidia, 1).OwnedBy("ReplicaSet", "web"));
    w_.world.clock.Advance(Seconds(1));
  }
  Settle();
  EXPECT_THAT(w_.Opened(), ElementsAre("a", "b"));
  EXPECT_THAT(w_.Words("c"), StartsWith("WaitingForQuota: "));
  w_.Remove("a");
  Settle();
  EXPECT_THAT(w_.Opened(), ElementsAre("a", "b", "c"));
}

TEST_F(GatedPodsTest, AMemberDeletedWhileItWaitsMakesTheGangWaitAgain) {
  w_.AdmitNodes(8, 0);
  w_.Show(PodMaker("holder").Devices(kNvidia, 8));
  Settle();
  w_.Run("holder");
  for (const char* name : {"train-0", "train-1"})
    w_.Show(PodMaker(name).Devices(kNvidia, 2).OfGang("train", 2));
  Settle();
  w_.Remove("train-1");
  w_.End("holder", "Succeeded");
  w_.ForgetWrites();
  Settle();
  EXPECT_THAT(w_.Opened(), IsEmpty());
  w_.Show(PodMaker("train-1b").Devices(kNvidia, 2).OfGang("train", 2));
  Settle();
  EXPECT_THAT(w_.Opened(), ElementsAre("train-0", "train-1b"));
}

TEST_F(GatedPodsTest, APodThatIsGoneWhenItsGateIsTakenOffHoldsNothing) {
  w_.AdmitNodes(8, 0);
  w_.Show(PodMaker("p").Devices(kNvidia, 8));
  Turn();
  EXPECT_EQ(w_.Used("default", Vendor::kNvidia), 8);
  w_.pods.erase("p");  // deleted; the watch has not said so yet
  w_.TakePatches();
  EXPECT_THAT(w_.gated->AssumedPods(), IsEmpty());
  EXPECT_EQ(w_.Used("default", Vendor::kNvidia), 0);
}

TEST_F(GatedPodsTest, WhatTheApiServerRefusesIsToldAndTriedAgainLater) {
  w_.AdmitNodes(8, 0);
  w_.Show(PodMaker("p").Devices(kNvidia, 1));
  Turn();
  ASSERT_THAT(w_.Opened(), SizeIs(1));
  w_.world.writes.writes.back().done(Fail(ErrorCode::kForbidden, "a policy says no"));
  w_.applied = w_.world.writes.writes.size();
  Settle();
  EXPECT_THAT(w_.Words("p"), HasSubstr("PodRefused: the API server did not let the pod go: a pol"));
  EXPECT_THAT(w_.Opened(), SizeIs(1));
  w_.world.clock.Advance(Seconds(5));
  Settle();
  EXPECT_THAT(w_.Opened(), SizeIs(2));
  EXPECT_EQ(w_.Words("p"), "");
}

TEST_F(GatedPodsTest, ARestartKnowsWhatIsAdmittedAndSaysNothingTwice) {
  w_.AdmitNodes(8, 0);
  w_.Show(PodMaker("first").Devices(kNvidia, 6));
  w_.Show(PodMaker("second").Devices(kNvidia, 4).OwnedBy("ReplicaSet", "web"));
  Settle();
  EXPECT_THAT(w_.Opened(), ElementsAre("first"));
  EXPECT_THAT(w_.Words("second"), StartsWith("WaitingForDevices"));
  w_.Restart();
  EXPECT_EQ(w_.Used("default", Vendor::kNvidia), 6) << "pinned, though not bound yet";
  Settle();
  EXPECT_THAT(w_.world.writes.Of("patch", "pods"), IsEmpty());
  EXPECT_THAT(Events(), IsEmpty());
}

TEST_F(GatedPodsTest, AfterACrashBetweenThePatchesOfAGangTheRestGoesToo) {
  w_.AdmitNodes(8, 0);
  for (const char* name : {"train-0", "train-1", "train-2"})
    w_.Show(PodMaker(name).Devices(kNvidia, 2).OfGang("train", 3));
  Turn();
  const auto writes = w_.world.writes.Of("patch", "pods");
  ASSERT_THAT(writes, SizeIs(3));
  w_.world.writes.writes = {writes[1]};
  w_.applied = 0;
  w_.TakePatches();
  w_.Restart();
  Settle();
  EXPECT_THAT(w_.Opened(), ElementsAre("train-0", "train-2"));
  EXPECT_EQ(w_.Used("default", Vendor::kNvidia), 6);
}

TEST_F(GatedPodsTest, ThePodThatReplacesAFailedMemberIsPlacedAsItComes) {
  w_.AdmitNodes(8, 0);
  for (const char* name : {"train-0", "train-1"})
    w_.Show(PodMaker(name).Devices(kNvidia, 2).OfGang("train", 2));
  Settle();
  for (const char* name : {"train-0", "train-1"}) w_.Run(name);
  w_.End("train-1", "Failed");
  w_.ForgetWrites();
  w_.Show(PodMaker("train-1b").Devices(kNvidia, 2).OfGang("train", 2));
  Settle();
  EXPECT_THAT(w_.Opened(), ElementsAre("train-1b"));
  // One member has succeeded and the other must be made again: two are there, one of them done.
  w_.End("train-0", "Succeeded");
  w_.End("train-1b", "Failed");
  w_.ForgetWrites();
  w_.Show(PodMaker("train-1c").Devices(kNvidia, 2).OfGang("train", 2));
  Settle();
  EXPECT_THAT(w_.Opened(), ElementsAre("train-1c"));
}

TEST_F(GatedPodsTest, WhatCannotBePlacedSaysWhichLabelOrResourceIsWrong) {
  w_.AdmitNodes(8, 8);
  w_.Show(PodMaker("both").Devices(kNvidia, 1).Devices(kAmd, 1));
  w_.Show(PodMaker("size").Devices(kNvidia, 1).OfGang("x", 0));
  w_.Show(PodMaker("nobody").Devices(kNvidia, 1).Annotation(op::kPodGroupSizeAnnotation, "2"));
  w_.Show(PodMaker("unsized").Devices(kNvidia, 1).Label(op::kPodGroupLabel, "g"));
  w_.Show(PodMaker("unnamed").Devices(kNvidia, 1).NoLabel(op::kQueueNameLabel));
  PodMaker other("other");
  other.Devices(kNvidia, 1).Raw().mutable_spec()->add_scheduling_gates()->set_name("mine");
  w_.Show(other);
  for (const char* name : {"mix-0", "mix-1"}) {
    w_.Show(
        PodMaker(name).Devices(std::string(name) == "mix-0" ? kNvidia : kAmd, 1).OfGang("mix", 2));
  }
  Settle();
  EXPECT_THAT(w_.Opened(), IsEmpty());
  EXPECT_THAT(w_.Words("both"), StartsWith("Misconfigured: the pod asks for devices of both"));
  EXPECT_THAT(w_.Words("size"), HasSubstr("\"0\" is not a number from 1 to 8192"));
  EXPECT_THAT(w_.Words("nobody"), HasSubstr("name its group by the label"));
  EXPECT_THAT(w_.Words("unsized"), HasSubstr("without the annotation"));
  EXPECT_THAT(w_.Words("unnamed"), StartsWith("QueueNotNamed: "));
  EXPECT_THAT(w_.Words("other"), StartsWith("OtherSchedulingGates: "));
  EXPECT_THAT(w_.Words("mix-0"), HasSubstr("ask for different devices"));
  // And it heals: the other gate goes.
  w_.pods.at("other").mutable_spec()->mutable_scheduling_gates()->RemoveLast();
  w_.Show(w_.pods.at("other"));
  Settle();
  EXPECT_THAT(w_.Opened(), ElementsAre("other"));
}

TEST_F(GatedPodsTest, AQueueLabelTakenOffLaterFreesNoQuota) {
  w_.AdmitNodes(8, 0);
  w_.Show(PodMaker("p").Devices(kNvidia, 5));
  Settle();
  w_.pods.at("p").mutable_metadata()->mutable_labels()->erase(op::kQueueNameLabel);
  w_.Run("p");
  EXPECT_EQ(w_.Used("default", Vendor::kNvidia), 5);
  (*w_.pods.at("p").mutable_metadata()->mutable_labels())[op::kQueueNameLabel] = "other";
  w_.Show(w_.pods.at("p"));
  EXPECT_EQ(w_.Used("default", Vendor::kNvidia), 5);
  w_.End("p", "Succeeded");
  EXPECT_EQ(w_.Used("default", Vendor::kNvidia), 0);
}

TEST_F(GatedPodsTest, PodsWithoutDevicesGoWithTheirGangAndAreNotPinned) {
  w_.AdmitNodes(8, 0);
  w_.Show(PodMaker("train-0").OfGang("train", 3));
  for (const char* name : {"train-1", "train-2"})
    w_.Show(PodMaker(name).Devices(kNvidia, 8).OfGang("train", 3));
  Settle();
  EXPECT_THAT(w_.Opened(), IsEmpty()) << "8 of 16 devices are there";
  w_.world.Admit("n2", "nvidia", 8);
  Settle();
  EXPECT_THAT(w_.Opened(), UnorderedElementsAre("train-0", "train-1", "train-2"));
  EXPECT_FALSE(w_.pods.at("train-0").spec().has_affinity());
  EXPECT_NE(w_.pods.at("train-1").metadata().annotations().at(op::kPinnedNodeAnnotation),
            w_.pods.at("train-2").metadata().annotations().at(op::kPinnedNodeAnnotation));
}

TEST_F(GatedPodsTest, ThePodsOwnAffinityIsKeptAndNarrowed) {
  w_.AdmitNodes(8, 0);
  w_.world.Admit("n2", "nvidia", 8);
  w_.world.store.nodes.at("n2").node.labels["rack"] = "b";
  PodMaker made("p");
  auto* terms = made.Devices(kNvidia, 1)
                    .Raw()
                    .mutable_spec()
                    ->mutable_affinity()
                    ->mutable_node_affinity()
                    ->mutable_required_during_scheduling_ignored_during_execution();
  for (const char* rack : {"b", "c"}) {
    auto* rule = terms->add_node_selector_terms()->add_match_expressions();
    rule->set_key("rack");
    rule->set_operator_("In");
    rule->add_values(rack);
  }
  w_.Show(made);
  Settle();
  const auto& now = w_.pods.at("p")
                        .spec()
                        .affinity()
                        .node_affinity()
                        .required_during_scheduling_ignored_during_execution();
  ASSERT_THAT(w_.Opened(), SizeIs(1));
  ASSERT_THAT(now.node_selector_terms(), SizeIs(2)) << "the server takes no other number of terms";
  for (const auto& term : now.node_selector_terms()) {
    EXPECT_THAT(term.match_expressions(), SizeIs(1));
    EXPECT_EQ(term.match_fields(0).values(0), "n2");
  }
}

TEST_F(GatedPodsTest, WhatNobodyQueuedIsCountedAsItIs) {
  w_.AdmitNodes(8, 0);
  auto plain = PodMaker("plain").Devices(kNvidia, 6).NoLabel(op::kQueueNameLabel).Ungated();
  plain.Raw().mutable_spec()->set_node_name("n1");
  w_.Show(plain);
  // With the label, in a namespace where it means nothing: it was never admitted.
  auto exempt = PodMaker("exempt").Devices(kNvidia, 1).Ungated();
  exempt.Raw().mutable_spec()->set_node_name("n1");
  w_.Show(exempt);
  EXPECT_EQ(w_.Used("default", Vendor::kNvidia), 0);
  w_.Show(PodMaker("queued").Devices(kNvidia, 2));
  Settle();
  EXPECT_THAT(w_.Words("queued"), StartsWith("WaitingForDevices: "));
  EXPECT_THAT(w_.Words("queued"), HasSubstr("1 is free"));
  w_.Remove("plain");
  Settle();
  EXPECT_THAT(w_.Opened(), ElementsAre("queued"));
}

TEST_F(GatedPodsTest, OnlyAGroupThatCallsItselfPreemptibleIsEvictedAndWhole) {
  w_.AdmitNodes(8, 0);
  for (const char* name : {"soft-0", "soft-1"}) {
    w_.Show(PodMaker(name)
                .Devices(kNvidia, 1)
                .OfGang("soft", 2)
                .Annotation(op::kPreemptibleAnnotation, "true"));
  }
  w_.Show(PodMaker("hard").Devices(kNvidia, 1));
  Settle();
  for (const char* name : {"soft-0", "soft-1", "hard"}) w_.Run(name);
  Turn();
  EXPECT_FALSE(w_.gated->Evict({Uid{"nobody"}, Uid{"x"}, "for x"}));
  EXPECT_TRUE(w_.gated->Evict({Uid{"pods/team/uid-hard"}, Uid{"x"}, "for x"}));
  EXPECT_THAT(w_.world.writes.Of("create", "pods/eviction"), IsEmpty());
  EXPECT_TRUE(w_.gated->Evict({Uid{"pods/team/uid-of-soft"}, Uid{"x"}, "for x"}));
  EXPECT_TRUE(w_.gated->Evict({Uid{"pods/team/uid-of-soft"}, Uid{"x"}, "for x"}));
  const auto evictions = w_.world.writes.Of("create", "pods/eviction");
  ASSERT_THAT(evictions, SizeIs(2)) << "once for each pod";
  EXPECT_THAT(evictions[0].body, HasSubstr(R"("uid":"uid-soft-0")"));
}

TEST_F(GatedPodsTest, DeviceTimeIsCountedByOwnerFromBindingToEnd) {
  w_.AdmitNodes(8, 0);
  for (const char* name : {"train-0", "train-1"})
    w_.Show(PodMaker(name).Devices(kNvidia, 2).OfGang("train", 2));
  Settle();
  EXPECT_THAT(w_.gated->Usage(), IsEmpty());
  for (const char* name : {"train-0", "train-1"}) w_.Run(name);
  w_.world.clock.Advance(Seconds(10));
  w_.End("train-0", "Succeeded");
  w_.world.clock.Advance(Seconds(10));
  auto rows = w_.gated->Usage();
  ASSERT_THAT(rows, SizeIs(1));
  EXPECT_EQ(rows[0].name, "train");
  EXPECT_EQ(rows[0].queue, "default");
  ASSERT_THAT(rows[0].usage, SizeIs(1));
  EXPECT_EQ(rows[0].usage[0].model, "H100");
  EXPECT_EQ(rows[0].usage[0].running_ms, 2 * 10'000 + 2 * 20'000);
  EXPECT_FALSE(rows[0].ended);
  w_.Remove("train-1");
  w_.world.clock.Advance(Seconds(10));
  rows = w_.gated->Usage();
  EXPECT_EQ(rows[0].usage[0].running_ms, 60'000);
  EXPECT_TRUE(rows[0].ended);
  w_.world.clock.Advance(Minutes(20));
  Turn();
  EXPECT_THAT(w_.gated->Usage(), IsEmpty());
}

TEST_F(GatedPodsTest, APinnedPodThatIsNotScheduledIsToldAndItsWordsGoWhenItIs) {
  w_.AdmitNodes(8, 0);
  w_.Show(PodMaker("p").Devices(kNvidia, 1));
  Settle();
  auto* scheduled = w_.pods.at("p").mutable_status()->add_conditions();
  scheduled->set_type("PodScheduled");
  scheduled->set_status("False");
  scheduled->set_reason("Unschedulable");
  scheduled->set_message("0/1 nodes are available: 1 Insufficient cpu");
  w_.Show(w_.pods.at("p"));
  Settle();
  EXPECT_EQ(w_.Words("p"), "");
  w_.world.clock.Advance(Seconds(6));
  Settle();
  EXPECT_THAT(w_.Words("p"), StartsWith("PodUnschedulable: the pod has its place on node n1"));
  EXPECT_THAT(w_.Words("p"), HasSubstr("Insufficient cpu"));
  w_.pods.at("p").mutable_status()->clear_conditions();
  w_.Run("p");
  Settle();
  EXPECT_EQ(w_.Words("p"), "");
}

TEST_F(GatedPodsTest, ReasonsThatAlternateAreToldNoMoreThanEachTenSeconds) {
  w_.AdmitNodes(8, 0);
  w_.Show(PodMaker("p").Devices(kNvidia, 1));
  w_.Turn();  // it goes; what follows is told of another
  w_.Show(PodMaker("q").Devices(kNvidia, 8));
  for (int second = 0; second < 60; ++second) {
    core::queue::Refusal refusal;
    refusal.job = Uid{"pods/team/uid-q"};
    refusal.reason = second % 2 ? "WaitingForQuota" : "WaitingForDevices";
    refusal.message = "words";
    w_.gated->Refuse(refusal);
    w_.gated->Reconcile();
    w_.TakePatches();
    w_.world.clock.Advance(Seconds(1));
  }
  std::size_t told = 0;
  for (const auto& write : w_.world.writes.Of("patch", "pods")) told += write.name == "q" ? 1U : 0U;
  EXPECT_GE(told, 2U);
  EXPECT_LE(told, 7U);
}

}  // namespace
}  // namespace bimetal::test
