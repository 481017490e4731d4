#include "agent/devices/nvidia/nvidia_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/devices/nvidia/proc.h"
#include "tests/unit/agent/devices/test_tree.h"

// What needs a library is tested on simulated machines, in tests/unit/machines.
namespace bimetal::agent {
namespace {

using testing::HasSubstr;

void AddProcGpu(TestTree& tree, const std::string& address, const std::string& uuid,
                const std::string& excluded = "No") {
  tree.Write("proc/driver/nvidia/gpus/" + address + "/information",
             "Model: \t\t NVIDIA H100 80GB HBM3\nGPU UUID: \t " + uuid +
                 "\nVideo BIOS: \t 96.00.99.00.01\nGPU Excluded:\t " + excluded + "\n");
}

TEST(NormalPciAddressTest, MakesOneFormOfAll) {
  EXPECT_EQ(NormalPciAddress("00000000:18:00.0"), "0000:18:00.0");
  EXPECT_EQ(NormalPciAddress("0000:CB:00"), "0000:cb:00.0");
  EXPECT_EQ(NormalPciAddress("00010000:01:00.0"), "10000:01:00.0");
  EXPECT_EQ(NormalPciAddress("0035:04:00.0"), "0035:04:00.0");
  EXPECT_EQ(NormalPciAddress(""), "");
}

TEST(NvidiaSourceTest, KnowsTheDevicesOfTheModuleWithoutALibrary) {
  TestTree tree;
  AddProcGpu(tree, "0000:62:00.0", "GPU-a");
  tree.Write("proc/driver/nvidia/version",
             "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.129.03  Thu Oct 19\n");
  const auto report = ReadNvidia(tree.root());
  ASSERT_EQ(report.devices.size(), 1u);
  EXPECT_EQ(report.devices[0].id.value, "GPU-a");
  EXPECT_EQ(report.devices[0].driver.value, "535.129.03");
  EXPECT_EQ(report.devices[0].firmware.value.at("vbios"), "96.00.99.00.01");
  // Nobody has said that it is well.
  EXPECT_FALSE(report.devices[0].healthy.known());
  EXPECT_NE(FindCode(report.findings, "VendorLibraryMissing"), nullptr);
}

TEST(NvidiaSourceTest, LeavesExcludedGpusOut) {
  TestTree tree;
  AddProcGpu(tree, "0000:62:00.0", "GPU-a");
  AddProcGpu(tree, "0000:63:00.0", "GPU-b", "Yes");
  EXPECT_EQ(ReadNvidia(tree.root()).devices.size(), 1u);
}

TEST(NvidiaSourceTest, ComparesTheModuleWithThePciBus) {
  TestTree tree;
  AddProcGpu(tree, "0000:62:00.0", "GPU-a");
  for (const std::string address : {"0000:62:00.0", "0000:63:00.0"}) {
    const std::string folder = "sys/bus/pci/devices/" + address + "/";
    tree.Write(folder + "vendor", "0x10de").Write(folder + "class", "0x030200");
    tree.Write(folder + "uevent", "DRIVER=nvidia\nPCI_SLOT_NAME=" + address);
  }
  const Finding* finding = FindCode(ReadNvidia(tree.root()).findings, "InventoryInconsistent");
  const auto report = ReadNvidia(tree.root());
  finding = FindCode(report.findings, "InventoryInconsistent");
  ASSERT_NE(finding, nullptr);
  EXPECT_THAT(finding->evidence, HasSubstr("/proc/driver/nvidia has 1"));
  EXPECT_THAT(finding->evidence, HasSubstr("the PCI bus has 2"));
}

TEST(NvidiaSourceTest, NamesNouveauAsTheConflict) {
  TestTree tree;
  const std::string folder = "sys/bus/pci/devices/0000:62:00.0/";
  tree.Write(folder + "vendor", "0x10de").Write(folder + "class", "0x030000");
  tree.Write(folder + "uevent", "PCI_SLOT_NAME=0000:62:00.0");
  tree.Link(folder + "driver", "../../drivers/nouveau");
  const auto report = ReadNvidia(tree.root());
  const Finding* finding = FindCode(report.findings, "DriverConflict");
  ASSERT_NE(finding, nullptr);
  EXPECT_THAT(finding->remedy, HasSubstr("blacklist nouveau"));
}

TEST(NvidiaSourceTest, RefusesALibraryThatIsNone) {
  TestTree tree;
  AddProcGpu(tree, "0000:62:00.0", "GPU-a");
  tree.Write("usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1", "no ELF file");
  const auto report = ReadNvidia(tree.root());
  ASSERT_EQ(report.devices.size(), 1u);
  EXPECT_NE(FindCode(report.findings, "VendorLibraryMissing"), nullptr);
}

TEST(NvidiaSourceTest, InAPodTheNodesOwnLibraryIsNotOpened) {
  TestTree tree;
  AddProcGpu(tree, "0000:62:00.0", "GPU-a");
  tree.Write("usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1", "no ELF file");
  FakeProgress progress;
  const auto report = MakeNvidiaSource({tree.root(), "", true})->Read(progress);
  const Finding* missing = FindCode(report.findings, "VendorLibraryMissing");
  if (missing == nullptr) GTEST_SKIP() << "SKIPPED: this machine has a library of its own";
  EXPECT_EQ(missing->evidence.find(tree.root()), std::string::npos) << missing->evidence;
}

TEST(NvidiaSourceTest, TellsTheModulesFlavour) {
  TestTree tree;
  AddProcGpu(tree, "0000:62:00.0", "GPU-a");
  const std::string version = "proc/driver/nvidia/version";
  EXPECT_FALSE(ReadNvidia(tree.root()).facts.at("flavor").known());
  tree.Write(version,
             "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release\n");
  EXPECT_EQ(ReadNvidia(tree.root()).facts.at("flavor").value, "open");
  tree.Write(version, "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.129.03  Thu Oct 19\n");
  EXPECT_EQ(ReadNvidia(tree.root()).facts.at("flavor").value, "proprietary");
  tree.Write(version, "something else\n");
  EXPECT_EQ(ReadNvidia(tree.root()).facts.at("flavor").state, Known::kError);
}

TEST(NvidiaSourceTest, FindsTheContainerToolkitByItsFiles) {
  TestTree tree;
  AddProcGpu(tree, "0000:62:00.0", "GPU-a");
  const auto toolkit = [&] { return ReadNvidia(tree.root()).facts.at("toolkit"); };
  EXPECT_FALSE(toolkit().known());
  tree.Write("var/lib/dpkg/status",
             "Package: libc6\nVersion: 2.36-9\n\nPackage: nvidia-container-toolkit\n"
             "Status: install ok installed\nVersion: 1.16.2-1\n\nPackage: zlib1g\nVersion: 1.2\n");
  EXPECT_EQ(toolkit().value, "1.16.2");
  tree.Write("usr/lib/x86_64-linux-gnu/libnvidia-container.so.1.17.8", "x");
  tree.Link("usr/lib/x86_64-linux-gnu/libnvidia-container.so.1", "libnvidia-container.so.1.17.8");
  tree.Write("usr/lib/x86_64-linux-gnu/libnvidia-container-go.so.1.99.9", "x");
  EXPECT_EQ(toolkit().value, "1.17.8");
}

TEST(NvidiaSourceTest, AModuleFolderThatHungIsLeftOut) {
  TestTree tree;
  AddProcGpu(tree, "0000:62:00.0", "GPU-a");
  FakeProgress progress;
  progress.skipped = {"proc"};
  EXPECT_TRUE(MakeNvidiaSource({tree.root(), "", false})->Read(progress).devices.empty());
}

TEST(NvidiaSourceTest, FindsNothingOnAMachineWithoutNvidia) {
  TestTree tree;
  const auto report = ReadNvidia(tree.root());
  EXPECT_TRUE(report.devices.empty());
  EXPECT_TRUE(report.findings.empty());
}

TEST(NvidiaSourceTest, SurvivesCorruptProcFiles) {
  for (const std::string& text :
       {std::string(), std::string(":::\n:\n\n"), std::string("Model"), std::string("\0\1\2", 3),
        std::string("GPU UUID: \n"), std::string(200'000, 'x')}) {
    TestTree tree;
    tree.Write("proc/driver/nvidia/gpus/0000:62:00.0/information", text);
    tree.Write("proc/driver/nvidia/version", text);
    const auto report = ReadNvidia(tree.root());
    ASSERT_EQ(report.devices.size(), 1u);
    EXPECT_EQ(report.devices[0].id.value, "PCI-0000:62:00.0");
    EXPECT_FALSE(report.devices[0].driver.known());
  }
}

}  // namespace
}  // namespace bimetal::agent
