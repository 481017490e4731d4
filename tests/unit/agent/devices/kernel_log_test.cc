#include "agent/devices/kernel_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "agent/devices/data_tables.h"
#include "tests/unit/agent/devices/test_tree.h"

namespace bimetal::agent {
namespace {

using testing::HasSubstr;

std::string Line(const std::string& text) {
  const auto event = ParseKernelLine(text);
  if (!event) return "none";
  return event->pci_address + " " + std::to_string(event->xid);
}

TEST(KernelLogTest, ReadsAnXidInEveryKnownForm) {
  const std::string xid = "NVRM: Xid (PCI:0000:CB:00): 79, pid='<unknown>', GPU has fallen off";
  for (const std::string prefix : {"", "[Fri Aug 30 11:11:22 2024] ", "[171167.6] ", "kernel: ",
                                   "2024-08-18T01:19:31+00:00 host kernel: ", "4,77,5000,-;"}) {
    EXPECT_EQ(Line(prefix + xid), "0000:cb:00.0 79") << prefix;
  }
  EXPECT_EQ(Line("NVRM: Xid (0000:03:00): 8, Channel 0000001e"), "0000:03:00.0 8");
  EXPECT_EQ(ParseKernelLine("4,77,5000,-;" + xid)->key, "kmsg-77");
}

TEST(KernelLogTest, LeavesOtherLinesAlone) {
  for (const char* line :
       {"", "NVRM: Xid (PCI:", "NVRM: Xid (PCI:0000:01:00): x, text", "NVRM: loading NVIDIA UNIX",
        "NVRM: Xid (PCI:0000:01:00): 99999999999999999999, x", "amdgpu 0000:e3:00.0",
        "amdgpu: [powerplay] Failed to disable DPM!",
        "amdgpu 0000:e3:00.0: amdgpu: SMU is resuming"}) {
    EXPECT_EQ(Line(line), "none") << line;
  }
}

TEST(KernelLogTest, SaysHowGraveAndForWhichDevice) {
  Device gpu;
  gpu.id.value = "GPU-a";
  gpu.pci_address = Reading<std::string>::Of("0000:01:00.0");
  const std::string at = "NVRM: Xid (PCI:0000:01:00): ";
  const auto findings = KernelFindings(
      "6,1,0,-;boot\n4,2,0,-;" + at + "79, GPU has fallen off the bus.\n4,3,0,-;" + at +
          "13, pid=1, name=a, Graphics Exception\n4,4,0,-;" + at + "94, Contained\n4,5,0,-;" + at +
          "43, ignored\n4,6,0,-;NVRM: Xid (PCI:0000:02:00): 149, NETIR Fatal XC0\n4,7,0,-;" + at +
          "154, GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)\n"
          "4,8,0,-;" +
          at + "154, GPU recovery action changed from 0x2 to 0x0 (None)\n",
      {gpu});
  EXPECT_EQ(FindCode(findings, "XidFatal")->device, "GPU-a");
  EXPECT_EQ(FindCode(findings, "XidFatal")->severity, Severity::kError);
  EXPECT_EQ(FindCode(findings, "XidFatal")->event, "kmsg-2");
  EXPECT_EQ(FindCode(findings, "XidApplication")->severity, Severity::kInfo);
  EXPECT_EQ(FindCode(findings, "XidContained")->severity, Severity::kWarning);
  EXPECT_EQ(FindCode(findings, "XidLink")->severity, Severity::kError);
  EXPECT_EQ(FindCode(findings, "XidLink")->device, "0000:02:00.0");
  EXPECT_THAT(FindCode(findings, "XidRecovery")->remedy, HasSubstr("Node Reboot Required"));
}

TEST(KernelLogTest, KeepsTheNewestOfEachKindAndStaysBounded) {
  std::string log;
  for (int i = 0; i < 2000; ++i) {
    log += "4," + std::to_string(i) + ",0,-;NVRM: Xid (PCI:0000:01:00): 79, off\n";
    log += "4," + std::to_string(i) + ",0,-;NVRM: Xid (PCI:" + std::to_string(1000 + i) +
           ":01:00): 94, contained\n";
  }
  const auto findings = KernelFindings(log, {});
  EXPECT_LE(findings.size(), 64u);
  EXPECT_EQ(findings[0].code, "XidFatal");
  EXPECT_EQ(findings[0].event, "kmsg-1999");
}

TEST(KernelLogTest, ReadsAmdTrouble) {
  const auto findings = KernelFindings(
      "[1] amdgpu 0000:e3:00.0: amdgpu: uncorrectable hardware error(ERREVENT_ATHUB_INTERRUPT) "
      "detected!\n[1] amdgpu 0000:e3:00.0: amdgpu: GPU reset begin!\n"
      "[1] amdgpu 0000:e4:00.0: amdgpu: socket: 0 0 new uncorrectable hardware errors\n",
      {});
  ASSERT_NE(FindCode(findings, "RasUncorrected"), nullptr);
  EXPECT_EQ(FindCode(findings, "RasUncorrected")->device, "0000:e3:00.0");
  EXPECT_NE(FindCode(findings, "GpuReset"), nullptr);
  EXPECT_EQ(findings.size(), 2u);
}

TEST(KernelLogTest, ReadsEveryRecordedXidLine) {
  const char* shared = std::getenv("BIMETAL_SHARED");
  const std::string path =
      (shared ? shared : std::string(std::getenv("BIMETAL_SOURCE_DIR") ?: ".") + "/../shared") +
      std::string("/fixtures/nvidia/kernel-log/xid-lines.txt");
  std::ifstream in(path);
  if (!in) GTEST_SKIP() << "SKIPPED: no recordings at " << path;
  std::size_t xids = 0;
  for (std::string line; std::getline(in, line);) {
    const bool expected = line.find("NVRM: Xid (") != std::string::npos;
    EXPECT_EQ(ParseKernelLine(line).has_value(), expected) << line;
    xids += expected ? 1 : 0;
  }
  EXPECT_GT(xids, 20u);
}

TEST(DataTablesTest, KnowTheModelsAndXidsThatTestsRelyOn) {
  EXPECT_EQ(FindAmdModel(0x74a1)->gfx, "gfx942");
  EXPECT_EQ(FindAmdModel(0x74a2)->compute_dies, 4);
  EXPECT_FALSE(FindAmdModel(0xffff));
  EXPECT_EQ(FindXid(79).kind, XidClass::kFatal);
  EXPECT_EQ(FindXid(31).kind, XidClass::kApplication);
  EXPECT_EQ(FindXid(12345).kind, XidClass::kContained);
}

// A line that does not fit its table would be a fact that is silently missing.
TEST(DataTablesTest, EveryLineOfTheTablesFits) {
  const auto data_lines = [](std::string_view csv) {
    std::size_t count = 0;
    std::istringstream in{std::string(csv)};
    for (std::string line; std::getline(in, line);) {
      count += !line.empty() && line[0] != '#' ? 1 : 0;
    }
    return count;
  };
  EXPECT_EQ(ParseAmdModels(AmdDevicesCsv()).size(), data_lines(AmdDevicesCsv()));
  EXPECT_EQ(ParseXids(NvidiaXidsCsv()).size(), data_lines(NvidiaXidsCsv()));
}

}  // namespace
}  // namespace bimetal::agent
