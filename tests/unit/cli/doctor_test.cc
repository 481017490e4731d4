#include "cli/doctor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/agent/diagnosis/machines.h"

namespace bimetal::cli {
namespace {

using agent::Finding;
using agent::Reading;
using agent::Severity;
using testing::HasSubstr;
using testing::Not;

CommandLine Doctor(const std::string& root) {
  CommandLine line;
  line.command = Command::kDoctor;
  line.root = root;
  return line;
}

// Reads in this process: the tests' own program answers no probe.
Result<Answer> Examine(const CommandLine& line, bool terminal = false) {
  return RunDoctor(line, terminal, agent::InventoryOf);
}

TEST(DoctorTest, AHealthyMachineIsExitZero) {
  agent::TestTree tree;
  agent::WriteAmd(tree);
  const auto answer = Examine(Doctor(tree.root()));
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->exit_status, kExitSuccess);
  EXPECT_THAT(answer->out, HasSubstr("GPU-fa5e0000000000a1"));
  EXPECT_THAT(answer->out, HasSubstr("AMD Instinct MI300X"));
  EXPECT_THAT(answer->out, HasSubstr("healthy"));
  EXPECT_THAT(answer->out, HasSubstr("Nothing is wrong."));
}

TEST(DoctorTest, FindingsAreExitOneWithEvidenceAndRemedy) {
  agent::TestTree tree;
  agent::WriteHost(tree);
  agent::WriteNvidiaCard(tree, "nouveau");
  const auto answer = Examine(Doctor(tree.root()));
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->exit_status, kExitFindings);
  EXPECT_THAT(answer->out, HasSubstr("Critical  NouveauBound  bus    nvidia  0000:01:00.0"));
  EXPECT_THAT(answer->out, HasSubstr("  saw  /sys/bus/pci/devices/0000:01:00.0/driver is nouveau"));
  EXPECT_THAT(answer->out, HasSubstr("  do   blacklist nouveau"));
  EXPECT_THAT(answer->out, HasSubstr("  see  https://docs.nvidia.com/"));
  EXPECT_THAT(answer->out, HasSubstr("1 critical, 0 warning(s)"));
}

TEST(DoctorTest, NoGpuIsANoteUnlessADriverIsInstalled) {
  agent::TestTree tree;
  agent::WriteHost(tree);
  tree.Write("sys/bus/pci/devices/0000:00:00.0/vendor", "0x8086\n");
  auto answer = Examine(Doctor(tree.root()));
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->exit_status, kExitSuccess);
  EXPECT_THAT(answer->out, HasSubstr("NoGpu"));
  EXPECT_THAT(answer->out, HasSubstr("No GPU is here, and nothing is wrong."));
  tree.Write("sys/module/nvidia/version", "580.1\n");
  answer = Examine(Doctor(tree.root()));
  EXPECT_EQ(answer->exit_status, kExitFindings);
  EXPECT_THAT(answer->out, HasSubstr("DriverWithoutGpu"));
}

TEST(DoctorTest, WhereNothingCanBeSeenItSaysSo) {
  agent::TestTree tree;
  for (const std::string& root : {tree.root(), tree.root() + "/nowhere"}) {
    const auto answer = Examine(Doctor(root));
    ASSERT_FALSE(answer);
    EXPECT_THAT(answer.error().message, HasSubstr("cannot look: "));
    EXPECT_THAT(answer.error().message, HasSubstr(root));
  }
}

TEST(DoctorTest, ColoursOnlyWhereWanted) {
  agent::TestTree tree;
  agent::WriteHost(tree);
  agent::WriteNvidiaCard(tree, "nouveau");
  CommandLine line = Doctor(tree.root());
  EXPECT_THAT(Examine(line, false)->out, Not(HasSubstr("\x1b[")));
  EXPECT_THAT(Examine(line, true)->out, HasSubstr("\x1b[1;31mCritical\x1b[0m  NouveauBound"));
  line.color = Color::kNever;
  EXPECT_THAT(Examine(line, true)->out, Not(HasSubstr("\x1b[")));
  line.color = Color::kAlways;
  EXPECT_THAT(Examine(line, false)->out, HasSubstr("\x1b[1;31m"));
  line.output = Output::kJson;
  EXPECT_THAT(Examine(line, true)->out, Not(HasSubstr("\x1b[")));
}

TEST(DoctorTest, JsonHoldsEverythingAndInventsNothing) {
  Examination seen;
  seen.root = "/";
  seen.inventory.kernel = Reading<std::string>::Of("6.8.0");
  agent::Device device;
  device.id.value = "GPU-1";
  device.model = Reading<std::string>::Of("A \"quoted\" \\ model");
  device.healthy = Reading<bool>::Unknown("not asked");
  seen.inventory.devices = {device};
  Finding finding;
  finding.code = "XidFatal";
  finding.severity = Severity::kError;
  finding.vendor = "nvidia";
  finding.evidence = "line\n\x1b[2J two";
  finding.event = "kmsg-7";
  seen.diagnosis.findings = {finding};
  seen.diagnosis.not_seen = {"/usr: what is installed"};
  const std::string json = ExaminationJson(seen);
  EXPECT_THAT(json, HasSubstr(R"("healthy": false)"));
  EXPECT_THAT(json, HasSubstr(R"("model": "A \"quoted\" \\ model")"));
  EXPECT_THAT(json, HasSubstr(R"("health": "unknown", "healthReason": "not asked")"));
  EXPECT_THAT(json, Not(HasSubstr("memoryBytes")));
  EXPECT_THAT(json, HasSubstr(R"("code": "XidFatal", "severity": "Critical")"));
  EXPECT_THAT(json, HasSubstr(R"("step": "health")"));
  EXPECT_THAT(json, HasSubstr(R"("event": "kmsg-7")"));
  EXPECT_THAT(json, HasSubstr("/usr: what is installed"));
  EXPECT_THAT(json, Not(HasSubstr("\x1b")));
}

// What a node's files say must not move the terminal's cursor.
TEST(DoctorTest, NothingOfTheMachineReachesTheTerminalAsItIs) {
  agent::TestTree tree;
  agent::WriteAmd(tree);
  tree.Write("etc/environment", "HSA_OVERRIDE_GFX_VERSION=11\x1b]0;x\n");
  const auto answer = Examine(Doctor(tree.root()));
  EXPECT_THAT(answer->out, Not(HasSubstr("\x1b")));
}

TEST(ParseFlags, TakesTheDoctorsOptionsAndNoOthers) {
  const auto line = ParseFlags({"doctor", "--root", "/mnt", "--color=never", "-o", "json"});
  ASSERT_TRUE(line) << line.error().message;
  EXPECT_EQ(line->command, Command::kDoctor);
  EXPECT_EQ(line->root, "/mnt");
  EXPECT_EQ(line->color, Color::kNever);
  EXPECT_EQ(line->output, Output::kJson);
  EXPECT_EQ(ParseFlags({"doctor"})->root, "");
  const auto error = [](const std::vector<std::string>& arguments) {
    const auto parsed = ParseFlags(arguments);
    return parsed ? "accepted" : parsed.error().message;
  };
  EXPECT_EQ(error({"doctor", "--color", "pink"}),
            "unknown colour \"pink\"; use auto, always or never");
  EXPECT_EQ(error({"nodes", "--root", "/"}), "nodes takes no --root");
  EXPECT_EQ(error({"jobs", "--color=never"}), "jobs takes no --color");
  EXPECT_EQ(error({"doctor", "--root="}), "option --root needs a value");
  EXPECT_THAT(error({"doctor", "-n", "x"}), HasSubstr("looks at a machine"));
  EXPECT_THAT(HelpText(Command::kDoctor, "bimetal"), HasSubstr("2 it could not look"));
}

}  // namespace
}  // namespace bimetal::cli
