#include "agent/devices/amd/amd_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "agent/devices/amd/kfd.h"
#include "tests/unit/agent/devices/test_tree.h"

namespace bimetal::agent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kNodes[] = "sys/class/kfd/kfd/topology/nodes/";

void AddCpuNode(TestTree& tree);

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

void AddLink(TestTree& tree, int node, int link, int type, int to) {
  tree.Write(kNodes + std::to_string(node) + "/io_links/" + std::to_string(link) + "/properties",
             "type " + std::to_string(type) + "\nnode_from " + std::to_string(node) + "\nnode_to " +
                 std::to_string(to) + "\nweight 15\n");
}

// SYNTHETIC: no recording of several whole MI300X with their links is public. Every GPU has a PCIe
// link to the CPU and an XGMI link to every other.
void AddSpxMachine(TestTree& tree, int gpus) {
  AddCpuNode(tree);
  for (int i = 1; i <= gpus; ++i) {
    AddCard(tree, i, 128 + 8 * (i - 1), "SPX");
    AddKfdNode(tree, i, i, 0, 128 + 8 * (i - 1));
    AddLink(tree, i, 0, 2, 0);
    int link = 1;
    for (int other = 1; other <= gpus; ++other) {
      if (other != i) AddLink(tree, i, link++, 11, other);
    }
  }
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
  AddLink(tree, 1, 0, 11, 2);
  tree.Write(card + "ras/features", "feature mask: 0x3fff\n");
  tree.Write(card + "ras/umc_err_count", "ue: 0\nce: 0\n");
  tree.Write(card + "ras/gpu_vram_bad_pages", "0x00000001 : 0x00001000 : R\n");
  tree.Write(card + "gpu_metrics", std::string("\x08\x00\x01\x03xxxx", 8));
  tree.Write(card + "hwmon/hwmon1/temp1_label", "edge\n");
  tree.Write(card + "hwmon/hwmon1/temp1_input", "40000\n");
  tree.Write(card + "power/runtime_status", "active\n").Write(card + "local_cpulist", "0-3\n");
  for (const std::string& path :
       {card + "ras/features", card + "ras/umc_err_count", card + "ras/gpu_vram_bad_pages",
        card + "gpu_metrics", card + "hwmon/hwmon1/temp1_label", card + "hwmon/hwmon1/temp1_input",
        card + "power/runtime_status", card + "local_cpulist", node + "io_links/0/properties",
        card + "vendor", card + "device", card + "class", card + "uevent", card + "unique_id",
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
TEST(ReadKfdTest, ReadsAgainOnceWhereTheTopologyChangesMeanwhile) {
  TestTree tree;
  AddCpuNode(tree);
  AddKfdNode(tree, 1, 1, 0, 128);
  const RootFiles files(tree.root());
  int asked = 0;
  const auto once = ReadKfd(files, [&] {
    // It grows during the first read and is still during the second one, which sees a node more.
    if (++asked == 2) AddKfdNode(tree, 2, 2, 0, 136);
    return Reading<std::string>::Of(asked < 2 ? "1" : "2");
  });
  EXPECT_EQ(asked, 4);
  EXPECT_EQ(once.gpus.size(), 2u);
  EXPECT_FALSE(once.changed);
  EXPECT_FALSE(TopologyFinding(once).has_value());
}

TEST(ReadKfdTest, SaysThatTheTopologyChangesAllTheTime) {
  TestTree tree;
  AddCpuNode(tree);
  AddKfdNode(tree, 1, 1, 0, 128);
  int asked = 0;
  const auto always = ReadKfd(RootFiles(tree.root()),
                              [&] { return Reading<std::string>::Of(std::to_string(++asked)); });
  EXPECT_EQ(asked, 4) << "twice and no more";
  EXPECT_EQ(always.gpus.size(), 1u);
  EXPECT_TRUE(always.changed);
  EXPECT_EQ(TopologyFinding(always)->code, "TopologyChanged");
}

TEST(ReadKfdTest, ReadsOnceWhereTheGenerationStays) {
  TestTree tree;
  AddCpuNode(tree);
  AddKfdNode(tree, 1, 1, 0, 128);
  tree.Write("sys/class/kfd/kfd/topology/generation_id", "7\n");
  EXPECT_FALSE(ReadKfd(RootFiles(tree.root())).changed);
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

std::string Card(int bus) { return "sys/bus/pci/devices/" + Address(bus) + "/"; }

TEST(AmdSourceTest, LinksOfWholeGpusNameTheirPeers) {
  TestTree tree;
  AddSpxMachine(tree, 4);
  const auto devices = ReadAmd(tree.root()).devices;
  ASSERT_EQ(devices.size(), 4u);
  ASSERT_TRUE(devices[1].links.known()) << devices[1].links.why;
  EXPECT_THAT(devices[1].links.value,
              ElementsAre(DeviceLink{"xgmi", "GPU-fa5e000000000001", 1, 1},
                          DeviceLink{"xgmi", "GPU-fa5e000000000003", 1, 1},
                          DeviceLink{"xgmi", "GPU-fa5e000000000004", 1, 1}));
  EXPECT_EQ(devices[1].pci_id.value, "1002:74a1");
}

// SYNTHETIC gpu_metrics 1.7 with one of three links down.
TEST(AmdSourceTest, ALinkThatIsDownIsCounted) {
  TestTree tree;
  AddSpxMachine(tree, 4);
  std::string metrics(2208, '\xff');
  metrics.replace(0, 4, std::string("\xa0\x08\x01\x07", 4));
  metrics.replace(264, 6, std::string("\x01\x00\x00\x00\x01\x00", 6));
  tree.Write(Card(2) + "gpu_metrics", metrics);
  const auto devices = ReadAmd(tree.root()).devices;
  EXPECT_THAT(devices[1].links.value, ElementsAre(DeviceLink{"xgmi", "", 3, 2}));
  EXPECT_EQ(devices[0].links.value.size(), 3u);
}

TEST(AmdSourceTest, ALinkThatCannotBeReadLeavesTheLinksOfItsGpuAnError) {
  TestTree tree;
  AddSpxMachine(tree, 2);
  tree.Write(std::string(kNodes) + "1/io_links/1/properties", "type 11\n");
  const auto devices = ReadAmd(tree.root()).devices;
  EXPECT_EQ(devices[0].links.state, Known::kError);
  EXPECT_TRUE(devices[1].links.known());
  EXPECT_TRUE(devices[0].healthy.value);
}

// SYNTHETIC, after the formats of the kernel's documentation: no ras folder is recorded in public.
TEST(AmdSourceTest, ReadsBadPagesAndCorrectedErrors) {
  TestTree tree;
  AddSpxMachine(tree, 2);
  const std::string ras = Card(1) + "ras/";
  tree.Write(ras + "features", "feature mask: 0x3fff\n");
  tree.Write(ras + "umc_err_count", "ue: 0\nce: 7\nde: 1\n");
  tree.Write(ras + "sdma_err_count", "ue: 0\nce: 2\n");
  tree.Write(ras + "gpu_vram_bad_pages",
             "0x00000001 : 0x00001000 : R\n0x00000002 : 0x00001000 : P\n"
             "0x00000003 : 0x00001000 : R\n0x00000004 : 0x00001000 : F\n");
  tree.Write(Card(2) + "ras/gpu_vram_bad_pages", "");
  const auto report = ReadAmd(tree.root());
  EXPECT_EQ(report.devices[0].retired_rows.value, 2);
  EXPECT_EQ(report.devices[0].rows_pending.value, 1);
  EXPECT_EQ(report.devices[0].rows_failed.value, 1);
  EXPECT_EQ(report.devices[0].ecc.value, "on");
  EXPECT_EQ(report.telemetry.at("GPU-fa5e000000000001").corrected_errors.value, 9);
  // An empty list is no bad page; a line of another form is no list.
  EXPECT_EQ(report.devices[1].retired_rows, Reading<std::int64_t>::Of(0));
  tree.Write(Card(2) + "ras/gpu_vram_bad_pages", "0x1 : 0x1000 : X\n");
  EXPECT_EQ(ReadAmd(tree.root()).devices[1].retired_rows.state, Known::kError);
}

// A consumer card that slept printed 1048560 errors at each look.
TEST(AmdSourceTest, CountsOfASleepingOrSwitchedOffCardAreNoCounts) {
  TestTree tree;
  AddSpxMachine(tree, 2);
  for (int bus : {1, 2}) {
    tree.Write(Card(bus) + "ras/umc_err_count", "ue: 1048560\nce: 0\n");
    tree.Write(Card(bus) + "gpu_busy_percent", "0\n");
  }
  tree.Write(Card(1) + "power/runtime_status", "suspended\n");
  tree.Write(Card(2) + "ras/features", "feature mask: 0x0\n");
  const auto report = ReadAmd(tree.root());
  EXPECT_EQ(report.devices[0].uncorrected_errors.state, Known::kUnknown);
  EXPECT_EQ(report.devices[1].uncorrected_errors.state, Known::kUnknown);
  EXPECT_EQ(report.devices[1].ecc.value, "off");
  EXPECT_TRUE(report.devices[0].healthy.value);
  EXPECT_THAT(report.telemetry.at("GPU-fa5e000000000001").utilization_percent.why,
              HasSubstr("sleeps"));
  EXPECT_EQ(report.telemetry.at("GPU-fa5e000000000002").utilization_percent.value, 0);
}

TEST(AmdSourceTest, APartitionsSensorsAreMarkedAsItsGpus) {
  TestTree tree;
  AddPartitionedTree(tree, "amdgpu_xcp.");
  AddPartitionedKfd(tree);
  AddLink(tree, 1, 0, 11, 2);   // inside the first GPU
  AddLink(tree, 1, 1, 11, 9);   // to a partition of the second one
  AddLink(tree, 1, 2, 11, 10);  // and to another of its partitions
  tree.Write(Card(1) + "gpu_busy_percent", "42\n").Write(Card(1) + "mem_info_vram_used", "5\n");
  tree.Write("sys/class/kfd/kfd/proc/4711/vram_1003", "4096\n");
  tree.Write("sys/class/kfd/kfd/proc/4711/vram_9999", "1\n");
  const auto report = ReadAmd(tree.root());
  const Telemetry& third = report.telemetry.at("GPU-fa5e000000000001-p2");
  EXPECT_EQ(third.utilization_percent, Reading<std::int64_t>::Of(42, "of the whole GPU"));
  EXPECT_FALSE(third.memory_used_bytes.known());
  EXPECT_THAT(third.processes.value, ElementsAre(GpuProcess{4711, 4096}));
  EXPECT_THAT(report.telemetry.at("GPU-fa5e000000000001-p0").processes.value, ElementsAre());
  // All partitions of one GPU have its links; those inside it are none.
  for (int part : {0, 7}) {
    EXPECT_THAT(report.devices[static_cast<std::size_t>(part)].links.value,
                ElementsAre(DeviceLink{"xgmi", "GPU-fa5e000000000002", 1, 1}));
  }
}

TEST(AmdSourceTest, TellsTheDriversFlavour) {
  TestTree tree;
  AddSpxMachine(tree, 1);
  EXPECT_FALSE(ReadAmd(tree.root()).facts.at("flavor").known());
  tree.Write("sys/module/amdgpu/srcversion", "ABC123\n");
  EXPECT_EQ(ReadAmd(tree.root()).facts.at("flavor").value, "in-tree");
  tree.Write("sys/module/amdgpu/version", "6.12.12\n");
  EXPECT_EQ(ReadAmd(tree.root()).facts.at("flavor").value, "dkms");
}

// The kernel's trees can hang too: the devices are then known by what is left.
TEST(AmdSourceTest, AKfdTreeThatHungLeavesTheCards) {
  TestTree tree;
  AddSpxMachine(tree, 2);
  FakeProgress progress;
  progress.skipped = {"kfd"};
  const auto without = MakeAmdSource(tree.root())->Read(progress);
  ASSERT_EQ(without.devices.size(), 2u);
  EXPECT_EQ(without.devices[0].id.value, "GPU-fa5e000000000001");
  EXPECT_FALSE(without.devices[0].healthy.value);
  FakeProgress other;
  other.skipped = {"pci"};
  const auto no_tree = MakeAmdSource(tree.root())->Read(other);
  ASSERT_EQ(no_tree.devices.size(), 2u);
  EXPECT_EQ(no_tree.devices[0].id.value, "GPU-fa5e000000000001");
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
