// Admission carried out: the path, slots and breakers, findings, capabilities, restarts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/controllers/fleet.h"
#include "operator/controllers/gated_pods.h"
#include "operator/controllers/node_status.h"
#include "operator/controllers/nodes.h"
#include "tests/unit/operator/controllers/world.h"

namespace bimetal::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

std::int64_t OpenDevices(const op::NodeController& nodes, const std::string& node) {
  std::int64_t open = 0;
  for (const auto& [vendor, devices] : nodes.DevicesOf(node)) {
    for (const auto& device : devices.devices) open += device.open ? 1 : 0;
  }
  return open;
}

// The name of the pod that a write creates.
std::string PodName(const op::Write& write) { return write.name; }

TEST(NodeAdmissionTest, ThePathIsProvenByAPodThatAsksForADeviceWhileTheTaintStays) {
  World world;
  world.store.profiles["quick"].mutable_spec()->set_path_check("Run");
  world.nodes.Start();
  world.AddNode("n1", "nvidia", 2);
  world.Show("n1");
  world.nodes.OnReport(world.Report("n1", "nvidia", 2));
  world.Appear(world.writes.Of("create", "pods").back().body, "run-1");
  world.nodes.OnReport(world.ReportRun("n1", "nvidia", 2, "run-1", "Pass", "Pass"));
  EXPECT_EQ(OpenDevices(world.nodes, "n1"), 0);
  world.Vanish(PodName(world.writes.Of("create", "pods").back()));
  const auto reply = world.nodes.OnReport(world.Report("n1", "nvidia", 2));
  const auto pods = world.writes.Of("create", "pods");
  ASSERT_THAT(pods, SizeIs(2));
  EXPECT_THAT(pods[1].body, HasSubstr(R"("limits":{"nvidia.com/gpu":"1"})"));
  EXPECT_THAT(pods[1].body, HasSubstr(R"("bimetal.dev/run":"path")"));
  EXPECT_THAT(pods[1].body, HasSubstr(R"("--level","L0")"));
  EXPECT_THAT(pods[1].body, Not(HasSubstr("--device")));
  EXPECT_THAT(reply.orders(0).open_devices(), SizeIs(2)) << "the plug-in offers what has passed";
  EXPECT_EQ(OpenDevices(world.nodes, "n1"), 0) << "our own scheduler places nothing yet";

  world.Appear(pods[1].body, "run-2");
  auto run = world.ReportRun("n1", "nvidia", 1, "run-2", "Pass", "Pass");
  *run.mutable_inventory() = world.Report("n1", "nvidia", 2).inventory();
  world.nodes.OnReport(run);
  EXPECT_EQ(OpenDevices(world.nodes, "n1"), 2);
  world.Settle("n1");
  EXPECT_EQ(world.Written("n1").reason(), "Passed");
  EXPECT_EQ(world.Written("n1").vendors(0).path().fingerprint(), "f1");
}

TEST(NodeAdmissionTest, NoMoreRunsThanTheProfileAllowsAndTheNextStartsWhenOneEnds) {
  World world;
  world.store.profiles["quick"].mutable_spec()->mutable_breakers()->set_max_runs(3);
  world.nodes.Start();
  for (int i = 0; i < 10; ++i) {
    const std::string name = "n" + std::to_string(i);
    world.AddNode(name, "nvidia", 1);
    world.nodes.OnReport(world.Report(name, "nvidia", 1));
  }
  EXPECT_THAT(world.writes.Of("create", "pods"), SizeIs(3));
  for (std::size_t done = 0; done < 10; ++done) {
    const auto pods = world.writes.Of("create", "pods");
    ASSERT_THAT(pods, SizeIs(std::min<std::size_t>(10, done + 3)));
    const auto record = world.Appear(pods[done].body, "run-" + std::to_string(done));
    const std::string node = record.holds.node.value;
    world.nodes.OnReport(
        world.ReportRun(node, "nvidia", 1, "run-" + std::to_string(done), "Pass", "Pass"));
    world.Vanish(record.holds.name);
    world.nodes.Touch(node);
    world.nodes.Reconcile();
    EXPECT_EQ(OpenDevices(world.nodes, node), 1);
  }
}

TEST(NodeAdmissionTest, TheSameFailureOnThreeNodesOfADriverStopsItForNodesThatHadPassed) {
  World world;
  world.nodes.Start();
  const op::GatedPodController gated(world.clock, world.store, world.nodes, world.writes, {}, [] {});
  op::FleetController fleet(world.clock, world.store, world.nodes, world.jobs, gated, world.cycle,
                            world.writes);
  for (int i = 0; i < 6; ++i) world.Admit("n" + std::to_string(i), "nvidia", 1);
  for (auto& write : world.writes.Of("create", "pods")) world.Vanish(write.name);
  const auto upgrade = [&](const std::string& node) {
    const auto before = world.writes.Of("create", "pods").size();
    auto report = world.Report(node, "nvidia", 1, "f2");
    report.mutable_inventory()->mutable_stacks(0)->set_driver_version("2.0");
    world.nodes.OnReport(report);
    const auto pods = world.writes.Of("create", "pods");
    if (pods.size() == before) return false;
    const std::string id = "upgrade-" + node;
    world.Appear(pods.back().body, id);
    auto run = world.ReportRun(node, "nvidia", 1, id, "Fail", "Fail");
    *run.mutable_inventory() = report.inventory();
    run.mutable_runs(0)->set_fingerprint("f2");
    world.nodes.OnReport(run);
    return true;
  };
  EXPECT_TRUE(upgrade("n0"));
  EXPECT_TRUE(upgrade("n1"));
  EXPECT_EQ(world.nodes.BreakerText("nvidia"), "");
  EXPECT_TRUE(upgrade("n2"));
  EXPECT_THAT(world.nodes.BreakerText("nvidia"), HasSubstr("3 nodes failed check memory-pattern"));
  EXPECT_FALSE(upgrade("n3"));
  EXPECT_EQ(OpenDevices(world.nodes, "n3"), 0) << "unproven under the new driver";
  EXPECT_EQ(OpenDevices(world.nodes, "n4"), 1) << "the old driver is not concerned";
  fleet.Reconcile();
  EXPECT_THAT(world.writes.Of("patch", "gpupools/status").back().body, HasSubstr("BreakerOpen"));
  EXPECT_THAT(world.writes.Of("create", "events").back().body, HasSubstr(R"("kind":"GPUPool")"));
  const auto events = world.writes.Of("create", "events").size();
  world.clock.Advance(Seconds(10));
  fleet.Reconcile();
  EXPECT_EQ(world.writes.Of("create", "events").size(), events) << "said once";
  const auto sample = fleet.Sample(true);
  ASSERT_THAT(sample.breakers, SizeIs(2));
  EXPECT_TRUE(sample.breakers[1].open);
  // A person's word passes it.
  world.Show("n3");
  world.store.gpu_nodes["n3"].mutable_spec()->set_revalidate("I have looked");
  EXPECT_TRUE(upgrade("n3"));
}

TEST(NodeAdmissionTest, AFindingThatCordonsTakesItsDeviceAloneAndIsToldOnce) {
  World world;
  world.nodes.Start();
  world.Admit("n1", "nvidia", 2);
  world.Show("n1");
  auto report = world.Report("n1", "nvidia", 2);
  auto* finding = report.mutable_inventory()->add_findings();
  finding->set_code("XidFatal");
  finding->set_severity("Critical");
  finding->set_device("n1-1");
  finding->set_vendor("nvidia");
  finding->set_effect("Cordon");
  finding->set_event("boot-1/xid/79/123");
  finding->set_evidence("NVRM: Xid (PCI:0000:1b:00): 79");
  finding->set_remedy("reset the GPU");
  world.nodes.OnReport(report);
  world.writes.EndAll();
  EXPECT_EQ(OpenDevices(world.nodes, "n1"), 1);
  const auto told = [&] {
    int count = 0;
    for (const auto& write : world.writes.Of("create", "events")) {
      count += write.body.find("XidFatal") != std::string::npos ? 1 : 0;
    }
    return count;
  };
  EXPECT_EQ(told(), 1);
  report.set_seq(++world.seq);
  world.nodes.OnReport(report);
  EXPECT_EQ(told(), 1);
  finding->set_event("boot-1/xid/79/456");
  report.set_seq(++world.seq);
  world.nodes.OnReport(report);
  EXPECT_EQ(told(), 2) << "it has happened again";
  world.Settle("n1");
  const auto status = world.Written("n1");
  EXPECT_EQ(status.finding_count(), 1);
  EXPECT_EQ(status.findings(0).effect(), "Cordon");
  EXPECT_THAT(status.vendors(0).handled_events(), SizeIs(2));
  EXPECT_THAT(status.vendors(0).records(1).cordoned(), HasSubstr("reset the GPU"));
}

TEST(NodeAdmissionTest, TheAnnotationAsksForARunAsTheSpecDoes) {
  World world;
  world.nodes.Start();
  world.Admit("n1", "nvidia", 1);
  world.Vanish(world.writes.Of("create", "pods").back().name);
  world.Show("n1");
  world.nodes.OnReport(world.Report("n1", "nvidia", 1));
  EXPECT_THAT(world.writes.Of("create", "pods"), SizeIs(1));
  (*world.store.gpu_nodes["n1"]
        .mutable_metadata()
        ->mutable_annotations())["bimetal.dev/revalidate"] = "L2 after a repair";
  world.nodes.Touch("n1");
  world.nodes.Reconcile();
  ASSERT_THAT(world.writes.Of("create", "pods"), SizeIs(2));
  EXPECT_THAT(world.writes.Of("create", "pods")[1].body, HasSubstr(R"("--level","L2")"));
  EXPECT_EQ(OpenDevices(world.nodes, "n1"), 0);
}

TEST(NodeAdmissionTest, CapabilitiesBecomeLabelsOnlyWithThePass) {
  World world;
  world.nodes.Start();
  world.AddNode("n1", "nvidia", 1);
  auto& record = world.store.nodes["n1"];  // as the first decision leaves it
  record.taints.emplace_back().set_key("bimetal.dev/unvalidated");
  record.node.labels["bimetal.dev/nvidia"] = "Validating";
  world.nodes.OnReport(world.Report("n1", "nvidia", 1));
  EXPECT_THAT(world.writes.Of("patch", "nodes"), IsEmpty());
  world.Appear(world.writes.Of("create", "pods").back().body, "run-1");
  auto run = world.ReportRun("n1", "nvidia", 1, "run-1", "Pass", "Pass");
  run.mutable_runs(0)->mutable_verdicts(0)->set_capability("fp8-ocp");
  world.nodes.OnReport(run);
  const auto patches = world.writes.Of("patch", "nodes");
  ASSERT_THAT(patches, SizeIs(1));
  EXPECT_THAT(patches[0].body, HasSubstr(R"("precision.bimetal.dev/fp8-ocp":"validated")"));
  EXPECT_THAT(patches[0].body, HasSubstr(R"("taints":[])"));
}

TEST(NodePatchTest, TakesOffTheLabelOfACapabilityThatIsNotProvenAnyMore) {
  op::NodeRecord node;
  node.resource_version = "42";
  node.node.labels = {{"precision.bimetal.dev/bf16", "validated"},
                      {"precision.bimetal.dev/fp8-ocp", "validated"},
                      {"other", "x"}};
  EXPECT_EQ(
      op::NodePatch(node, false, {{"precision.bimetal.dev/bf16", "validated"}}),
      R"({"metadata":{"resourceVersion":"42","labels":{"precision.bimetal.dev/fp8-ocp":null}}})");
  EXPECT_EQ(op::NodePatch(node, false,
                          {{"precision.bimetal.dev/bf16", "validated"},
                           {"precision.bimetal.dev/fp8-ocp", "validated"}}),
            "");
}

// At every step of a node's way an operator that starts anew from the status goes on as the old
// one would have.
TEST(NodeAdmissionTest, ARestartAtAnyStepOpensAndRunsNothingElse) {
  World world;
  world.nodes.Start();
  world.AddNode("n1", "nvidia", 2);
  world.Show("n1");
  const auto compare = [&](const std::string& step) {
    world.Settle("n1");
    World other;
    other.store = world.store;
    *other.store.gpu_nodes["n1"].mutable_status() = world.Written("n1");
    other.clock.Advance(world.clock.Now() - other.clock.Now());
    other.seq = world.seq;
    other.nodes.Start();
    other.nodes.OnReport(other.Report("n1", "nvidia", 2));
    EXPECT_EQ(OpenDevices(other.nodes, "n1"), OpenDevices(world.nodes, "n1")) << step;
    EXPECT_THAT(other.writes.Of("create", "pods"), IsEmpty()) << step;
    EXPECT_THAT(other.writes.Of("patch", "gpunodes/status"), IsEmpty())
        << step << ": " << other.writes.Of("patch", "gpunodes/status").back().body << "\nwas "
        << world.writes.Of("patch", "gpunodes/status").back().body;
  };
  world.nodes.OnReport(world.Report("n1", "nvidia", 2));
  world.Appear(world.writes.Of("create", "pods").back().body, "run-1");
  compare("while the run goes on");
  world.nodes.OnReport(world.ReportRun("n1", "nvidia", 2, "run-1", "Pass", "Fail"));
  world.Vanish(world.writes.Of("create", "pods").back().name);
  compare("after a failure");
  world.store.gpu_nodes["n1"].mutable_spec()->set_revalidate("repaired");
  world.nodes.OnReport(world.Report("n1", "nvidia", 2));
  world.Appear(world.writes.Of("create", "pods").back().body, "run-2");
  compare("while it is run again");
  auto run = world.ReportRun("n1", "nvidia", 1, "run-2", "Pass", "Pass");
  *run.mutable_inventory() = world.Report("n1", "nvidia", 2).inventory();
  world.nodes.OnReport(run);
  world.Vanish(world.writes.Of("create", "pods").back().name);
  EXPECT_EQ(OpenDevices(world.nodes, "n1"), 2) << "n1-1 was not rechecked; its pass stands";
  compare("after the second run");
}

}  // namespace
}  // namespace bimetal::test
