#include "agent/devices/inventory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/agent/devices/test_tree.h"

namespace bimetal::agent {
namespace {

using testing::HasSubstr;

Device Gpu(const std::string& id, const std::string& model = "A") {
  Device d;
  d.id.value = id;
  d.model = Reading<std::string>::Of(model);
  d.memory_bytes = Reading<std::int64_t>::Of(1);
  return d;
}

Inventory Joined(std::vector<Device> devices) {
  Inventory inventory;
  SourceReport report;
  report.devices = std::move(devices);
  AddReport(std::move(report), Vendor::kNvidia, inventory);
  FinishInventory(inventory);
  return inventory;
}

TEST(InventoryTest, SortsByIdAndCountsADeviceOnce) {
  const auto inventory = Joined({Gpu("GPU-b"), Gpu("GPU-a"), Gpu("GPU-b")});
  ASSERT_EQ(inventory.devices.size(), 2u);
  EXPECT_EQ(inventory.devices[0].id.value, "GPU-a");
  EXPECT_EQ(FindCode(inventory.findings, "DuplicateDevice")->device, "GPU-b");
}

TEST(InventoryTest, BoundsIdsToWhatTheKubeletTakes) {
  const auto inventory =
      Joined({Gpu(std::string(200, 'x')), Gpu(std::string(199, 'x')), Gpu("a b\n"), Gpu("")});
  ASSERT_EQ(inventory.devices.size(), 4u);
  for (const Device& device : inventory.devices) {
    EXPECT_LE(device.id.value.size(), 63u);
    EXPECT_EQ(device.id.value.find_first_of(" \n"), std::string::npos);
    EXPECT_FALSE(device.id.value.empty());
  }
}

TEST(InventoryTest, R04ReportsModelsThatCleanToOneLabel) {
  const auto inventory = Joined({Gpu("a", "Accel (X)"), Gpu("b", "Accel [X]"), Gpu("c", "Other")});
  const Finding* clash = FindCode(inventory.findings, "LabelClash");
  ASSERT_NE(clash, nullptr);
  EXPECT_THAT(clash->evidence, HasSubstr("'Accel (X)' 'Accel [X]'"));
  // The raw names stay.
  EXPECT_EQ(inventory.devices[0].model.value, "Accel (X)");
}

TEST(InventoryTest, SaysWhatIsOddAboutADevice) {
  Device gpu = Gpu("a");
  gpu.memory_bytes = Reading<std::int64_t>::Unknown("not supported (3)");
  gpu.uncorrected_errors = Reading<std::int64_t>::Of(4);
  gpu.link_width = Reading<std::int64_t>::Of(8);
  gpu.link_width_max = Reading<std::int64_t>::Of(16);
  const auto inventory = Joined({gpu});
  EXPECT_EQ(FindCode(inventory.findings, "MemorySizeUnknown")->evidence, "not supported (3)");
  EXPECT_THAT(FindCode(inventory.findings, "UncorrectedMemoryErrors")->evidence, HasSubstr("4"));
  EXPECT_EQ(FindCode(inventory.findings, "LinkWidthReduced")->evidence, "x8 of x16");
}

TEST(InventoryTest, SaysWhereAReaderCannotBeStarted) {
  TestTree tree;
  tree.Write("proc/sys/kernel/osrelease", "6.8.0\n");
  InventoryOptions options;
  options.probe.command = {"/no/such/program"};
  const auto inventory = ReadInventory(tree.root(), options);
  EXPECT_EQ(inventory.kernel.value, "6.8.0");
  EXPECT_FALSE(inventory.boot_id.known());
  EXPECT_EQ(inventory.findings.size(), 2u);
  EXPECT_NE(FindCode(inventory.findings, "ProbeFailed"), nullptr);
}

}  // namespace
}  // namespace bimetal::agent
