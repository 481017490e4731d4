#include "agent/devices/amd/amd_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "agent/devices/amd/kfd.h"
#include "tests/unit/agent/devices/test_tree.h"

namespace bimetal::agent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kNodes[] = "sys/class/kfd/kfd/topology/nodes/";

// Buses 1, 2, ...; one silicon a bus.
std::string Address(int bus) {
  return std::string("0000:0") + static_cast<char>('0' + bus) + ":00.0";
}

void AddCard(TestTree& tree, int bus, int render, const std::string& mode = "") {
  const std::string folder = "sys/bus/pci/devices/" + Address(bus) + "/";
  tree.Write(folder + "vendor", "0x1002\n").Write(folder + "device", "0x74a1\n");
  tree.Write(folder + "class", "0x120000\n");
  tree.Write(folder + "uevent", "DRIVER=amdgpu\nPCI_SLOT_NAME=" + Address(bus) + "\n");
  tree.Write(folder + "unique_id", "fa5e00000000000" + std::to_string(bus) + "\n");
  tree.Write(folder + "mem_info_vram_total", "206141652992\n");
  tree.Write(folder + "drm/renderD" + std::to_string(render) + "/dev", "226:1\n");
  if (!mode.empty()) tree.Write(folder + "current_compute_partition", mode + "\n");
}

void AddKfdNode(TestTree& tree, int node, int bus, int function, int render) {
  const std::string folder = kNodes + std::to_string(node) + "/";
  tree.Write(folder + "gpu_id", std::to_string(1000 + node));
  tree.Write(folder + "properties",
             "simd_count 1216\nsimd_per_cu 4\ngfx_target_version 90402\nvendor_id 4098\n"
             "device_id 29857\nlocation_id " +
                 std::to_string((bus << 8) + function) + "\ndomain 0\ndrm_render_minor " +
                 std::to_string(render) + "\nunique_id " +
                 std::to_string(0xfa5e000000000000u + static_cast<unsigned>(bus)) + "\n");
  tree.Write(folder + "mem_banks/0/properties", "heap_type 1\nsize_in_bytes 206141652992\n");
}

void AddCpuNode(TestTree& tree) {
  tree.Write(std::string(kNodes) + "0/properties", "cpu_cores_count 96\nsimd_count 0\n");
  tree.Write(std::string(kNodes) + "0/gpu_id", "0\n");
}

// 8 GPUs in 8 partitions: 8 PCI devices and 56 platform devices.
void AddPartitionedTree(TestTree& tree, const std::string& entry, int entries = 56) {
  int number = 0;
  for (int bus = 1; bus <= 8; ++bus) {
    AddCard(tree, bus, 128 + 8 * (bus - 1));
    for (int part = 1; part < 8 && number < entries; ++part, ++number) {
      tree.Write("sys/devices/platform/" + entry + std::to_string(number) + "/drm/renderD" +
                     std::to_string(128 + 8 * (bus - 1) + part) + "/dev",
                 "226:1\n");
    }
  }
}

void AddPartitionedKfd(TestTree& tree, int nodes = 64) {
  AddCpuNode(tree);
  for (int i = 0; i < nodes; ++i) AddKfdNode(tree, 1 + i, 1 + i / 8, i % 8, 128 + i);
}

TEST(GfxTargetTest, FollowsTheCompilersNames) {
  EXPECT_EQ(GfxTarget(90402), "gfx942");
  EXPECT_EQ(GfxTarget(90010), "gfx90a");
  EXPECT_EQ(GfxTarget(90500), "gfx950");
  EXPECT_EQ(GfxTarget(90006), "gfx906");
  EXPECT_EQ(GfxTarget(100306), "gfx1036");
  EXPECT_EQ(GfxTarget(120001), "gfx1201");
  EXPECT_EQ(GfxTarget(0), "");
}

TEST(AmdSourceTest, JoinsDeviceTreeAndKfd) {
  TestTree tree;
  AddCpuNode(tree);
  AddCard(tree, 1, 128, "SPX");
  AddKfdNode(tree, 1, 1, 0, 128);
  tree.Write("sys/module/amdgpu/version", "6.12.12\n");
  const auto report = ReadAmd(tree.root());
  ASSERT_EQ(report.devices.size(), 1u);
  const Device& gpu = report.devices[0];
  EXPECT_EQ(gpu.id.value, "GPU-fa5e000000000001");
  EXPECT_EQ(gpu.model.value, "AMD Instinct MI300X");
  EXPECT_EQ(gpu.architecture.value, "gfx942");
  EXPECT_EQ(gpu.compute_units.value, 304);
  EXPECT_EQ(gpu.memory_bytes.value, 206141652992);
  EXPECT_EQ(gpu.driver.value, "6.12.12");
  EXPECT_EQ(gpu.partition.value, "SPX");
  EXPECT_TRUE(gpu.healthy.known() && gpu.healthy.value);
  EXPECT_FALSE(gpu.parent.known());
  EXPECT_THAT(gpu.device_nodes, ElementsAre("/dev/dri/renderD128", "/dev/kfd"));
  EXPECT_THAT(report.findings, ElementsAre());
}

// R02: the driver's name for a partition's entry has a dot or an underscore.
TEST(AmdSourceTest, R02FindsSixtyFourPartitionsUnderEitherName) {
  for (const std::string entry : {"amdgpu_xcp.", "amdgpu_xcp_"}) {
    TestTree alone;
    AddPartitionedTree(alone, entry);
    EXPECT_EQ(ReadAmd(alone.root()).devices.size(), 64u) << entry;
    TestTree both;
    AddPartitionedTree(both, entry);
    AddPartitionedKfd(both);
    const auto report = ReadAmd(both.root());
    EXPECT_EQ(report.devices.size(), 64u) << entry;
    EXPECT_EQ(FindCode(report.findings, "InventoryInconsistent"), nullptr) << entry;
    EXPECT_EQ(report.devices[0].parent.value, "GPU-fa5e000000000001");
  }
}

TEST(AmdSourceTest, R02GivesThePartitionsTheSameIdsWithAndWithoutKfd) {
  TestTree tree;
  AddPartitionedTree(tree, "amdgpu_xcp.");
  TestTree both;
  AddPartitionedTree(both, "amdgpu_xcp.");
  AddPartitionedKfd(both);
  std::vector<std::string> without;
  std::vector<std::string> with;
  for (const Device& d : ReadAmd(tree.root()).devices) without.push_back(d.parent.value);
  for (const Device& d : ReadAmd(both.root()).devices) with.push_back(d.id.value);
  EXPECT_EQ(with[1], "GPU-fa5e000000000001-p1");
  EXPECT_EQ(std::count(without.begin(), without.end(), "GPU-fa5e000000000001"), 7);
}

TEST(AmdSourceTest, R02ReportsBothNumbersWhereSourcesDiffer) {
  TestTree tree;
  AddPartitionedTree(tree, "amdgpu_xcp.", 40);
  AddPartitionedKfd(tree);
  const auto report = ReadAmd(tree.root());
  EXPECT_EQ(report.devices.size(), 64u);
  const Finding* finding = FindCode(report.findings, "InventoryInconsistent");
  ASSERT_NE(finding, nullptr);
  EXPECT_THAT(finding->evidence, HasSubstr("48"));
  EXPECT_THAT(finding->evidence, HasSubstr("64"));
}

TEST(AmdSourceTest, ListsAGpuThatKfdRefusedAsUnhealthy) {
  TestTree tree;
  AddCpuNode(tree);
  AddCard(tree, 1, 128, "SPX");
  AddCard(tree, 2, 136, "SPX");
  AddKfdNode(tree, 1, 1, 0, 128);
  const auto report = ReadAmd(tree.root());
  ASSERT_EQ(report.devices.size(), 2u);
  EXPECT_EQ(report.devices[1].healthy, Reading<bool>::Of(false, "kfd does not list it"));
  EXPECT_NE(FindCode(report.findings, "InventoryInconsistent"), nullptr);
}

// The driver keeps entries for partitions that the present mode does not use.
TEST(AmdSourceTest, IdlePartitionEntriesAreNoDevices) {
  TestTree tree;
  AddCpuNode(tree);
  AddCard(tree, 1, 128, "SPX");
  AddKfdNode(tree, 1, 1, 0, 128);
  for (int i = 0; i < 7; ++i) {
    tree.Write("sys/devices/platform/amdgpu_xcp_" + std::to_string(i) + "/drm/renderD" +
                   std::to_string(129 + i) + "/dev",
               "x");
  }
  const auto report = ReadAmd(tree.root());
  EXPECT_EQ(report.devices.size(), 1u);
  EXPECT_THAT(report.findings, ElementsAre());
}

TEST(AmdSourceTest, SkipsAMaskedNodeAndSaysSo) {
  TestTree tree;
  AddCpuNode(tree);
  AddKfdNode(tree, 1, 1, 0, 128);
  tree.Write(std::string(kNodes) + "2/properties/in_the_way", "");
  const auto report = ReadAmd(tree.root());
  EXPECT_EQ(report.devices.size(), 1u);
  EXPECT_THAT(FindCode(report.findings, "KfdNodeUnreadable")->evidence, HasSubstr("node 2"));
}

TEST(AmdSourceTest, NamesAGpuWithoutDriverOrWithAnother) {
  TestTree tree;
  AddCpuNode(tree);
  AddCard(tree, 1, 128);
  AddCard(tree, 2, 136);
  tree.Write("sys/bus/pci/devices/" + Address(1) + "/uevent", "PCI_SLOT_NAME=" + Address(1) + "\n");
  tree.Write("sys/bus/pci/devices/" + Address(2) + "/uevent", "DRIVER=vfio-pci\n");
  const auto report = ReadAmd(tree.root());
  ASSERT_EQ(report.devices.size(), 2u);
  EXPECT_FALSE(report.devices[0].healthy.value);
  EXPECT_NE(FindCode(report.findings, "DriverNotBound"), nullptr);
  EXPECT_THAT(FindCode(report.findings, "DriverConflict")->evidence, HasSubstr("vfio-pci"));
  EXPECT_EQ(FindCode(report.findings, "InventoryInconsistent"), nullptr);
}

TEST(AmdSourceTest, CountsUncorrectableErrorsOfAllBlocks) {
  TestTree tree;
  AddCpuNode(tree);
  AddCard(tree, 1, 128);
  AddKfdNode(tree, 1, 1, 0, 128);
  const std::string ras = "sys/bus/pci/devices/" + Address(1) + "/ras/";
  tree.Write(ras + "umc_err_count", "ue: 2\nce: 9\n")
      .Write(ras + "gfx_err_count", "ue: 1\nce: 0\n");
  const auto report = ReadAmd(tree.root());
  EXPECT_EQ(report.devices[0].uncorrected_errors.value, 3);
  EXPECT_FALSE(report.devices[0].healthy.value);
  tree.Write(ras + "gfx_err_count", "garbage");
  EXPECT_EQ(ReadAmd(tree.root()).devices[0].uncorrected_errors.state, Known::kError);
}

TEST(AmdSourceTest, LeavesOutTheStepsThatHungBefore) {
  TestTree tree;
  AddCpuNode(tree);
  AddCard(tree, 1, 128);
  AddKfdNode(tree, 1, 1, 0, 128);
  FakeProgress progress;
  progress.skipped = {"gpu " + Address(1)};
  const auto report = MakeAmdSource(tree.root())->Read(progress);
  EXPECT_THAT(progress.begun, ElementsAre("kfd", "pci"));
  ASSERT_EQ(report.devices.size(), 1u);
  EXPECT_EQ(report.devices[0].id.value, "GPU-fa5e000000000001");
  EXPECT_TRUE(report.devices[0].healthy.known());
  EXPECT_FALSE(report.devices[0].healthy.value);
}

TEST(AmdSourceTest, DoesNotNeedAStableCardNumberOrOrder) {
  TestTree one;
  TestTree two;
  AddCpuNode(one);
  AddCpuNode(two);
  for (int bus = 1; bus <= 3; ++bus) {
    AddCard(one, bus, 128 + bus);
    AddCard(two, bus, 140 - bus);
    AddKfdNode(one, bus, bus, 0, 128 + bus);
    AddKfdNode(two, 4 - bus, bus, 0, 140 - bus);
  }
  const auto a = ReadAmd(one.root()).devices;
  const auto b = ReadAmd(two.root()).devices;
  ASSERT_EQ(a.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(a[i].id, b[i].id);
}

// Every file of a machine may be empty, cut, binary, huge, a FIFO or gone; nothing may hang or
// crash and the other device stays.
TEST(AmdSourceTest, OneSickFileNeverSpoilsTheOtherDevice) {
  TestTree tree;
  AddCpuNode(tree);
  AddCard(tree, 1, 128, "SPX");
  AddCard(tree, 2, 136, "SPX");
  AddKfdNode(tree, 1, 1, 0, 128);
  AddKfdNode(tree, 2, 2, 0, 136);
  tree.Write("sys/class/kfd/kfd/topology/generation_id", "2\n");
  const std::string card = "sys/bus/pci/devices/" + Address(1) + "/";
  const std::string node = std::string(kNodes) + "1/";
  for (const std::string& path :
       {card + "vendor", card + "device", card + "class", card + "uevent", card + "unique_id",
        card + "mem_info_vram_total", card + "current_compute_partition", node + "properties",
        node + "gpu_id", node + "mem_banks/0/properties"}) {
    std::ifstream in(tree.Path(path));
    const std::string good((std::istreambuf_iterator<char>(in)), {});
    for (const std::string& bad : {std::string(), good.substr(0, good.size() / 2),
                                   std::string("\xff\x00\x01", 3), std::string(100'000, '7')}) {
      tree.Write(path, bad);
      const auto report = ReadAmd(tree.root());
      const auto healthy =
          std::find_if(report.devices.begin(), report.devices.end(),
                       [](const Device& d) { return d.id.value == "GPU-fa5e000000000002"; });
      ASSERT_NE(healthy, report.devices.end()) << path;
      EXPECT_TRUE(healthy->healthy.value) << path;
    }
    tree.Remove(path);
    tree.Fifo(path);
    EXPECT_GE(ReadAmd(tree.root()).devices.size(), 1u) << path;
    tree.Remove(path);
    EXPECT_GE(ReadAmd(tree.root()).devices.size(), 1u) << path;
    tree.Write(path, good);
  }
  EXPECT_EQ(ReadAmd(tree.root()).devices.size(), 2u);
}

// The kernel raises generation_id with every change of the topology.
TEST(AmdSourceTest, SaysThatTheTopologyChangesAllTheTime) {
  TestTree tree;
  AddCpuNode(tree);
  AddKfdNode(tree, 1, 1, 0, 128);
  const std::string generation = "sys/class/kfd/kfd/topology/generation_id";
  tree.Write(generation, "0\n");
  std::atomic<bool> stop = false;
  std::thread kernel([&] {
    for (int i = 0; !stop; ++i) {
      tree.Write("next", std::to_string(i) + "\n");
      std::filesystem::rename(tree.Path("next"), tree.Path(generation));
    }
  });
  bool said = false;
  for (int i = 0; i < 20'000 && !said; ++i) {
    const auto report = ReadAmd(tree.root());
    EXPECT_EQ(report.devices.size(), 1u);
    said = FindCode(report.findings, "TopologyChanged") != nullptr;
  }
  stop = true;
  kernel.join();
  EXPECT_TRUE(said);
  EXPECT_EQ(FindCode(ReadAmd(tree.root()).findings, "TopologyChanged"), nullptr);
}

TEST(AmdSourceTest, DropsASecondDeviceWithTheSameRenderNode) {
  TestTree tree;
  AddCpuNode(tree);
  AddKfdNode(tree, 1, 1, 0, 128);
  AddKfdNode(tree, 2, 2, 0, 128);
  const auto report = ReadAmd(tree.root());
  EXPECT_EQ(report.devices.size(), 1u);
  EXPECT_NE(FindCode(report.findings, "DuplicateDevice"), nullptr);
}

TEST(AmdSourceTest, FindsNothingOnAMachineWithoutAmd) {
  TestTree tree;
  const auto report = ReadAmd(tree.root());
  EXPECT_TRUE(report.devices.empty());
  EXPECT_TRUE(report.findings.empty());
  EXPECT_TRUE(ReadAmd("/no/such/folder").devices.empty());
}

}  // namespace
}  // namespace bimetal::agent
