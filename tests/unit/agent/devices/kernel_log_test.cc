#include "agent/devices/kernel_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <random>
#include <set>
#include <sstream>

#include "agent/devices/data_tables.h"
#include "tests/unit/agent/devices/test_tree.h"
#include "tests/unit/recordings.h"

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
  for (const std::string prefix :
       {"", "[Fri Aug 30 11:11:22 2024] ", "[171167.6] ",
        "kernel: ", "2024-08-18T01:19:31+00:00 host kernel: ", "4,77,5000,-;", "<4>[   12.5] "}) {
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
  EXPECT_EQ(FindCode(findings, "XidLinkFatal")->severity, Severity::kError);
  EXPECT_EQ(FindCode(findings, "XidLinkFatal")->device, "0000:02:00.0");
  // What the driver asks for ends when it says so.
  EXPECT_EQ(FindCode(findings, "XidRecovery"), nullptr);
}

TEST(KernelLogTest, RecoveryLastsUntilTheDriverSaysNone) {
  const auto findings = KernelFindings(
      "4,7,0,-;NVRM: Xid (PCI:0000:01:00): 154, GPU recovery action changed from 0x0 (None) to 0x2 "
      "(Node Reboot Required)\n",
      {});
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].code, "XidRecovery");
  EXPECT_EQ(findings[0].effect, Effect::kCordon);
  EXPECT_THAT(findings[0].remedy, HasSubstr("Node Reboot Required"));
}

struct LineCase {
  const char* code;
  const char* fires;
  const char* near_miss;
};

// Every row of kernel_lines.csv but the Xids' table has its line, and one that only looks like it.
constexpr LineCase kLines[] = {
    {"DeviceFellOffBus", "NVRM: GPU 0000:3b:00.0: GPU has fallen off the bus.",
     "NVRM: GPU 0000:3b:00.0: GPU is on the bus."},
    {"DeviceFellOffBus", "amdgpu 0000:e3:00.0: amdgpu: device lost from bus!",
     "nvme 0000:e3:00.0: device lost from bus!"},
    {"AdapterInitFailed", "NVRM: GPU 0000:3b:00.0: RmInitAdapter failed! (0x26:0x56:1474)",
     "NVRM: GPU 0000:3b:00.0: RmInitAdapter succeeded"},
    {"OpenModuleUnsupported",
     "NVRM: The NVIDIA GPU 0000:01:00.0 (PCI ID: 10de:1c82) installed in this system is not "
     "supported by open nvidia.ko because it does not include the required GPU System Processor",
     "NVRM: The NVIDIA GPU 0000:01:00.0 (PCI ID: 10de:1c82) installed in this system requires "
     "another driver"},
    {"ProbeRoutineNotCalled", "NVRM: The NVIDIA probe routine was not called for 3 device(s).",
     "NVRM: The NVIDIA probe routine failed for 1 device(s)."},
    {"ApiMismatchLogged", "NVRM: API mismatch: the client has the version 515.48.07, but",
     "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  515.48.07"},
    {"RasPoisonConsumed",
     "amdgpu 0000:e3:00.0: amdgpu: {3}poison is consumed by client 18, kick off gpu reset flow",
     "amdgpu 0000:e3:00.0: amdgpu: poison mode is supported"},
    {"RasPoisonCreated", "amdgpu 0000:e3:00.0: amdgpu: Poison is created",
     "amdgpu 0000:e3:00.0: amdgpu: no Poison was created"},
    {"RasDeferred",
     "amdgpu 0000:e3:00.0: amdgpu: {1}socket: 0, die: 0, 2 new deferred hardware errors detected "
     "in umc block",
     "amdgpu 0000:e3:00.0: amdgpu: {1}socket: 0, die: 0, 0 new deferred hardware errors detected "
     "in umc block"},
    {"RasUncorrected",
     "amdgpu 0000:e3:00.0: amdgpu: socket: 4, die: 0, 10 new uncorrectable hardware errors "
     "detected in umc block",
     "amdgpu 0000:e3:00.0: amdgpu: socket: 4, die: 0, 3 uncorrectable hardware errors detected in "
     "total in umc block"},
    {"RasCorrected",
     "amdgpu 0000:e3:00.0: amdgpu: socket: 4, die: 0, 1 new correctable hardware errors detected "
     "in umc block",
     "amdgpu 0000:e3:00.0: amdgpu: socket: 4, die: 0, 0 new correctable hardware errors detected "
     "in umc block"},
    {"RasAca",
     "amdgpu 0000:9e:00.0: {1}[Hardware Error]: Accelerator Check Architecture events logged",
     "amdgpu 0000:9e:00.0: {1}[Hardware Error]: aca entry[00].STATUS=0x98000800003e0000"},
    {"BadPagesThreshold",
     "amdgpu 0000:e3:00.0: amdgpu: Saved bad pages 128 reaches threshold value 128",
     "amdgpu 0000:e3:00.0: amdgpu: Saved bad pages 3 of threshold 128"},
    {"OverTemperature",
     "amdgpu 0000:e3:00.0: amdgpu: ERROR: GPU over temperature range(SW CTF) detected!",
     "amdgpu 0000:e3:00.0: amdgpu: GPU temperature range is 0 to 100"},
    {"GpuThrottledLogged",
     "amdgpu 0000:e3:00.0: amdgpu: WARN: GPU is throttled, expect performance decrease.",
     "amdgpu 0000:e3:00.0: amdgpu: GPU throttling is logged each 60 seconds"},
    {"GpuResetFailed", "amdgpu 0000:e3:00.0: amdgpu: GPU reset(2) failed",
     "amdgpu 0000:e3:00.0: amdgpu: GPU reset(2) succeeded!"},
    {"GpuResetFailed", "amdgpu 0000:e3:00.0: amdgpu: ASIC reset failed with error, -62",
     "amdgpu 0000:e3:00.0: amdgpu: MODE2 reset"},
    {"GpuResetFailed", "amdgpu 0000:e3:00.0: amdgpu: GPU Recovery Failed: -19",
     "amdgpu 0000:e3:00.0: amdgpu: recover vram bo from shadow done"},
    {"GpuResetFailed", "amdgpu 0000:e3:00.0: amdgpu: GPU reset end with ret = -110",
     "amdgpu 0000:e3:00.0: amdgpu: GPU reset end with ret = 0"},
    {"GpuReset", "amdgpu 0000:c3:00.0: amdgpu: GPU reset begin!",
     "amdgpu 0000:c3:00.0: amdgpu: GPU reset succeeded, trying to resume"},
    {"RingTimeout",
     "amdgpu 0000:03:00.0: amdgpu: ring gfx_0.0.0 timeout, signaled seq=12, emitted seq=14",
     "amdgpu 0000:03:00.0: amdgpu: ring gfx_0.0.0 uses VM inv eng 0 on hub 0"},
    {"RingTimeout",
     "[drm:amdgpu_job_timedout [amdgpu]] *ERROR* ring sdma0 timeout, signaled seq=1, emitted seq=3",
     "[drm:i915_job_timedout [i915]] *ERROR* ring rcs0 timeout, signaled seq=1, emitted seq=3"},
    {"RingTimeout", "amdgpu 0000:03:00.0: amdgpu: qcm fence wait loop timeout expired",
     "amdgpu 0000:03:00.0: amdgpu: fence wait loop ended"},
    {"RingTimeout", "kfd kfd: qcm fence wait loop timeout expired", "kfd kfd: Initialized module"},
    {"GpuPageFault",
     "amdgpu 0000:03:00.0: amdgpu: [gfxhub0] no-retry page fault (src_id:0 ring:24 vmid:3)",
     "amdgpu 0000:03:00.0: amdgpu: [gfxhub0] page table base 0"},
    {"DriverInitFailed", "amdgpu 0000:03:00.0: amdgpu: Fatal error during GPU init",
     "amdgpu 0000:03:00.0: amdgpu: Fetched VBIOS from VFCT"},
    {"DriverInitFailed",
     "amdgpu 0000:03:00.0: amdgpu: hw_init of IP block <gfx_v9_4_3> failed -110",
     "amdgpu 0000:03:00.0: amdgpu: hw_init of IP block <gfx_v9_4_3> done"},
    {"DriverInitFailed",
     "[drm:amdgpu_device_init [amdgpu]] *ERROR* hw_init of IP block <psp> failed -22",
     "[drm:radeon_init] *ERROR* hw_init of IP block <psp> failed -22"},
    {"FirmwareMissing",
     "amdgpu 0000:03:00.0: Direct firmware load for amdgpu/gc_11_0_0_pfp.bin failed with error -2",
     "iwlwifi 0000:04:00.0: Direct firmware load for iwlwifi-1.ucode failed with error -2"},
    {"FirmwareMissing",
     "nvidia 0000:01:00.0: Direct firmware load for nvidia/595.80/gsp_ga10x.bin failed with error "
     "-2",
     "nvidia 0000:01:00.0: enabling device (0000 -> 0003)"},
    {"PciAtomicsRejected", "kfd kfd: amdgpu: skipped device 1002:7341, PCI rejects atomics 123<145",
     "kfd kfd: amdgpu: added device 1002:7341"},
    {"KfdDeviceSkipped", "kfd kfd: amdgpu: skipped device 1002:7341, no reason",
     "kfd kfd: amdgpu: added device 1002:7341"},
    {"KfdDeviceSkipped", "kfd kfd: amdgpu: DID 6660, DGPU not supported in kfd",
     "kfd kfd: amdgpu: Allocated 3969056 bytes on gart"},
    {"ModuleRefused", "nvidia: version magic '6.8.0-40 SMP' should be '6.8.0-45 SMP'",
     "nvidia: loading out-of-tree module taints kernel."},
    {"ModuleRefused", "nvidia: disagrees about version of symbol module_layout",
     "snd: disagrees about version of symbol module_layout"},
    {"ModuleRefused", "nvidia: Unknown symbol drm_gem (err -2)",
     "nvidia: module license 'NVIDIA' taints kernel."},
    {"ModuleRefused", "amdgpu: version magic '6.8.0-40 SMP' should be '6.8.0-45 SMP'",
     "amdgpu: loading out-of-tree module taints kernel."},
    {"ModuleRefused", "amdgpu: disagrees about version of symbol drm_dev_alloc",
     "amdgpu: Virtual CRAT table created for CPU"},
    {"ModuleRefused", "amdgpu: Unknown symbol drm_exec_init (err -2)",
     "amdgpu: Topology: Add CPU node"},
    {"PcieFatalError",
     "nvidia 0000:3b:00.0: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer",
     "nvme 0000:5b:00.0: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer"},
    {"PcieFatalError",
     "pcieport 0000:3a:00.0: AER: Uncorrected (Fatal) error received: 0000:3b:00.0",
     "pcieport 0000:5a:00.0: AER: Uncorrected (Fatal) error received: 0000:5b:00.0"},
    {"PcieNonfatalError",
     "amdgpu 0000:e3:00.0: PCIe Bus Error: severity=Uncorrectable (Non-Fatal), type=Transaction",
     "amdgpu 0000:e3:00.0: PCIe Bus Error: severity=Correctable, type=Physical Layer"},
    {"PcieNonfatalError",
     "pcieport 0000:3a:00.0: AER: Uncorrected (Non-Fatal) error received: 0000:3b:00.0",
     "pcieport 0000:3a:00.0: AER: Correctable error message received from 0000:3b:00.0"},
    {"PcieLinkDown", "pcieport 0000:3a:00.0: pciehp: Slot(12): Link Down",
     "pcieport 0000:3a:00.0: pciehp: Slot(12): Link Up"},
    {"PcieLinkDown", "pcieport 0000:3a:00.0: pciehp: Slot(12): Card not present",
     "pcieport 0000:3a:00.0: pciehp: Slot(12): Card present"},
    {"IommuPageFault",
     "AMD-Vi: Event logged [IO_PAGE_FAULT device=3b:00.0 domain=0x0010 address=0x1 flags=0x0020]",
     "AMD-Vi: Event logged [IO_PAGE_FAULT device=5b:00.0 domain=0x0010 address=0x1 flags=0x0020]"},
    {"IommuPageFault",
     "DMAR: [DMA Read NO_PASID] Request device [3b:00.0] fault addr 0xf000 [fault reason 0x06]",
     "DMAR: [DMA Read NO_PASID] Request device [5b:00.0] fault addr 0xf000 [fault reason 0x06]"},
    {"DriverCallHung", "INFO: task nvidia-smi:4242 blocked for more than 120 seconds.",
     "INFO: task jbd2/sda1-8:242 blocked for more than 120 seconds."},
    {"DriverCallHung", "INFO: task nv_queue:900 blocked for more than 120 seconds.",
     "INFO: task nvme:900 blocked for more than 120 seconds."},
    {"DriverCallHung", "INFO: task amdgpu-reset-de:55 blocked for more than 241 seconds.",
     "INFO: task amdgpu-reset-de:55 is done"},
    {"DriverCallHung", "INFO: task kfd_process_wq:55 blocked for more than 120 seconds.",
     "INFO: task kworker/1:55 blocked for more than 120 seconds."},
    {"DriverCallHung", "INFO: task rocminfo:55 blocked for more than 120 seconds.",
     "INFO: task rsync:55 blocked for more than 120 seconds."},
};

TEST(KernelLogTest, EveryRowOfTheTableHasItsLineAndNoNearMiss) {
  Device gpu;
  gpu.id.value = "GPU-a";
  gpu.pci_address = Reading<std::string>::Of("0000:3b:00.0");
  std::multiset<std::string> cases;
  for (const LineCase& one : kLines) {
    EXPECT_NE(FindCode(KernelFindings(one.fires, {gpu}), one.code), nullptr) << one.fires;
    EXPECT_EQ(FindCode(KernelFindings(one.near_miss, {gpu}), one.code), nullptr) << one.near_miss;
    cases.insert(one.code);
  }
  std::multiset<std::string> rows;
  for (const auto& rule : ParseKernelLineRules(KernelLinesCsv())) rows.insert(rule.code);
  for (const std::string& code : rows) {
    if (code[0] >= 'a' && code[0] <= 'z') continue;
    EXPECT_GE(cases.count(code), rows.count(code)) << code << " needs a line for each row";
  }
}

TEST(KernelLogTest, AFactOfTheLogIsNoFinding) {
  for (const char* line :
       {"[ 1748.999277] Loading of module with unavailable key is rejected",
        "modprobe: ERROR: could not insert 'nvidia': Key was rejected by service",
        "modprobe: ERROR: could not insert 'nvidia': Required key not available"}) {
    EXPECT_TRUE(KernelFindings(line, {}).empty()) << line;
    EXPECT_EQ(KernelFacts(line).count("key_rejected"), 1u) << line;
  }
  EXPECT_TRUE(
      KernelFacts("module verification failed: signature and/or required key missing").empty());
}

TEST(KernelLogTest, AResetThatDoesNotEndHangs) {
  const std::string begin = "4,1,1000000,-;amdgpu 0000:e3:00.0: amdgpu: GPU reset begin!\n";
  const std::string late = "6,9,200000000,-;usb 1-1: new device\n";
  const auto hung = KernelFindings(begin + late, {});
  EXPECT_NE(FindCode(hung, "GpuResetHung"), nullptr);
  EXPECT_EQ(FindCode(hung, "GpuResetHung")->event, "kmsg-1");
  EXPECT_EQ(FindCode(KernelFindings(begin + "6,9,60000000,-;usb 1-1: new\n", {}), "GpuResetHung"),
            nullptr);
  EXPECT_EQ(FindCode(KernelFindings(begin +
                                        "4,2,3000000,-;amdgpu 0000:e3:00.0: amdgpu: GPU "
                                        "reset(1) succeeded!\n" +
                                        late,
                                    {}),
                     "GpuResetHung"),
            nullptr);
  // Another GPU's end is not this one's.
  EXPECT_NE(FindCode(KernelFindings(begin +
                                        "4,2,3000000,-;amdgpu 0000:e4:00.0: amdgpu: GPU "
                                        "reset(1) succeeded!\n" +
                                        late,
                                    {}),
                     "GpuResetHung"),
            nullptr);
}

TEST(KernelLogTest, JoinsWhatTheDriverWroteAsOne) {
  EXPECT_EQ(KernelRecords("[1.0] NVRM: a\n   NVRM: b\nNVRM: c\n[2.0] NVRM: d\n"),
            (std::vector<std::string>{"[1.0] NVRM: a b c", "[2.0] NVRM: d"}));
  EXPECT_EQ(KernelRecords("NVRM: a#012NVRM: b\n4,1,0,-;NVRM: c\\x0aNVRM: d\n"),
            (std::vector<std::string>{"NVRM: a b", "4,1,0,-;NVRM: c d"}));
  // The kernel's own buffer puts level and stamp before every line.
  EXPECT_EQ(KernelRecords("<4>[ 1.5] NVRM: a\n<4>[ 1.5] NVRM: b\n<4>[ 1.6] NVRM: c\n"),
            (std::vector<std::string>{"[ 1.5] NVRM: a b", "[ 1.6] NVRM: c"}));
  EXPECT_EQ(KernelRecords("[ 1.5] NVRM: Xid (PCI:0000:01:00): 79, x\n[ 1.5] NVRM: y\n").size(), 2u);
  EXPECT_EQ(KernelRecords("[ 1.5] NVRM: y\n[ 1.5] NVRM: Xid (PCI:0000:01:00): 79, x\n").size(), 2u);
  // Bare lines are messages of their own; an Xid always is one; a record's fields are none.
  EXPECT_EQ(KernelRecords("NVRM: a\nNVRM: b\n").size(), 2u);
  EXPECT_EQ(KernelRecords("[1.0] NVRM: a\nNVRM: Xid (PCI:0000:10:1c): 63, x\n").size(), 2u);
  EXPECT_EQ(KernelRecords("6,1,0,-;amdgpu x\n SUBSYSTEM=pci\n DEVICE=+pci:0000:03:00.0\n").size(),
            1u);
}

// A log is written by whoever can make a driver speak. Seeds 1 to 200.
TEST(KernelLogTest, SurvivesGarbage) {
  const std::string words[] = {
      "NVRM: ",    "Xid (PCI:", "amdgpu ",  "0000:e3:00.0: ", "): 79, ", "kfd ", "[", "1.0] ",
      ";",         "4,1,0,-;",  ",",        "\\x0a",          "#012",    "\n",   ":", ".7",
      "GPU reset", "device=e3", "\xff\xfe", "(Fatal)"};
  for (unsigned seed = 1; seed <= 200; ++seed) {
    std::mt19937 random(seed);
    std::string log;
    for (int i = 0; i < 60; ++i) log += words[random() % std::size(words)];
    EXPECT_LE(KernelFindings(log, {}).size(), 64u) << "seed " << seed;
  }
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
  const std::string path = Fixtures() + "nvidia/kernel-log/xid-lines.txt";
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
