#include "operator/controllers/nodes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/controllers/node_status.h"
#include "tests/unit/operator/controllers/world.h"

namespace bimetal::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

std::int64_t OpenDevices(const World& world, const std::string& node, core::Vendor vendor) {
  std::int64_t open = 0;
  const auto all = world.nodes.DevicesOf(node);
  const auto devices = all.find(vendor);
  if (devices == all.end()) return 0;
  for (const auto& device : devices->second.devices) open += device.open ? 1 : 0;
  return open;
}

TEST(NodeControllerTest, ANewNodeIsShutAndGetsOneValidationPodPinnedToIt) {
  World world;
  world.nodes.Start();
  world.AddNode("n1", "nvidia", 2);
  const auto reply = world.nodes.OnReport(world.Report("n1", "nvidia", 2));
  ASSERT_EQ(reply.orders_size(), 1);
  EXPECT_TRUE(reply.orders(0).serve_device_plugin());
  EXPECT_EQ(reply.orders(0).resource_name(), "nvidia.com/gpu");
  EXPECT_THAT(reply.orders(0).open_devices(), IsEmpty());
  const auto pods = world.writes.Of("create", "pods");
  ASSERT_THAT(pods, SizeIs(1));
  EXPECT_THAT(pods[0].body, HasSubstr(R"("values":["n1"])"));
  EXPECT_THAT(pods[0].body, HasSubstr("validation:nvidia"));
  EXPECT_THAT(pods[0].body, Not(HasSubstr("nvidia.com/gpu")));
  const auto patches = world.writes.Of("patch", "nodes");
  ASSERT_THAT(patches, SizeIs(1));
  EXPECT_THAT(patches[0].body, HasSubstr("bimetal.dev/unvalidated"));
  world.nodes.OnReport(world.Report("n1", "nvidia", 2));
  EXPECT_THAT(world.writes.Of("create", "pods"), SizeIs(1)) << "the run under way is not doubled";
}

TEST(NodeControllerTest, APassOpensTheDevicesAndTakesTheTaintOff) {
  World world;
  world.nodes.Start();
  world.Admit("n1", "nvidia", 2);
  EXPECT_EQ(OpenDevices(world, "n1", core::Vendor::kNvidia), 2);
  const auto reply = world.nodes.OnReport(world.Report("n1", "nvidia", 2));
  EXPECT_THAT(reply.orders(0).open_devices(), SizeIs(2));
  EXPECT_EQ(reply.orders(0).open_fingerprint(), "f1");
}

TEST(NodeControllerTest, AFailedDeviceQuarantinesTheNodeWithItsEvidence) {
  World world;
  world.nodes.Start();
  world.AddNode("n1", "amd", 2);
  world.nodes.OnReport(world.Report("n1", "amd", 2));
  world.Appear(world.writes.Of("create", "pods").back().body, "run-1");
  world.nodes.OnReport(world.ReportRun("n1", "amd", 2, "run-1", "Pass", "Fail"));
  EXPECT_EQ(OpenDevices(world, "n1", core::Vendor::kAmd), 1) << "the sound one takes jobs";
  world.Show("n1");
  world.writes.EndAll();
  world.nodes.Reconcile();
  const auto statuses = world.writes.Of("patch", "gpunodes/status");
  ASSERT_THAT(statuses, Not(IsEmpty()));
  EXPECT_THAT(statuses.back().body, HasSubstr(R"("phase":"Quarantined")"));
  EXPECT_THAT(statuses.back().body, HasSubstr("bit 3 stuck at 1"));
}

TEST(NodeControllerTest, ARunOnTheCpuOfARealNodeProvesNothing) {
  World world;
  world.nodes.Start();
  world.AddNode("n1", "nvidia", 1);
  auto real = world.Report("n1", "nvidia", 1);
  real.mutable_inventory()->set_simulated(false);
  world.nodes.OnReport(real);
  world.Appear(world.writes.Of("create", "pods").back().body, "run-1");
  auto run = world.ReportRun("n1", "nvidia", 1, "run-1", "Pass", "Pass");
  run.mutable_inventory()->set_simulated(false);
  world.nodes.OnReport(run);
  EXPECT_EQ(OpenDevices(world, "n1", core::Vendor::kNvidia), 0);
}

TEST(NodeControllerTest, AnOldBootIdAndAnOldSequenceAreIgnored) {
  World world;
  world.nodes.Start();
  world.Admit("n1", "nvidia", 2);
  auto rebooted = world.Report("n1", "nvidia", 2);
  rebooted.set_boot_id("boot-2");
  world.nodes.OnReport(rebooted);
  EXPECT_EQ(OpenDevices(world, "n1", core::Vendor::kNvidia), 0) << "a reboot needs a new proof";
  world.nodes.OnReport(world.Report("n1", "nvidia", 2));  // a late report of boot-1
  EXPECT_EQ(OpenDevices(world, "n1", core::Vendor::kNvidia), 0);
  auto old_sequence = world.Report("n1", "nvidia", 0);
  old_sequence.set_boot_id("boot-2");
  old_sequence.set_seq(1);
  world.nodes.OnReport(old_sequence);
  EXPECT_THAT(world.nodes.DevicesOf("n1").at(core::Vendor::kNvidia).devices, SizeIs(2));
}

TEST(NodeControllerTest, ANodeWithoutDevicesIsLeftAlone) {
  World world;
  world.nodes.Start();
  world.AddNode("cpu", "nvidia", 0);
  api::ReportNodeRequest empty;
  empty.set_node_name("cpu");
  empty.set_boot_id("b");
  empty.set_seq(1);
  world.nodes.OnReport(empty);
  world.nodes.Touch("cpu");
  world.nodes.Reconcile();
  EXPECT_THAT(world.writes.writes, IsEmpty());
}

TEST(NodeControllerTest, SilenceOfTheAgentShutsTheNodeAndItsVoiceOpensItAgain) {
  World world;
  world.nodes.Start();
  world.Admit("n1", "nvidia", 2);
  world.clock.Advance(Seconds(31));
  world.nodes.Reconcile();
  EXPECT_EQ(OpenDevices(world, "n1", core::Vendor::kNvidia), 0);
  world.nodes.OnReport(world.Report("n1", "nvidia", 2));
  EXPECT_EQ(OpenDevices(world, "n1", core::Vendor::kNvidia), 2);
}

TEST(NodeControllerTest, AfterARestartNothingIsShutBeforeAgentsHadTimeToReport) {
  World world;
  world.AddNode("n1", "nvidia", 2);
  api::GPUNode node;
  node.mutable_metadata()->set_name("n1");
  auto* vendor = node.mutable_status()->add_vendors();
  vendor->set_vendor("nvidia");
  for (const char* id : {"n1-0", "n1-1"}) {
    auto* record = vendor->add_records();
    record->set_id(id);
    record->set_validated_fingerprint("f1");
    record->set_validated_boot_id("boot-1");
    record->set_validated_time(FormatTime(world.clock.Now()));
  }
  node.mutable_status()->set_phase("Admitted");
  node.mutable_status()->set_boot_id("boot-1");
  world.store.gpu_nodes["n1"] = node;
  world.nodes.Start();
  world.nodes.Reconcile();
  EXPECT_THAT(world.writes.writes, IsEmpty()) << "no taint, no status, no new run";
  world.nodes.OnReport(world.Report("n1", "nvidia", 2));
  EXPECT_EQ(OpenDevices(world, "n1", core::Vendor::kNvidia), 2) << "the stored pass still counts";
  EXPECT_THAT(world.writes.Of("create", "pods"), IsEmpty());
}

// What the status of a node said before the operator that is under test.
api::GPUNode Known(const std::string& name, const std::string& vendor, const std::string& phase) {
  api::GPUNode node;
  node.mutable_metadata()->set_name(name);
  auto* status = node.mutable_status()->add_vendors();
  status->set_vendor(vendor);
  status->set_phase(phase);
  return node;
}

TEST(NodeControllerTest, AVendorSettlesUntilItsOpenNodesAreHeardOrTheirTimeIsUp) {
  World world;
  world.AddNode("n1", "nvidia", 2);
  world.AddNode("n2", "nvidia", 2);
  world.AddNode("a1", "amd", 2);
  world.AddNode("shut", "amd", 2);
  world.store.gpu_nodes["n1"] = Known("n1", "nvidia", "Admitted");
  world.store.gpu_nodes["n2"] = Known("n2", "nvidia", "Admitted");
  world.store.gpu_nodes["a1"] = Known("a1", "amd", "Admitted");
  world.store.gpu_nodes["shut"] = Known("shut", "amd", "Quarantined");
  world.store.nodes["n2"].node.ready = false;
  world.nodes.Start();
  using core::Vendor;
  EXPECT_THAT(world.nodes.Settling(), ElementsAre(Vendor::kAmd, Vendor::kNvidia));
  world.nodes.OnReport(world.Report("a1", "amd", 2));
  EXPECT_THAT(world.nodes.Settling(), ElementsAre(Vendor::kNvidia)) << "a shut node is not awaited";
  world.nodes.OnReport(world.Report("n1", "nvidia", 2));
  EXPECT_THAT(world.nodes.Settling(), IsEmpty()) << "nor one that is not ready";
  world.store.nodes["n2"].node.ready = true;
  EXPECT_THAT(world.nodes.Settling(), ElementsAre(Vendor::kNvidia));
  world.clock.Advance(Seconds(30));
  EXPECT_THAT(world.nodes.Settling(), IsEmpty());
}

TEST(NodePatchTest, KeepsTheTaintsOfOthersAndNamesTheVersionItRead) {
  op::NodeRecord node;
  node.resource_version = "42";
  api::Taint other;
  other.set_key("maintenance");
  other.set_effect("NoExecute");
  other.set_time_added("2026-01-01T00:00:00Z");
  node.taints.push_back(other);
  EXPECT_EQ(op::NodePatch(node, true, {}),
            R"({"metadata":{"resourceVersion":"42"},"spec":{"taints":[)"
            R"({"key":"maintenance","effect":"NoExecute","timeAdded":"2026-01-01T00:00:00Z"},)"
            R"({"key":"bimetal.dev/unvalidated","effect":"NoSchedule"}]}})");
  EXPECT_EQ(op::NodePatch(node, false, {}), "") << "nothing of ours to take off";
}

}  // namespace
}  // namespace bimetal::test
