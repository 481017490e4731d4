// Recorded trouble gives its code; recorded healthy machines give none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "agent/devices/kernel_log.h"
#include "tests/unit/agent/diagnosis/machines.h"
#include "tests/unit/recordings.h"

namespace bimetal::agent {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

class RecordingsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!fs::is_directory(Fixtures())) GTEST_SKIP() << "SKIPPED: no recordings at " << Fixtures();
  }
  static std::string Read(const std::string& path) {
    std::ifstream in(Fixtures() + path);
    EXPECT_TRUE(in) << path;
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
  }
  static std::set<std::string> LogCodes(const std::string& path) {
    std::set<std::string> codes;
    for (const Finding& finding : KernelFindings(Read(path), {})) codes.insert(finding.code);
    return codes;
  }
  TestTree tree_;
};

TEST_F(RecordingsTest, VersionMismatch) {
  const std::string folder = "nvidia/host-failures/version-mismatch/";
  WriteNvidia(tree_);
  // The recorded module 580.173.02 with the recorded library 580.178.
  tree_.Write("proc/driver/nvidia/version", Read(folder + "proc-driver-nvidia-version.txt"));
  tree_.Remove("usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1");
  tree_.Link("usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1", "libnvidia-ml.so.580.178");
  tree_.Write("dev/kmsg", Read(folder + "dmesg-new-form.log"));
  const Diagnosis found = DiagnoseTree(tree_);
  // The log's line is explained by the mismatch itself.
  EXPECT_THAT(Troubles(found), UnorderedElementsAre("DriverLibraryMismatch"));
  EXPECT_THAT(FindCode(found.findings, "DriverLibraryMismatch")->evidence, HasSubstr("580.178"));
  for (const char* log : {"dmesg-new-form.log", "dmesg-old-form.log", "syslog-escaped.log"}) {
    const auto findings = KernelFindings(Read(folder + log), {});
    ASSERT_EQ(findings.size(), 1u) << log;
    EXPECT_EQ(findings[0].code, "ApiMismatchLogged");
    // Both versions, over the line breaks of each form.
    EXPECT_THAT(findings[0].evidence, HasSubstr("this kernel module has the version")) << log;
  }
}

TEST_F(RecordingsTest, NouveauConflict) {
  WriteHost(tree_);
  WriteNvidiaCard(tree_, "nouveau", kNvidiaAt);
  tree_.Write("dev/kmsg", Read("nvidia/host-failures/nouveau-conflict/dmesg.log"));
  EXPECT_THAT(Troubles(DiagnoseTree(tree_)),
              UnorderedElementsAre("NouveauBound", "ProbeRoutineNotCalled"));
}

TEST_F(RecordingsTest, SecureBoot) {
  WriteHost(tree_);
  WriteNvidiaCard(tree_, "");
  tree_.Write("dev/kmsg", Read("nvidia/host-failures/secure-boot/dmesg-and-modprobe.log"));
  EXPECT_THAT(Troubles(DiagnoseTree(tree_)), UnorderedElementsAre("SecureBootRefuses"));
}

TEST_F(RecordingsTest, NvidiaKernelLogs) {
  EXPECT_THAT(LogCodes("nvidia/kernel-log/xid-lines.txt"),
              UnorderedElementsAre("XidFatal", "XidContained", "XidLink", "XidLinkFatal",
                                   "XidRecovery", "XidApplication"));
  EXPECT_THAT(LogCodes("nvidia/kernel-log/dmesg-xid119-h100-dell-xe9680.log"),
              UnorderedElementsAre("XidFatal"));
  for (const char* quiet : {"kmsg-nvswitch-open.log", "kmsg-peermem.log"}) {
    EXPECT_THAT(LogCodes(std::string("nvidia/kernel-log/") + quiet), testing::IsEmpty()) << quiet;
  }
}

TEST_F(RecordingsTest, AmdKernelLogs) {
  EXPECT_THAT(LogCodes("amd/kernel-log/kfd-skipped-atomics.log"),
              UnorderedElementsAre("PciAtomicsRejected"));
  EXPECT_THAT(LogCodes("amd/kernel-log/mi300x-athub-aca.log"),
              UnorderedElementsAre("RasUncorrected", "RasAca"));
  // A reset that is not seen to end, in a log without seconds: no more than that is known.
  EXPECT_THAT(LogCodes("amd/kernel-log/mi50-ras-reset.log"),
              UnorderedElementsAre("RasUncorrected", "GpuReset"));
  EXPECT_THAT(LogCodes("amd/kernel-log/phoenix-gpu-reset.log"), UnorderedElementsAre("GpuReset"));
}

// The table of Xids against the transcribed catalog: every number in use is classed, and as its
// immediate action says, but for the few that operators treat otherwise.
TEST_F(RecordingsTest, XidTableFollowsTheCatalog) {
  const std::map<std::string, std::string> wanted = {
      {"RESET_GPU", "XidFatal"},          {"RESTART_BM", "XidFatal"},
      {"RESTART_VM", "XidFatal"},         {"WORKFLOW_XID_48", "XidFatal"},
      {"RESTART_APP", "XidApplication"},  {"WORKFLOW_XID_45", "XidApplication"},
      {"WORKFLOW_NVLINK_ERR", "XidLink"}, {"WORKFLOW_NVLINK5_ERR", "XidLink"},
      {"XID_154", "XidRecovery"},         {"CHECK_MECHANICALS", "XidContained"},
      {"UPDATE_SWFW", "XidContained"},    {"CONTACT_SUPPORT", "XidContained"},
      {"CHECK_UVM", "XidContained"},      {"IGNORE", ""}};
  // 43: the program's, and worth a word. 63: a row is to be remapped at the next reset. 94:
  // contained by name, the row behind it is to be remapped. 109: a program's hang in most cases;
  // the device plug-in of the vendor leaves the GPU in use.
  const std::map<std::string, std::string> otherwise = {{"43", "XidApplication"},
                                                        {"63", "XidContained"},
                                                        {"94", "XidContained"},
                                                        {"109", "XidContained"}};
  std::stringstream in(Read("nvidia/xid/xid-actions.csv"));
  std::size_t compared = 0;
  for (std::string line; std::getline(in, line);) {
    std::vector<std::string> fields;
    std::stringstream parts(line);
    for (std::string field; std::getline(parts, field, ',');) fields.push_back(field);
    if (fields.size() < 4 || fields[2] != "0" || fields[3].empty()) continue;
    const auto event = ParseKernelLine("NVRM: Xid (PCI:0000:01:00): " + fields[0] + ", text");
    ASSERT_TRUE(event) << line;
    const auto exception = otherwise.find(fields[0]);
    EXPECT_EQ(event->code, exception != otherwise.end() ? exception->second : wanted.at(fields[3]))
        << line;
    ++compared;
  }
  EXPECT_GT(compared, 90u);
}

struct Healthy {
  const char* name;
  bool packed;
  std::set<std::string> explained;
};

// What is left on machines that work, and why.
const std::vector<Healthy> kHealthy = {
    // Recorded without mem_banks: the size is not known, and that is said.
    {"amd/mi210-8gpu-2hives", false, {"MemorySizeUnknown"}},
    // As recorded, one card shows 7 of its 8 partitions; no mem_banks.
    {"amd/mi300x-8gpu-cpx",
     true,
     {"MemorySizeUnknown", "PartitionCountDiffers", "TooManyFindings"}},
    {"amd/mi308x-8gpu-cpx", true, {}},
    // One node of eight was recorded, without mem_banks.
    {"amd/mi300x-spx-kfd-node", false, {"MemorySizeUnknown"}},
    // Its KFD files were recorded under other names.
    {"amd/mi325x-1gpu-spx-vm", false, {"KfdNodeUnreadable"}},
    // The sysfs of desktops was recorded without KFD, which a healthy compute node has, and of some
    // without the size of the memory.
    {"amd/rx7900xtx", false, {"KfdMissing", "MemorySizeUnknown"}},
    {"amd/rx7800xt", false, {"KfdMissing", "MemorySizeUnknown"}},
    {"amd/rx7600s", false, {"KfdMissing", "MemorySizeUnknown"}},
    {"amd/rx6900xt", false, {"KfdMissing"}},
    // Their owners had set 200 of 220 W and 120 of 304 W.
    {"amd/rx9070", false, {"KfdMissing", "MemorySizeUnknown", "PowerCapLowered"}},
    {"amd/rx9070xt", false, {"KfdMissing", "MemorySizeUnknown", "PowerCapLowered"}},
    {"amd/vega56", false, {"KfdMissing"}},
    {"amd/vega56-procfs", false, {"KfdMissing"}},
    {"amd/apu-phoenix", false, {}},
    {"amd/apu-strixpoint", false, {}},
    {"amd/apu-vangogh", false, {}},
    {"amd/rx7900xtx-kfd-node", false, {"MemorySizeUnknown"}},
    {"amd/vega10-mi25-1gpu", false, {}},
    {"nvidia/proc-driver/h100", false, {}},
    {"nvidia/proc-driver/v100", false, {}},
    {"nvidia/proc-driver/a10g", false, {}},
    {"nvidia/proc-driver/rtx5090-open", false, {}},
    {"nvidia/proc-driver/power9-v100x6", false, {}},
};

TEST_F(RecordingsTest, HealthyMachinesHaveNoOtherTrouble) {
  for (const Healthy& machine : kHealthy) {
    SCOPED_TRACE(machine.name);
    TestTree unpacked;
    std::string root = Fixtures() + machine.name;
    if (machine.packed) {
      const std::string command = "cd '" + unpacked.root() +
                                  "' && '" BIMETAL_CMAKE "' -E tar xf '" +
                                  fs::absolute(root).string() + "/root.tar.xz'";
      ASSERT_EQ(std::system(command.c_str()), 0);
      root = unpacked.root();
    }
    const Diagnosis found = Diagnose(root, InventoryOf(root));
    EXPECT_EQ(Troubles(found), machine.explained);
  }
}

}  // namespace
}  // namespace bimetal::agent
