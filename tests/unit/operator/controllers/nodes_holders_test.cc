// A finding closes a device under a running pod: who is told, and who is evicted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/controllers/nodes.h"
#include "tests/unit/operator/controllers/world.h"

namespace bimetal::test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// Node n1 with three open devices; pods of job "train" and a foreign one run on it.
class NodeHoldersTest : public testing::Test {
 protected:
  NodeHoldersTest() {
    world_.nodes.Start();
    world_.Admit("n1", "nvidia", 3);
    world_.AddNode("n2", "nvidia", 1);
    world_.Show("n1");
    AddPod("train-1-0", "n1", "job-uid");
    AddPod("train-1-1", "n1", "job-uid");
    AddPod("train-1-2", "n2", "job-uid");
    AddPod("notebook", "n1", "");
  }

  op::NodeController Restarted() {
    return {world_.clock, world_.store, world_.writes, World::NodeOptions(), [] {}};
  }

  void OnFault(const std::string& what) {
    world_.store.profiles["quick"].mutable_spec()->set_on_fault(what);
  }

  void AddPod(const std::string& name, const std::string& node, const std::string& job,
              bool deleting = false, const std::string& phase = "Running") {
    api::Pod pod;
    auto& meta = *pod.mutable_metadata();
    meta.set_namespace_("team");
    meta.set_name(name);
    meta.set_uid("uid-" + name);
    meta.set_creation_timestamp(FormatTime(world_.clock.Now()));
    if (deleting) meta.set_deletion_timestamp(FormatTime(world_.clock.Now()));
    if (!job.empty()) {
      auto& labels = *meta.mutable_labels();
      labels[op::kJobUidLabel] = job;
      labels[op::kJobNameLabel] = "train";
      labels[op::kAttemptLabel] = "1";
      labels[op::kIndexLabel] = name.substr(name.size() - 1);
      labels[op::kRoleLabel] = "worker";
    }
    pod.mutable_spec()->set_node_name(node);
    pod.mutable_status()->set_phase(phase);
    world_.store.PutPod(op::MakePodRecord(pod, world_.store.resources));
  }

  // n1-0 is held by `holder`, n1-1 by train-1-1; a finding closes n1-0.
  api::ReportNodeRequest Faulty(const std::string& holder) {
    auto report = world_.Report("n1", "nvidia", 3);
    auto& inventory = *report.mutable_inventory();
    inventory.mutable_devices(0)->set_in_use(true);
    inventory.mutable_devices(0)->set_holder(holder);
    inventory.mutable_devices(1)->set_in_use(true);
    inventory.mutable_devices(1)->set_holder("team/train-1-1");
    auto* finding = inventory.add_findings();
    finding->set_code("XidFatal");
    finding->set_severity("Critical");
    finding->set_device("n1-0");
    finding->set_vendor("nvidia");
    finding->set_effect("Cordon");
    finding->set_event("boot-1/xid/79/123");
    finding->set_evidence("NVRM: Xid (PCI:0000:1b:00): 79");
    return report;
  }

  void Hear(op::NodeController& nodes, const std::string& holder) {
    nodes.OnReport(Faulty(holder));
    world_.writes.EndAll();
  }

  std::vector<op::Write> Told() const {
    std::vector<op::Write> out;
    for (const auto& write : world_.writes.Of("create", "events")) {
      if (write.body.find("DeviceFault") != std::string::npos) out.push_back(write);
    }
    return out;
  }
  // Without our own validation pods.
  std::vector<op::Write> Deleted() const {
    std::vector<op::Write> out;
    for (const auto& write : world_.writes.Of("delete", "pods")) {
      if (write.name_space == "team") out.push_back(write);
    }
    return out;
  }

  World world_;
};

TEST_F(NodeHoldersTest, TheJobIsToldOnceAndItsPodLeftAlone) {
  Hear(world_.nodes, "team/train-1-0");
  ASSERT_THAT(Told(), SizeIs(1));
  const auto told = Told()[0];
  EXPECT_EQ(told.name_space, "team");
  api::Event event;
  ASSERT_TRUE(kube::FromJson(told.body, &event));
  EXPECT_EQ(event.metadata().namespace_(), "team");
  EXPECT_EQ(event.reason(), "DeviceFault");
  EXPECT_EQ(event.type(), "Warning");
  EXPECT_EQ(event.involved_object().api_version(), "bimetal.dev/v1alpha1");
  EXPECT_EQ(event.involved_object().kind(), "GPUJob");
  EXPECT_EQ(event.involved_object().namespace_(), "team");
  EXPECT_EQ(event.involved_object().name(), "train");
  EXPECT_EQ(event.involved_object().uid(), "job-uid");
  for (const auto* part : {"train-1-0", "n1-0", "Xid (PCI:0000:1b:00): 79", "retry rules decide"}) {
    EXPECT_THAT(event.message(), HasSubstr(part));
  }
  Hear(world_.nodes, "team/train-1-0");
  Hear(world_.nodes, "");  // the kubelet did not answer
  Hear(world_.nodes, "team/train-1-0");
  EXPECT_THAT(Told(), SizeIs(1));
  EXPECT_THAT(Deleted(), IsEmpty());
}

TEST_F(NodeHoldersTest, TheSameEventAfterARestartAndAnotherForAnotherBoot) {
  Hear(world_.nodes, "team/train-1-0");
  world_.Settle("n1");
  *world_.store.gpu_nodes["n1"].mutable_status() = world_.Written("n1");
  auto restarted = Restarted();
  restarted.Start();
  Hear(restarted, "team/train-1-0");
  ASSERT_THAT(Told(), SizeIs(2));
  EXPECT_EQ(Told()[1].name, Told()[0].name) << "the API server refuses its twin";
  auto report = Faulty("team/train-1-0");
  report.set_boot_id("boot-2");
  restarted.OnReport(report);
  ASSERT_THAT(Told(), SizeIs(3));
  EXPECT_NE(Told()[2].name, Told()[0].name);
}

TEST_F(NodeHoldersTest, APodThatTakesAClosedDeviceLaterIsToldToo) {
  Hear(world_.nodes, "");
  EXPECT_THAT(Told(), IsEmpty());
  Hear(world_.nodes, "team/train-1-0");
  EXPECT_THAT(Told(), SizeIs(1));
}

TEST_F(NodeHoldersTest, APodOfNoJobIsToldItselfAndNeverEvicted) {
  OnFault("Evict");
  Hear(world_.nodes, "team/notebook");
  ASSERT_THAT(Told(), SizeIs(1));
  api::Event event;
  ASSERT_TRUE(kube::FromJson(Told()[0].body, &event));
  EXPECT_EQ(event.involved_object().api_version(), "v1");
  EXPECT_EQ(event.involved_object().kind(), "Pod");
  EXPECT_EQ(event.involved_object().name(), "notebook");
  EXPECT_EQ(event.involved_object().uid(), "uid-notebook");
  EXPECT_THAT(event.message(), HasSubstr("left alone"));
  EXPECT_THAT(Deleted(), IsEmpty());
}

TEST_F(NodeHoldersTest, EvictDeletesTheHolderAloneAndOnce) {
  OnFault("Evict");
  Hear(world_.nodes, "team/train-1-0");
  ASSERT_THAT(Told(), SizeIs(1));
  EXPECT_THAT(Told()[0].body, HasSubstr("onFault: Evict"));
  ASSERT_THAT(Deleted(), SizeIs(1));
  EXPECT_EQ(Deleted()[0].name_space, "team");
  EXPECT_EQ(Deleted()[0].name, "train-1-0");
  Hear(world_.nodes, "team/train-1-0");
  EXPECT_THAT(Deleted(), SizeIs(1));

  // Another operator finds the pod on its way out, then gone while the agent still names it.
  world_.Settle("n1");
  *world_.store.gpu_nodes["n1"].mutable_status() = world_.Written("n1");
  AddPod("train-1-0", "n1", "job-uid", true);
  auto restarted = Restarted();
  restarted.Start();
  Hear(restarted, "team/train-1-0");
  world_.store.RemovePod({"team", "train-1-0"});
  Hear(restarted, "team/train-1-0");
  EXPECT_THAT(Deleted(), SizeIs(1));
}

TEST_F(NodeHoldersTest, ADeletionThatFailedIsAskedForAgain) {
  OnFault("Evict");
  world_.nodes.OnReport(Faulty("team/train-1-0"));
  world_.writes.EndAll(Fail(ErrorCode::kUnavailable, "no answer"));
  EXPECT_THAT(Deleted(), SizeIs(1));
  Hear(world_.nodes, "team/train-1-0");
  EXPECT_THAT(Deleted(), SizeIs(2));
}

TEST_F(NodeHoldersTest, AnAgentHasNoSayAboutPodsOfOtherNodesNorEndedOnes) {
  OnFault("Evict");
  AddPod("train-1-0", "n1", "job-uid", false, "Failed");
  for (const auto* holder :
       {"team/train-1-2", "team/train-1-0", "team/unknown", "train-1-1", "/"}) {
    Hear(world_.nodes, holder);
  }
  EXPECT_THAT(Told(), IsEmpty());
  EXPECT_THAT(Deleted(), IsEmpty());
}

TEST_F(NodeHoldersTest, UnderObserveNobodyIsEvicted) {
  OnFault("Evict");
  world_.store.pools["nvidia"].mutable_spec()->set_gate("Observe");
  Hear(world_.nodes, "team/train-1-0");
  EXPECT_THAT(Told(), SizeIs(1));
  EXPECT_THAT(Deleted(), IsEmpty());
}

}  // namespace
}  // namespace bimetal::test
