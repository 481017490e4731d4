#include "agent/diagnosis/diagnose.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/unit/agent/diagnosis/machines.h"

namespace bimetal::agent {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(DiagnoseTest, MergesReadersLogAndRulesOnce) {
  TestTree tree;
  WriteAmd(tree);
  tree.Write("dev/kmsg",
             "4,9,1000000,-;amdgpu 0000:03:00.0: amdgpu: uncorrectable hardware "
             "error(ERREVENT_ATHUB_INTERRUPT) detected!\n");
  Inventory inventory = InventoryOf(tree.root());
  inventory.findings.push_back({"TopologyChanged", Severity::kInfo, "", "twice", "", ""});
  inventory.findings.push_back({"TopologyChanged", Severity::kInfo, "", "twice", "", ""});
  const auto findings = Diagnose(tree.root(), inventory).findings;
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_EQ(findings[0].code, "RasUncorrected");
  EXPECT_EQ(findings[0].device, kAmdId);
  EXPECT_EQ(findings[0].effect, Effect::kCordon);
  EXPECT_EQ(findings[0].event, "kmsg-9");
  EXPECT_EQ(findings[0].vendor, "amd");
  EXPECT_EQ(findings[1].code, "TopologyChanged");
  EXPECT_EQ(findings[1].severity, Severity::kWarning);  // as its rule says
}

TEST(DiagnoseTest, CountsOfErrorsAreEventsThatHappenOnce) {
  TestTree tree;
  WriteAmd(tree);
  tree.Write("sys/bus/pci/devices/0000:03:00.0/aer_dev_fatal", "TOTAL_ERR_FATAL 2\n");
  const auto once = DiagnoseTree(tree).findings;
  EXPECT_EQ(FindCode(once, "AerFatal")->event, "aer.fatal=2");
  tree.Write("sys/bus/pci/devices/0000:03:00.0/aer_dev_fatal", "TOTAL_ERR_FATAL 3\n");
  EXPECT_EQ(FindCode(DiagnoseTree(tree).findings, "AerFatal")->event, "aer.fatal=3");
}

TEST(DiagnoseTest, NamesTheDeviceThatKfdRefused) {
  TestTree tree;
  WriteAmd(tree);
  tree.Write("dev/kmsg",
             "6,5,0,-;kfd kfd: amdgpu: skipped device 1002:74a1, PCI rejects atomics 730<0\n");
  const auto findings = DiagnoseTree(tree).findings;
  ASSERT_NE(FindCode(findings, "PciAtomicsRejected"), nullptr);
  EXPECT_EQ(FindCode(findings, "PciAtomicsRejected")->device, kAmdId);
}

TEST(DiagnoseTest, KeepsTheGravestOfTooMany) {
  TestTree tree;
  WriteAmd(tree);
  Inventory inventory = InventoryOf(tree.root());
  for (int i = 0; i < 200; ++i) {
    const bool grave = i == 199;
    inventory.findings.push_back({grave ? "DeviceLost" : "XidApplication", Severity::kInfo,
                                  "GPU-" + std::to_string(i), "", "", ""});
  }
  const auto findings = Diagnose(tree.root(), inventory).findings;
  ASSERT_EQ(findings.size(), kMaxFindings);
  EXPECT_EQ(findings[0].code, "DeviceLost");
  EXPECT_EQ(findings.back().code, "TooManyFindings");
  EXPECT_EQ(findings.back().evidence, "137 more are left out");
}

TEST(DiagnoseTest, TellsOneVariableOfAnEnvironmentAndNoMore) {
  TestTree tree;
  WriteAmd(tree);
  tree.Write("proc/77/comm", "ollama\n")
      .Write("proc/77/environ",
             std::string("API_TOKEN=secret1\0HSA_OVERRIDE_GFX_VERSION=11.0.0\0PASSWORD=secret2\0",
                         67));
  const auto findings = DiagnoseTree(tree).findings;
  const Finding* finding = FindCode(findings, "HsaOverrideSet");
  ASSERT_NE(finding, nullptr);
  EXPECT_THAT(finding->evidence, HasSubstr("process 77 (ollama): HSA_OVERRIDE_GFX_VERSION=11.0.0"));
  for (const Finding& any : findings) {
    EXPECT_THAT(any.evidence, Not(HasSubstr("secret")));
  }
  DiagnoseOptions no_processes;
  no_processes.processes = false;
  EXPECT_EQ(FindCode(DiagnoseTree(tree, no_processes).findings, "HsaOverrideSet"), nullptr);
}

// A state that comes and goes with the load would be news at every look of the agent.
TEST(DiagnoseTest, TheAgentLeavesOutWhatComesAndGoes) {
  TestTree tree;
  WriteAmd(tree);
  Inventory inventory = InventoryOf(tree.root());
  inventory.telemetry[kAmdId].throttle = Reading<std::vector<std::string>>::Of({"power-cap"});
  EXPECT_NE(FindCode(Diagnose(tree.root(), inventory).findings, "PowerCapped"), nullptr);
  DiagnoseOptions agent;
  agent.fleeting = false;
  EXPECT_EQ(FindCode(Diagnose(tree.root(), inventory, agent).findings, "PowerCapped"), nullptr);
}

TEST(DiagnoseTest, WhatIsBlindIsSaid) {
  TestTree tree;
  EXPECT_THAT(WhyBlind(tree.root()), HasSubstr("sys/bus/pci/devices"));
  EXPECT_THAT(WhyBlind(tree.root() + "/nowhere"), HasSubstr("nowhere"));
  WriteAmd(tree);
  EXPECT_EQ(WhyBlind(tree.root()), "");
}

// A pod that is shown /usr and /lib/modules: what may also lie under /opt is unknown where it is
// not under /usr, and missing nowhere.
TEST(DiagnoseTest, WhatIsNotUnderUsrAloneIsNotMissing) {
  const auto of_pod = [](TestTree& tree) {
    for (const char* folder : {"etc", "dev", "var/lib", "opt"}) tree.Remove(folder);
    return DiagnoseTree(tree);
  };
  TestTree nvidia;
  WriteNvidia(nvidia);
  nvidia.Remove("usr/bin/nvidia-ctk");
  EXPECT_NE(FindCode(DiagnoseTree(nvidia).findings, "ContainerToolkitMissing"), nullptr);
  const Diagnosis found = of_pod(nvidia);
  EXPECT_EQ(FindCode(found.findings, "ContainerToolkitMissing"), nullptr);
  EXPECT_THAT(found.not_seen, testing::Contains(HasSubstr("/etc")));
  EXPECT_THAT(found.not_seen, testing::Contains(HasSubstr("/dev: ")));
  EXPECT_THAT(found.not_seen, Not(testing::Contains(HasSubstr("/usr"))));
  EXPECT_THAT(found.not_seen, Not(testing::Contains(HasSubstr("/lib/modules"))));
  TestTree amd;
  WriteAmd(amd);
  amd.Remove("opt");
  EXPECT_NE(FindCode(DiagnoseTree(amd).findings, "RocmMissing"), nullptr);
  EXPECT_EQ(FindCode(of_pod(amd).findings, "RocmMissing"), nullptr);
}

// Only the running kernel's own machine may be asked by system call: a recording, a disk and a
// simulated machine have another kernel's log, or none.
TEST(DiagnoseTest, AsksTheRunningKernelForItsOwnMachineOnly) {
  const std::string blind = "/dev/kmsg: the kernel log";
  TestTree tree;
  WriteAmd(tree);
  tree.Remove("dev/kmsg");
  EXPECT_THAT(DiagnoseTree(tree).not_seen, testing::Contains(blind));
  tree.Write("proc/sys/kernel/random/boot_id",
             RootFiles("/").Text("proc/sys/kernel/random/boot_id").value + "\n");
  const Diagnosis found = DiagnoseTree(tree);
  EXPECT_THAT(found.not_seen,
              Not(testing::Contains(blind)));  // it was asked, and answered or refused
}

TEST(DiagnoseTest, SaysThatTheKernelLogCannotBeRead) {
  TestTree tree;
  WriteAmd(tree);
  tree.Remove("dev/kmsg");
  tree.Fifo("dev/kmsg");
  EXPECT_NE(FindCode(DiagnoseTree(tree).findings, "KernelLogUnreadable"), nullptr);
}

// Files of a sick machine may hold anything. Seeds 1 to 40.
TEST(DiagnoseTest, SurvivesGarbageInEveryFile) {
  for (unsigned seed = 1; seed <= 40; ++seed) {
    TestTree tree;
    WriteNvidia(tree);
    WriteAmdCard(tree);
    std::mt19937 random(seed);
    for (const auto& entry : std::filesystem::recursive_directory_iterator(tree.root())) {
      if (!entry.is_regular_file() || random() % 3 != 0) continue;
      std::string text(random() % 200, '\0');
      for (char& c : text) c = static_cast<char>(random());
      std::ofstream(entry.path(), std::ios::binary) << text;
    }
    EXPECT_LE(DiagnoseTree(tree).findings.size(), kMaxFindings) << "seed " << seed;
  }
}

}  // namespace
}  // namespace bimetal::agent
