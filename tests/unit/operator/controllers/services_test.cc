#include "operator/controllers/services.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/operator/controllers/world.h"

namespace bimetal::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

api::GPUService MakeService(int replicas, int devices = 1) {
  api::GPUService service;
  service.mutable_metadata()->set_name("chat");
  service.mutable_metadata()->set_namespace_("team");
  service.mutable_metadata()->set_uid("uid-chat");
  service.mutable_metadata()->set_generation(1);
  service.mutable_metadata()->set_creation_timestamp("2026-01-01T00:00:00Z");
  service.mutable_spec()->set_queue_name("default");
  service.mutable_spec()->set_replicas(replicas);
  service.mutable_spec()->mutable_rollout()->set_max_surge("1");
  service.mutable_spec()->mutable_rollout()->set_max_unavailable("0");
  for (const auto* vendor : {"nvidia", "amd"}) {
    auto* variant = service.mutable_spec()->add_variants();
    variant->set_name(std::string(vendor) == "nvidia" ? "cuda" : "rocm");
    variant->set_vendor(vendor);
    variant->set_devices_per_pod(devices);
    variant->set_image(std::string("image:") + vendor);
  }
  return service;
}

class ServiceControllerTest : public testing::Test {
 protected:
  ServiceControllerTest() { Restart(); }

  // As a new operator on the same cluster: nothing is known but what the watches show.
  void Restart() {
    services_ = std::make_unique<op::ServiceController>(
        world_.clock, world_.store, world_.writes,
        op::ServiceOptions{"bimetal-job", {}, [this] { return cycle_->MakeSnapshot(); }},
        [this] { wanted_ = true; });
    cycle_ = std::make_unique<op::SchedulingCycle>(
        world_.clock, world_.store, world_.nodes,
        std::vector<op::Claimant*>{&world_.jobs, services_.get()});
  }

  void StartWith(int nvidia_devices, int amd_devices) {
    world_.nodes.Start();
    world_.jobs.Start();
    services_->Start();
    if (nvidia_devices > 0) world_.Admit("n1", "nvidia", nvidia_devices);
    if (amd_devices > 0) world_.Admit("a1", "amd", amd_devices);
    world_.writes.writes.clear();
    from_ = 0;
  }

  void Submit(const api::GPUService& service) {
    services_->OnService(service);
    Turn();
  }
  // The next generation of the spec.
  void Change(api::GPUService& service) {
    service.mutable_metadata()->set_generation(service.metadata().generation() + 1);
    Submit(service);
  }

  void Turn() {
    for (int i = 0; i < 3; ++i) {
      world_.nodes.Reconcile();
      services_->Reconcile();
      if (std::exchange(wanted_, false)) cycle_->Run();
    }
  }

  // Names of pods asked for since the last call; they appear, bound and not ready.
  std::vector<std::string> Made() {
    std::vector<std::string> out;
    const auto pods = world_.writes.Of("create", "pods");
    for (; from_ < pods.size(); ++from_) {
      if (pods[from_].name_space != "team") continue;
      auto record = world_.Appear(pods[from_].body, "pod-" + pods[from_].name);
      record.bound = true;
      record.scheduled_at = world_.clock.Now();
      Put(record);
      out.push_back(pods[from_].name);
    }
    Turn();
    return out;
  }
  std::vector<std::string> MadeReady() {
    const auto names = Made();
    for (const auto& name : names) SetReady(name, true);
    Turn();
    return names;
  }
  void Put(const op::PodRecord& record) {
    world_.store.PutPod(record);
    services_->OnPod(record, false);
  }
  op::PodRecord& Pod(const std::string& name) { return world_.store.pods.at({"team", name}); }
  void SetReady(const std::string& name, bool ready) {
    auto record = Pod(name);
    record.ready = record.running = ready;
    Put(record);
  }
  // Pods whose deletion was asked for since the last call, by name.
  std::vector<std::string> Deleted() {
    std::vector<std::string> out;
    const auto deletes = world_.writes.Of("delete", "pods");
    for (; deleted_ < deletes.size(); ++deleted_) out.push_back(deletes[deleted_].name);
    return out;
  }
  void Remove(const std::string& name) {
    const auto record = Pod(name);
    world_.store.RemovePod({"team", name});
    services_->OnPod(record, true);
    wanted_ = true;
    Turn();
  }
  std::string VendorOf(const std::string& name) {
    return std::string(core::VendorName(Pod(name).holds.devices.begin()->first));
  }

  const api::GPUServiceStatus& Status() { return *services_->StatusOf("uid-chat"); }
  std::string ConditionOf(const std::string& type) {
    for (const auto& condition : Status().conditions()) {
      if (condition.type() == type) return condition.status() + " " + condition.reason();
    }
    return "none";
  }

  World world_;
  std::unique_ptr<op::ServiceController> services_;
  std::unique_ptr<op::SchedulingCycle> cycle_;
  bool wanted_ = false;
  std::size_t from_ = 0, deleted_ = 0;
};

TEST_F(ServiceControllerTest, ReplicasGetPlacesPodsAndAService) {
  StartWith(2, 8);
  Submit(MakeService(3));
  const auto pods = Made();
  ASSERT_THAT(pods, SizeIs(3)) << Status().DebugString();
  EXPECT_EQ(VendorOf(pods[0]), "nvidia");
  EXPECT_EQ(VendorOf(pods[2]), "amd") << "the first variant is full";
  const auto body = world_.writes.Of("create", "pods")[2].body;
  EXPECT_THAT(body, HasSubstr("\"image\":\"image:amd\""));
  EXPECT_THAT(body, HasSubstr(R"("amd.com/gpu":"1")"));
  EXPECT_THAT(body, HasSubstr(R"("restartPolicy":"Always")"));
  EXPECT_THAT(body, HasSubstr(R"("preStop":{"sleep":{"seconds":5}})"));
  EXPECT_THAT(body, HasSubstr("\"kind\":\"GPUService\""));
  ASSERT_THAT(world_.writes.Of("create", "services"), SizeIs(1));
  EXPECT_EQ(world_.writes.Of("create", "services")[0].name, "chat");
  EXPECT_EQ(ConditionOf("Available"), "False NotEnoughReady");
  EXPECT_EQ(ConditionOf("Progressing"), "True Scaling");
  for (const auto& pod : pods) SetReady(pod, true);
  Turn();
  EXPECT_EQ(Status().ready_replicas(), 3);
  EXPECT_EQ(Status().summary(), "cuda 2/2, rocm 1/1");
  EXPECT_EQ(Status().selector(), "bimetal.dev/service-uid=uid-chat");
  EXPECT_EQ(ConditionOf("Available"), "True EnoughReady");
  EXPECT_EQ(ConditionOf("Progressing"), "False Settled");
  EXPECT_EQ(ConditionOf("ScalingLimited"), "False NotLimited");
  EXPECT_EQ(ConditionOf("Degraded"), "False AsExpected");
}

TEST_F(ServiceControllerTest, WhatFindsNoPlaceSaysWhyByVariantAndStartsWhenOneIsFree) {
  StartWith(1, 1);
  Submit(MakeService(3));
  const auto pods = MadeReady();
  ASSERT_THAT(pods, SizeIs(2));
  EXPECT_EQ(Status().blocked(), 1);
  EXPECT_EQ(ConditionOf("ScalingLimited"), "True WaitingForDevices");
  ASSERT_THAT(Status().variants(), SizeIs(2));
  EXPECT_EQ(Status().variants(0).reason(), "WaitingForDevices");
  EXPECT_THAT(Status().variants(1).message(), HasSubstr("needs 1 devices, 0 are free"));
  EXPECT_FALSE(Status().waiting_since().empty());
  world_.Admit("n2", "nvidia", 1);
  wanted_ = true;
  Turn();
  EXPECT_THAT(Made(), SizeIs(1));
  EXPECT_EQ(Status().replicas(), 3);
  EXPECT_EQ(Status().blocked(), 0);
  EXPECT_TRUE(Status().waiting_since().empty());
}

TEST_F(ServiceControllerTest, ScalingDownDrainsOnePodAndKeepsTheOthers) {
  StartWith(8, 0);
  auto service = MakeService(3);
  Submit(service);
  const auto pods = MadeReady();
  service.mutable_spec()->set_replicas(2);
  Change(service);
  EXPECT_THAT(Deleted(), ElementsAre(pods[2]));
  Pod(pods[2]).deleting = true;
  Turn();
  Remove(pods[2]);
  EXPECT_THAT(Deleted(), IsEmpty());
  EXPECT_THAT(Made(), IsEmpty());
  EXPECT_EQ(Status().replicas(), 2);
}

TEST_F(ServiceControllerTest, ARolloutReplacesOneByOneAndNeverHasFewerReadyThanWanted) {
  StartWith(8, 8);
  auto service = MakeService(2);
  Submit(service);
  const auto old = MadeReady();
  for (auto& variant : *service.mutable_spec()->mutable_variants()) variant.set_image("image:2");
  Change(service);
  int turns = 0;
  std::set<std::string> live(old.begin(), old.end());
  while (ConditionOf("Progressing") != "False Settled" && ++turns < 20) {
    for (const auto& pod : Made()) {
      live.insert(pod);
      EXPECT_LE(live.size(), 3u) << "one beyond the wanted two";
      SetReady(pod, true);
    }
    Turn();
    for (const auto& pod : Deleted()) {
      live.erase(pod);
      Pod(pod).deleting = true;
      std::size_t ready = 0;
      for (const auto& name : live) ready += Pod(name).ready ? 1 : 0;
      EXPECT_GE(ready, 2u);
      Remove(pod);
    }
  }
  EXPECT_LT(turns, 20);
  EXPECT_EQ(Status().updated_replicas(), 2);
  for (const auto& pod : old) EXPECT_THAT(live, Not(testing::Contains(pod)));
}

TEST_F(ServiceControllerTest, WhereNothingIsFreeAnOldReplicaGivesItsPlaceToItsSuccessor) {
  StartWith(2, 0);
  auto service = MakeService(2);
  Submit(service);
  const auto old = MadeReady();
  ASSERT_THAT(old, SizeIs(2));
  service.mutable_spec()->mutable_variants(0)->set_image("image:2");
  Change(service);
  EXPECT_THAT(Deleted(), IsEmpty()) << "none may be missing";
  EXPECT_EQ(ConditionOf("Progressing"), "False RolloutBlocked");
  service.mutable_spec()->mutable_rollout()->set_max_unavailable("1");
  Change(service);
  const auto gone = Deleted();
  ASSERT_THAT(gone, SizeIs(1));
  Pod(gone[0]).deleting = true;
  // Somebody else waits for the same device, and has waited longer.
  api::GPUJob rival;
  rival.mutable_metadata()->set_name("rival");
  rival.mutable_metadata()->set_namespace_("team");
  rival.mutable_metadata()->set_uid("uid-rival");
  rival.mutable_metadata()->set_creation_timestamp("2025-01-01T00:00:00Z");
  auto* variant = rival.mutable_spec()->add_variants();
  variant->set_name("cuda");
  variant->set_vendor("nvidia");
  variant->set_devices_per_pod(1);
  variant->set_image("image");
  rival.mutable_spec()->add_roles()->set_name("worker");
  rival.mutable_spec()->mutable_roles(0)->set_replicas(1);
  world_.jobs.OnJob(rival);
  world_.jobs.Reconcile();
  Remove(gone[0]);
  const auto made = MadeReady();
  ASSERT_THAT(made, SizeIs(1)) << "the place was held for the successor";
  EXPECT_THAT(made[0], HasSubstr("chat-"));
  EXPECT_THAT(Deleted(), SizeIs(1)) << "and the next one follows";
}

TEST_F(ServiceControllerTest, AMaximumOfZeroMovesTheReplicasToTheOtherVendorFirst) {
  StartWith(2, 2);
  auto service = MakeService(2);
  Submit(service);
  const auto cuda = MadeReady();
  service.mutable_spec()->mutable_variants(0)->set_max_replicas(0);
  Change(service);
  EXPECT_THAT(Deleted(), IsEmpty());
  auto rocm = MadeReady();
  ASSERT_THAT(rocm, SizeIs(1));
  EXPECT_EQ(VendorOf(rocm[0]), "amd");
  EXPECT_THAT(Deleted(), ElementsAre(cuda[1]));
}

TEST_F(ServiceControllerTest, ALostNodeMovesItsReplicasToTheOtherVendor) {
  StartWith(2, 2);
  Submit(MakeService(2));
  const auto pods = MadeReady();
  world_.store.nodes.at("n1").not_ready_since = world_.clock.Now();
  world_.store.nodes.at("n1").node.ready = false;
  for (const auto& pod : pods) SetReady(pod, false);
  world_.clock.Advance(Seconds(61));
  world_.nodes.OnReport(world_.Report("a1", "amd", 2));  // the other node's agent is well
  services_->TouchAll();
  Turn();
  EXPECT_THAT(Deleted(), SizeIs(2));
  const auto replaced = MadeReady();
  ASSERT_THAT(replaced, SizeIs(2));
  EXPECT_EQ(VendorOf(replaced[0]), "amd");
  EXPECT_THAT(replaced, Not(testing::Contains(pods[0])));
}

TEST_F(ServiceControllerTest, AnEvictedPodIsReplacedAfterAPauseThatGrows) {
  StartWith(8, 0);
  Submit(MakeService(1));
  auto pods = Made();
  for (int i = 0; i < 2; ++i) {
    auto record = Pod(pods[0]);
    record.ended = true;
    record.end_reason = "UnexpectedAdmissionError";
    Put(record);
    Turn();
    EXPECT_THAT(Deleted(), SizeIs(1));
    EXPECT_EQ(ConditionOf("Degraded"), "True ReplicaFailed");
    Remove(pods[0]);
    EXPECT_THAT(Made(), IsEmpty()) << "not at once";
    world_.clock.Advance(Seconds(i == 0 ? 2 : 4));
    Turn();
    pods = Made();
    ASSERT_THAT(pods, SizeIs(1));
  }
}

TEST_F(ServiceControllerTest, APodThatTheStockSchedulerRefusesIsTakenBack) {
  StartWith(8, 0);
  Submit(MakeService(1));
  const auto pods = Made();
  auto record = Pod(pods[0]);
  record.bound = false;
  record.waiting_reason = "Unschedulable";
  record.waiting_message = "no room";
  Put(record);
  Turn();
  EXPECT_THAT(Deleted(), IsEmpty());
  world_.clock.Advance(Seconds(5));
  Turn();
  EXPECT_THAT(Deleted(), SizeIs(1));
}

TEST_F(ServiceControllerTest, SuspendDrainsAllAndResumeBringsThemBack) {
  StartWith(8, 0);
  auto service = MakeService(2);
  Submit(service);
  const auto pods = MadeReady();
  service.mutable_spec()->set_suspend(true);
  Change(service);
  EXPECT_THAT(Deleted(), SizeIs(2));
  EXPECT_EQ(ConditionOf("Suspended"), "True Suspended");
  for (const auto& pod : pods) Remove(pod);
  EXPECT_EQ(Status().replicas(), 0);
  service.mutable_spec()->set_suspend(false);
  Change(service);
  EXPECT_THAT(Made(), SizeIs(2));
}

TEST_F(ServiceControllerTest, ARestartedOperatorFindsItsReplicasAndMakesNoOthers) {
  StartWith(8, 0);
  const auto service = MakeService(2);
  Submit(service);
  MadeReady();
  Restart();
  services_->Start();
  Submit(service);
  EXPECT_THAT(Made(), IsEmpty());
  EXPECT_THAT(Deleted(), IsEmpty());
  EXPECT_EQ(Status().ready_replicas(), 2);
}

TEST_F(ServiceControllerTest, DevicesAskedForAreHeldBeforeTheWatchShowsThePods) {
  StartWith(2, 0);
  Submit(MakeService(2));
  EXPECT_THAT(services_->AssumedPods(), SizeIs(2));
  std::map<std::string, op::QueueCounts> counts;
  counts["default"];
  services_->Count(&counts);
  EXPECT_EQ(counts["default"].admitted, 2);
  EXPECT_EQ(counts["default"].used[core::Vendor::kNvidia], 2);
}

TEST_F(ServiceControllerTest, ARefusedCreateIsSaidAndTriedAgain) {
  StartWith(8, 0);
  Submit(MakeService(1));
  world_.writes.EndAll(Fail(ErrorCode::kForbidden, "exceeded quota"));
  Turn();
  EXPECT_EQ(ConditionOf("Degraded"), "True ServiceRefused");
  world_.clock.Advance(Seconds(10));
  Turn();
  EXPECT_THAT(world_.writes.Of("create", "pods"), SizeIs(2));
  EXPECT_THAT(world_.writes.Of("create", "services"), SizeIs(2));
}

TEST_F(ServiceControllerTest, ADeletedServiceLeavesNoPod) {
  StartWith(8, 0);
  const auto service = MakeService(2);
  Submit(service);
  MadeReady();
  services_->OnServiceDeleted(service);
  Turn();
  EXPECT_THAT(Deleted(), SizeIs(2));
}

TEST_F(ServiceControllerTest, AnAddressThatIsRemovedIsMadeAnew) {
  StartWith(8, 0);
  Submit(MakeService(1));
  world_.writes.EndAll();
  Turn();
  api::Service address;
  address.mutable_metadata()->set_name("chat");
  (*address.mutable_metadata()->mutable_labels())[op::kServiceUidLabel] = "uid-chat";
  (*address.mutable_spec()->mutable_selector())[op::kServiceUidLabel] = "uid-chat";
  address.mutable_spec()->add_ports()->set_port(80);
  services_->OnAddress(address, false);
  Turn();
  EXPECT_THAT(world_.writes.Of("create", "services"), SizeIs(1));
  services_->OnAddress(address, true);
  Turn();
  EXPECT_THAT(world_.writes.Of("create", "services"), SizeIs(2));
}

TEST_F(ServiceControllerTest, AWrongSpecIsSaidAndLeavesRunningReplicasAlone) {
  StartWith(8, 0);
  auto service = MakeService(1);
  Submit(service);
  MadeReady();
  service.mutable_spec()->set_priority_class_name("nothing");
  Change(service);
  EXPECT_EQ(ConditionOf("Degraded"), "True Misconfigured");
  EXPECT_THAT(Deleted(), IsEmpty());
  EXPECT_THAT(cycle_->MakeSnapshot().running, SizeIs(1)) << "what runs still counts";
}

}  // namespace
}  // namespace bimetal::test
