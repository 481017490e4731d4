#include "agent/devices/probe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "tests/unit/agent/devices/test_tree.h"

namespace bimetal::agent {
namespace {

using testing::HasSubstr;
using End = ProbeOutcome::End;

std::vector<std::string> Shell(const std::string& script) { return {"/bin/sh", "-c", script}; }

// Generous where a test waits for an answer, short where it waits for none.
constexpr Millis kLong = Seconds(20);
constexpr Millis kShort{150};

TEST(RunProbeTest, CollectsDescriptorThreeAlone) {
  const auto outcome = RunProbe(Shell("echo noise; echo noise >&2; echo report >&3"), kLong, kLong);
  EXPECT_EQ(outcome.end, End::kExited);
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.output, "report\n");
}

TEST(RunProbeTest, TellsExitCodesAndSignals) {
  EXPECT_EQ(RunProbe(Shell("exit 7"), kLong, kLong).exit_code, 7);
  const auto crashed = RunProbe(Shell("echo part >&3; kill -SEGV $$"), kLong, kLong);
  EXPECT_EQ(crashed.end, End::kSignalled);
  EXPECT_EQ(crashed.signal, SIGSEGV);
  EXPECT_EQ(crashed.output, "part\n");
}

TEST(RunProbeTest, KillsASilentChildAndKeepsWhatItSaid) {
  const auto outcome = RunProbe(Shell("echo part >&3; exec sleep 60"), kShort, kLong);
  EXPECT_EQ(outcome.end, End::kTimedOut);
  EXPECT_EQ(outcome.output, "part\n");
  EXPECT_EQ(outcome.stuck_child, 0);
}

TEST(RunProbeTest, KillsAChildThatIsNeverSilentAtTheTotalDeadline) {
  const auto outcome = RunProbe(Shell("while echo x >&3; do sleep 0.02; done"), kLong, kShort);
  EXPECT_EQ(outcome.end, End::kTimedOut);
}

TEST(RunProbeTest, KillsAChildThatClosesItsReportAndStays) {
  const auto outcome = RunProbe(Shell("exec 3>&-; exec sleep 60"), kLong, kLong);
  EXPECT_EQ(outcome.end, End::kTimedOut);
}

TEST(RunProbeTest, BoundsTheOutput) {
  const auto outcome = RunProbe(Shell("exec cat /dev/zero >&3"), kLong, kLong);
  EXPECT_EQ(outcome.end, End::kTooMuch);
  EXPECT_LT(outcome.output.size(), 9u * 1024 * 1024);
}

TEST(RunProbeTest, SaysThatAProgramCannotBeStarted) {
  const auto outcome = RunProbe({"/no/such/program"}, kLong, kLong);
  EXPECT_EQ(outcome.end, End::kNotStarted);
  EXPECT_THAT(outcome.why, HasSubstr("/no/such/program"));
  EXPECT_EQ(RunProbe({}, kLong, kLong).end, End::kNotStarted);
}

// A reader in shell: hangs or crashes in step "gpu 1" unless it is told to leave that out.
ProbeOptions Reader(const std::string& trouble) {
  ProbeOptions options;
  options.command = Shell(
      "printf 'step\\tvendor\\nstep\\tgpu 0\\n' >&3; case \"$*\" in *'--skip gpu 1'*) ;; *) "
      "printf 'step\\tgpu 1\\n' >&3; " +
      trouble + ";; esac; printf 'device\\tnvidia\\tGPU-0\\t0\\nend\\n' >&3");
  options.command.push_back("probe");
  options.silence = kShort;
  options.total = kLong;
  return options;
}

TEST(ReadInProbeTest, LeavesAHungStepOutAndReportsIt) {
  ProbeMemory memory;
  const auto report = ReadInProbe(Vendor::kNvidia, "/", Reader("exec sleep 60"), memory);
  ASSERT_EQ(report.devices.size(), 1u);
  const Finding* hung = FindCode(report.findings, "VendorLibraryHung");
  ASSERT_NE(hung, nullptr);
  EXPECT_THAT(hung->evidence, HasSubstr("'gpu 1'"));
  EXPECT_TRUE(memory.bad_steps[Vendor::kNvidia].contains("gpu 1"));
}

TEST(ReadInProbeTest, RemembersAHungStepAndTriesItAgainLater) {
  ProbeMemory memory;
  ReadInProbe(Vendor::kNvidia, "/", Reader("exec sleep 60"), memory);
  // Well now: the memory still leaves it out and still says why.
  auto report = ReadInProbe(Vendor::kNvidia, "/", Reader("true"), memory);
  EXPECT_NE(FindCode(report.findings, "VendorLibraryHung"), nullptr);
  memory.bad_steps[Vendor::kNvidia]["gpu 1"].retry_at = Millis{0};
  report = ReadInProbe(Vendor::kNvidia, "/", Reader("true"), memory);
  EXPECT_EQ(FindCode(report.findings, "VendorLibraryHung"), nullptr);
  EXPECT_EQ(report.devices.size(), 1u);
}

TEST(ReadInProbeTest, ReportsACrashInTheLibrary) {
  ProbeMemory memory;
  const auto report = ReadInProbe(Vendor::kNvidia, "/", Reader("kill -SEGV $$"), memory);
  EXPECT_EQ(report.devices.size(), 1u);
  EXPECT_NE(FindCode(report.findings, "VendorLibraryCrashed"), nullptr);
}

TEST(ReadInProbeTest, LeavesTheWholeVendorOutAfterThreeBadSteps) {
  ProbeOptions options;
  // Hangs in a further step each time, until all of them are left out.
  options.command = Shell(
      "case \"$*\" in *'--skip vendor'*) printf 'end\\n' >&3; exit;; esac; "
      "printf 'step\\tgpu %s\\n' \"$#\" >&3; exec sleep 60");
  options.command.push_back("probe");
  options.silence = kShort;
  options.total = kLong;
  ProbeMemory memory;
  const auto report = ReadInProbe(Vendor::kAmd, "/", options, memory);
  EXPECT_EQ(report.findings.size(), 3u);
  EXPECT_EQ(FindCode(report.findings, "ProbeFailed"), nullptr);
}

TEST(ReadInProbeTest, NeverTakesAnIncompleteReportForAMachineWithoutDevices) {
  ProbeOptions options;
  options.command = Shell("printf 'step\\tvendor\\n' >&3");
  options.total = kLong;
  ProbeMemory memory;
  const auto report = ReadInProbe(Vendor::kAmd, "/", options, memory);
  EXPECT_NE(FindCode(report.findings, "ProbeFailed"), nullptr);
  options.command = {"/no/such/program"};
  EXPECT_NE(FindCode(ReadInProbe(Vendor::kAmd, "/", options, memory).findings, "ProbeFailed"),
            nullptr);
}

}  // namespace
}  // namespace bimetal::agent
