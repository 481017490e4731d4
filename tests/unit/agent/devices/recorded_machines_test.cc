// Every recording of a real machine that is a tree of sysfs or /proc is read as the agent reads a
// machine; golden_test.cc holds all of them to values in full. nvidia-smi's text and XML are read
// in tests/unit/machines, as answers of the library. The others under fixtures/ (rocm-smi JSON,
// amdgpu_top JSON, RCCL XML, kernel checkpoints) are printouts of tools: no input of the agent.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "agent/devices/fingerprint.h"
#include "agent/devices/pci.h"
#include "tests/unit/agent/devices/packed_tree.h"
#include "tests/unit/agent/devices/test_tree.h"
#include "tests/unit/recordings.h"

namespace bimetal::agent {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class RecordedMachineTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!fs::is_directory(Fixtures())) GTEST_SKIP() << "SKIPPED: no recordings at " << Fixtures();
  }

  TestTree tree_;
};

std::string Only(const Inventory& inventory) {
  return inventory.devices.size() == 1 ? inventory.devices[0].id.value
                                       : std::to_string(inventory.devices.size()) + " devices";
}

TEST_F(RecordedMachineTest, EightMi210InTwoHives) {
  const auto inventory = ReadTree(Fixtures() + "amd/mi210-8gpu-2hives");
  ASSERT_EQ(inventory.devices.size(), 8u);
  for (std::size_t i = 0; i < 8; ++i) {
    const Device& gpu = inventory.devices[i];
    EXPECT_EQ(gpu.id.value, "GPU-fa5e00000000000" + std::to_string(i + 1));
    EXPECT_EQ(gpu.model.value, "AMD Instinct MI210");
    EXPECT_EQ(gpu.architecture.value, "gfx90a");
    EXPECT_EQ(gpu.compute_units.value, 104);
    EXPECT_FALSE(gpu.memory_bytes.known());  // mem_banks were not recorded: unknown, not 0
    EXPECT_FALSE(gpu.parent.known());
  }
  EXPECT_EQ(inventory.devices[0].pci_address.value, "0000:63:00.0");
  EXPECT_NE(FindCode(inventory.findings, "MemorySizeUnknown"), nullptr);
  EXPECT_EQ(FindCode(inventory.findings, "InventoryInconsistent"), nullptr);
}

TEST_F(RecordedMachineTest, SixtyThreePartitionsOfEightMi300x) {
  const Inventory& inventory = ReadPacked("amd/mi300x-8gpu-cpx");
  EXPECT_EQ(inventory.devices.size(), 63u);
  std::map<std::string, int> of_gpu;
  for (const Device& d : inventory.devices) ++of_gpu[d.parent.value];
  EXPECT_EQ(of_gpu.size(), 8u);
  for (const Device& d : inventory.devices) EXPECT_EQ(d.compute_units.value, 38);
  // One card shows 7 of its 8.
  const Finding* finding = FindCode(inventory.findings, "PartitionCountDiffers");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(of_gpu[finding->device], 7);
}

TEST_F(RecordedMachineTest, ThirtyTwoPartitionsOfEightMi308xInTwoDomains) {
  const Inventory& inventory = ReadPacked("amd/mi308x-8gpu-cpx");
  ASSERT_EQ(inventory.devices.size(), 32u);
  std::set<std::string> addresses;
  for (const Device& d : inventory.devices) {
    EXPECT_EQ(d.model.value, "AMD Instinct MI308X");
    EXPECT_EQ(d.compute_units.value, 20);
    EXPECT_NEAR(static_cast<double>(d.memory_bytes.value), 51539607552.0, 32.0 * 1024 * 1024);
    addresses.insert(d.pci_address.value);
  }
  EXPECT_EQ(addresses.size(), 8u);
  EXPECT_TRUE(addresses.contains("0001:0b:00.0"));
  EXPECT_TRUE(addresses.contains("0000:0a:00.0"));
  EXPECT_EQ(FindCode(inventory.findings, "PartitionCountDiffers"), nullptr);
  EXPECT_EQ(inventory.devices[2].id.value, "GPU-fa5e000000000001-p2");
  EXPECT_THAT(inventory.devices[2].device_nodes,
              testing::ElementsAre("/dev/dri/renderD146", "/dev/kfd"));
}

TEST_F(RecordedMachineTest, OneWholeMi300x) {
  const auto inventory = ReadTree(Fixtures() + "amd/mi300x-spx-kfd-node");
  ASSERT_EQ(Only(inventory), "GPU-fa5e000000000001");
  EXPECT_EQ(inventory.devices[0].compute_units.value, 304);
  EXPECT_EQ(inventory.devices[0].architecture.value, "gfx942");
  EXPECT_EQ(inventory.devices[0].pci_address.value, "0000:47:00.0");
}

TEST_F(RecordedMachineTest, Mi325xInAVirtualMachine) {
  const std::string root = Fixtures() + "amd/mi325x-1gpu-spx-vm";
  const auto inventory = ReadTree(root);
  ASSERT_EQ(Only(inventory), "GPU-fa5e000000000001");
  const Device& gpu = inventory.devices[0];
  EXPECT_EQ(gpu.model.value, "AMD Instinct MI325X VF");  // product_name is empty there
  EXPECT_EQ(gpu.memory_bytes.value, 274542362624);
  EXPECT_EQ(gpu.partition.value, "SPX/NPS1");
  EXPECT_EQ(gpu.driver.value, "6.19.14.31400000");
  EXPECT_EQ(gpu.firmware.value.at("vbios"), "113-M3250101-100");
  // Its KFD files are partial, under another name: nobody says that the GPU is usable.
  EXPECT_FALSE(gpu.healthy.known());
  EXPECT_NE(FindCode(inventory.findings, "KfdNodeUnreadable"), nullptr);
}

TEST_F(RecordedMachineTest, OldKernelWithoutGfxTarget) {
  const auto inventory = ReadTree(Fixtures() + "amd/vega10-mi25-1gpu");
  // Two nodes at one address: kernels of that age tell no PCI domain, so these may be two GPUs.
  ASSERT_EQ(inventory.devices.size(), 2u);
  EXPECT_EQ(inventory.devices[0].id.value, "GPU-fa5e000000000001");
  EXPECT_EQ(inventory.devices[1].id.value, "GPU-fa5e000000000002");
  EXPECT_EQ(inventory.devices[0].architecture.value, "gfx900");
  EXPECT_EQ(inventory.devices[0].compute_units.value, 64);
  EXPECT_EQ(inventory.devices[0].memory_bytes.value, 17163091968);
}

TEST_F(RecordedMachineTest, ApusHaveNoUniqueId) {
  const auto phoenix = ReadTree(Fixtures() + "amd/apu-phoenix");
  ASSERT_EQ(Only(phoenix), "PCI-0000:64:00.0");
  EXPECT_EQ(phoenix.devices[0].architecture.value, "gfx1103");
  EXPECT_EQ(phoenix.devices[0].compute_units.value, 12);
  EXPECT_EQ(phoenix.devices[0].link_generation.value, 4);
  EXPECT_FALSE(phoenix.devices[0].numa_node.known());
  EXPECT_TRUE(phoenix.devices[0].healthy.value);
  const auto strix = ReadTree(Fixtures() + "amd/apu-strixpoint");
  ASSERT_EQ(Only(strix), "PCI-0000:c1:00.0");
  EXPECT_EQ(strix.devices[0].architecture.value, "gfx1150");
  const auto vangogh = ReadTree(Fixtures() + "amd/apu-vangogh");
  ASSERT_EQ(Only(vangogh), "PCI-0000:04:00.0");
  EXPECT_EQ(vangogh.devices[0].architecture.value, "gfx1033");
  EXPECT_EQ(vangogh.devices[0].compute_units.value, 8);
}

struct ConsumerCard {
  std::string folder;
  std::string id;
  std::string vbios;
  std::int64_t memory;  // 0: not recorded
};

// Card folders without KFD: the devices are there, and the lack of KFD is said.
TEST_F(RecordedMachineTest, ConsumerCardsWithoutKfd) {
  const std::vector<ConsumerCard> cards = {
      {"rx6900xt", "GPU-fa5e000000000001", "113-D4121EXT-CO1", 17163091968},
      {"rx7600s", "PCI-0000:03:00.0", "113-BRT112125.001", 0},
      {"rx7800xt", "PCI-0000:03:00.0", "113-EXT90249-100", 0},
      {"rx7900xtx", "PCI-0000:03:00.0", "113-D70401XT-N11", 0},
      {"rx9070", "PCI-0000:03:00.0", "113-2E490TX-US2", 0},
      {"rx9070xt", "PCI-0000:0f:00.0", "113-EXT109069-101", 0},
      {"vega56", "PCI-0000:0b:00.0", "115-D050PIL-100", 8573157376},
      {"vega56-procfs", "GPU-0123456789abcdef", "115-D050PIL-100", 8573157376}};
  for (const ConsumerCard& card : cards) {
    const auto inventory = ReadTree(Fixtures() + "amd/" + card.folder);
    ASSERT_EQ(Only(inventory), card.id) << card.folder;
    const Device& gpu = inventory.devices[0];
    EXPECT_EQ(gpu.firmware.value.at("vbios"), card.vbios);
    EXPECT_EQ(gpu.memory_bytes.known(), card.memory != 0) << card.folder;
    EXPECT_EQ(gpu.memory_bytes.value, card.memory);
    EXPECT_TRUE(gpu.healthy.known() && !gpu.healthy.value);
    EXPECT_NE(FindCode(inventory.findings, "KfdMissing"), nullptr);
    EXPECT_EQ(Fingerprint(inventory, Vendor::kAmd).size(), 16u);
  }
}

TEST_F(RecordedMachineTest, FirmwareBlocksOfTheFullestCard) {
  const auto inventory = ReadTree(Fixtures() + "amd/rx6900xt");
  const auto& firmware = inventory.devices.at(0).firmware.value;
  EXPECT_EQ(firmware.at("smc"), "0x003a5600");
  EXPECT_EQ(firmware.at("mec"), "0x00000068");
  EXPECT_FALSE(firmware.contains("vce"));  // 0x00000000: not loaded
}

TEST_F(RecordedMachineTest, OneRx7900xtxNode) {
  const auto inventory = ReadTree(Fixtures() + "amd/rx7900xtx-kfd-node");
  ASSERT_EQ(Only(inventory), "GPU-fa5e000000000001");
  EXPECT_EQ(inventory.devices[0].compute_units.value, 96);
  EXPECT_EQ(inventory.devices[0].pci_address.value, "0000:86:00.0");
}

TEST_F(RecordedMachineTest, NvidiaModuleFiles) {
  const std::string base = Fixtures() + "nvidia/proc-driver/";
  const auto h100 = ReadTree(base + "h100");
  ASSERT_EQ(Only(h100), "GPU-fa5e0000-0000-4000-8000-000000000001");
  EXPECT_EQ(h100.devices[0].model.value, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(h100.devices[0].pci_address.value, "0000:62:00.0");
  EXPECT_EQ(h100.devices[0].firmware.value.at("vbios"), "96.00.99.00.01");
  EXPECT_FALSE(h100.devices[0].healthy.known());
  const auto v100 = ReadTree(base + "v100");
  ASSERT_EQ(Only(v100), "GPU-fa5e0000-0000-4000-8000-000000000001");
  EXPECT_EQ(v100.devices[0].model.value, "Tesla V100-SXM2-16GB");
  const auto a10g = ReadTree(base + "a10g");
  ASSERT_EQ(a10g.devices.size(), 1u);
  EXPECT_EQ(a10g.devices[0].pci_address.value, "0000:00:1e.0");
  const auto open = ReadNvidia(base + "rtx5090-open");
  EXPECT_EQ(open.facts.at("driver").value, "580.65.06");
  EXPECT_TRUE(open.devices.empty());
  // Only numa_status was recorded: six devices, known by their address alone.
  const auto power9 = ReadTree(base + "power9-v100x6");
  ASSERT_EQ(power9.devices.size(), 6u);
  EXPECT_EQ(power9.devices[0].id.value, "PCI-0004:05:00.0");
}

// The PCI bus of a machine as `lspci -nn` prints it, as folders of sysfs.
void AddBus(const std::string& file, TestTree& tree) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    const auto space = line.find(' ');
    const auto id = line.rfind(" [", line.rfind("]"));
    const auto kind = line.find(" [");
    if (space == std::string::npos || id == std::string::npos) continue;
    std::string address = line.substr(0, space);
    if (address.size() == 7) address = "0000:" + address;
    const std::string folder = "sys/bus/pci/devices/" + address + "/";
    tree.Write(folder + "class", "0x" + line.substr(kind + 2, 4) + "00\n");
    tree.Write(folder + "vendor", "0x" + line.substr(id + 2, 4) + "\n");
    tree.Write(folder + "device", "0x" + line.substr(id + 7, 4) + "\n");
  }
}

// Of a bus full of bridges, network cards and NVSwitches (also of NVIDIA), GPUs alone are taken.
TEST_F(RecordedMachineTest, GpusAloneAreTakenFromARecordedBus) {
  AddBus(Fixtures() + "nvidia/lspci/lspci-nn-a100.txt", tree_);
  const auto gpus = ReadPciGpus(RootFiles(tree_.root()), 0x10de).gpus;
  ASSERT_EQ(gpus.size(), 8u);
  EXPECT_EQ(gpus.front().address, "0001:00:00.0");
  EXPECT_EQ(gpus.back().address, "000e:00:00.0");
  for (const PciGpu& gpu : gpus) EXPECT_EQ(gpu.device, 0x20b2u);
  TestTree one;
  AddBus(Fixtures() + "nvidia/lspci/lspci-nn-a10.txt", one);
  const auto a10 = ReadPciGpus(RootFiles(one.root()), 0x10de).gpus;
  ASSERT_EQ(a10.size(), 1u);
  EXPECT_EQ(a10[0].address, "0000:06:00.0");
  EXPECT_EQ(a10[0].device, 0x2236u);
  EXPECT_TRUE(ReadPciGpus(RootFiles(one.root()), 0x1002).gpus.empty());
}

// Whatever else is in the folder: every tree can be read, and twice alike.
TEST_F(RecordedMachineTest, EveryTreeIsReadTwiceAlike) {
  std::size_t trees = 0;
  for (const auto& vendor : {"amd", "nvidia/proc-driver"}) {
    for (const auto& folder : fs::directory_iterator(Fixtures() + vendor)) {
      if (!fs::is_directory(folder.path() / "sys") && !fs::is_directory(folder.path() / "proc")) {
        continue;
      }
      ++trees;
      const auto first = ReadTree(folder.path().string());
      const auto second = ReadTree(folder.path().string());
      EXPECT_EQ(first.devices, second.devices) << folder.path();
      EXPECT_EQ(first.findings, second.findings) << folder.path();
    }
  }
  EXPECT_GE(trees, 20u);
}

}  // namespace
}  // namespace bimetal::agent
