#include "cli/what_if.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/live.h"
#include "tests/unit/core/builders.h"

namespace bimetal::cli {
namespace {

using core::Vendor;
using testing::HasSubstr;
using testing::Not;

// One NVIDIA node with four of eight devices free, one AMD node that is free.
core::queue::Snapshot HalfFull() {
  core::queue::Snapshot snapshot;
  snapshot.nodes = {core::testing::NodeBuilder("n1").Gpus(Vendor::kNvidia, 8),
                    core::testing::NodeBuilder("a1").Gpus(Vendor::kAmd, 8)};
  snapshot.pools = {core::testing::PoolOf(Vendor::kNvidia), core::testing::PoolOf(Vendor::kAmd)};
  snapshot.queues = {core::testing::QueueNamed("default")};
  snapshot.namespaces = {{"team", {}}};
  snapshot.pods = {core::testing::PodOn("p", "n1", Vendor::kNvidia, 4)};
  return snapshot;
}

TEST(RenderWhatIf, ShowsTheOtherVendorAndTheLargestGangThatStartsNow) {
  const core::Job job = core::testing::JobBuilder("j").On(Vendor::kNvidia, 2).Pods(4);
  auto snapshot = HalfFull();
  snapshot.pending = {job};
  EXPECT_EQ(
      RenderWhatIf(snapshot, job),
      "\n"
      "What if:\n"
      "  WHAT IF           VARIANT  PODS  DEVICES  THEN               WHERE, OR WHAT WOULD HELP\n"
      "  as it is          cuda     4     8        WaitingForDevices  4 more devices of pool "
      "nvidia are released\n"
      "  the other vendor  amd?     4     8        starts now         in pool amd\n"
      "  a smaller gang    cuda     2     4        starts now         in pool nvidia\n");
}

TEST(RenderWhatIf, ShowsEachVariantAlone) {
  const core::Job job =
      core::testing::JobBuilder("j").On(Vendor::kNvidia, 8).On(Vendor::kAmd, 8).Pods(1);
  auto snapshot = HalfFull();
  snapshot.pending = {job};
  const std::string text = RenderWhatIf(snapshot, job);
  EXPECT_THAT(text, HasSubstr("as it is   rocm"));
  EXPECT_THAT(text, HasSubstr("only cuda  cuda     1     8        WaitingForDevices"));
  EXPECT_THAT(text, HasSubstr("only rocm  rocm     1     8        starts now"));
  EXPECT_THAT(text, Not(HasSubstr("smaller"))) << "it would start as it is";
}

TEST(RenderWhatIf, SaysWhereNotEvenOnePodOfEachRoleWouldStart) {
  const core::Job job = core::testing::JobBuilder("j").On(Vendor::kNvidia, 16).Pods(2);
  auto snapshot = HalfFull();
  snapshot.pending = {job};
  EXPECT_THAT(RenderWhatIf(snapshot, job), HasSubstr("not even one pod a role"));
}

TEST(SnapshotOf, SeesDevicesJobsAndPodsAsTheOperatorDoes) {
  LiveObjects live;
  auto& node = live.nodes.emplace_back();
  node.mutable_metadata()->set_name("n1");
  (*node.mutable_status()->mutable_allocatable())["nvidia.com/gpu"] = "2";
  auto& gpu = live.gpu_nodes.emplace_back();
  gpu.mutable_metadata()->set_name("n1");
  for (const auto* id : {"b", "a"}) {
    auto* device = gpu.mutable_status()->add_devices();
    device->set_id(id);
    device->set_vendor("nvidia");
    device->set_open(id[0] == 'a');
  }
  auto& pool = live.pools.emplace_back();
  pool.mutable_metadata()->set_name("p");
  pool.mutable_spec()->set_vendor("nvidia");
  auto& job = live.jobs.emplace_back();
  job.mutable_metadata()->set_name("j");
  job.mutable_metadata()->set_uid("u");
  job.mutable_metadata()->set_creation_timestamp("2026-01-01T00:00:00Z");
  auto* variant = job.mutable_spec()->add_variants();
  variant->set_name("cuda");
  variant->set_vendor("nvidia");
  variant->set_image("i");
  variant->set_devices_per_pod(1);
  auto* role = job.mutable_spec()->add_roles();
  role->set_name("w");
  role->set_replicas(1);
  const auto snapshot = SnapshotOf(live, TimePoint{0});
  ASSERT_EQ(snapshot.nodes.size(), 1U);
  const auto& devices = snapshot.nodes[0].devices.at(Vendor::kNvidia);
  EXPECT_EQ(devices.pool.value, "p");
  EXPECT_EQ(devices.offered, 2);
  ASSERT_EQ(devices.devices.size(), 2U);
  EXPECT_TRUE(devices.devices[0].open) << "sorted by id";
  ASSERT_EQ(snapshot.pending.size(), 1U);
  job.mutable_status()->set_state("Completed");
  EXPECT_TRUE(SnapshotOf(live, TimePoint{0}).pending.empty());
}

}  // namespace
}  // namespace bimetal::cli
