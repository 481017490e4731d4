#include "kernels/program/flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace bimetal::kernels {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

ProgramOptions Parsed(const std::vector<std::string>& arguments) {
  auto parsed = ParseFlags(arguments);
  const auto* error = std::get_if<UsageError>(&parsed);
  EXPECT_EQ(error, nullptr) << error->message;
  return error == nullptr ? std::get<ProgramOptions>(parsed) : ProgramOptions{};
}

std::string ErrorOf(const std::vector<std::string>& arguments) {
  auto parsed = ParseFlags(arguments);
  const auto* error = std::get_if<UsageError>(&parsed);
  return error == nullptr ? "" : error->message;
}

std::size_t ChecksUpTo(int level) {
  return static_cast<std::size_t>(
      std::count_if(AllChecks().begin(), AllChecks().end(),
                    [&](const Check& check) { return check.level <= level; }));
}

TEST(FlagsTest, LevelsChooseTheirChecksAndTheirTime) {
  const ProgramOptions inventory = Parsed({"--level", "L0", "--expect-devices", "8"});
  ASSERT_EQ(inventory.run.checks.size(), 1u);
  EXPECT_EQ(inventory.run.checks[0]->key, "inventory");
  EXPECT_EQ(inventory.run.timeout, std::chrono::seconds(5));
  EXPECT_EQ(inventory.run.expect_devices, 8u);
  const ProgramOptions deep = Parsed({"--level=L2", "--stress", "9"});
  EXPECT_EQ(deep.run.checks.size(), AllChecks().size());
  EXPECT_EQ(deep.run.timeout, std::chrono::seconds(600));
  EXPECT_EQ(deep.run.stress, std::chrono::seconds(9));
  EXPECT_EQ(Parsed({"--level=L2", "--timeout=7"}).run.timeout, std::chrono::seconds(7));
  EXPECT_EQ(Parsed({"--checks", "stress"}).run.checks[0]->key, "stress");
}

TEST(FlagsTest, DefaultsRunEveryCheckOfL1) {
  const ProgramOptions options = Parsed({});
  EXPECT_EQ(options.action, ProgramOptions::Action::kRun);
  EXPECT_EQ(options.run.checks.size(), ChecksUpTo(1));
  EXPECT_LT(ChecksUpTo(1), AllChecks().size());
  EXPECT_EQ(options.run.level, 1);
  EXPECT_EQ(options.run.timeout, std::chrono::seconds(60));
  EXPECT_FALSE(options.worker);
  EXPECT_EQ(options.run.seed, 1u);
  EXPECT_FALSE(options.run.backend.has_value());
  EXPECT_THAT(options.run.run_id, testing::StartsWith("local-"));
  EXPECT_NE(options.run.run_id, Parsed({}).run.run_id);
}

TEST(FlagsTest, TakesValuesInBothForms) {
  const ProgramOptions options = Parsed({"--backend=host",
                                         "--device",
                                         "GPU-1",
                                         "--device=0000:17:00.0",
                                         "--level",
                                         "L2",
                                         "--checks",
                                         "memory-pattern",
                                         "--run-id",
                                         "uid-1",
                                         "--fingerprint=a=b c",
                                         "--report",
                                         "unix:/run/x.sock",
                                         "--seed",
                                         "9",
                                         "--memory-bytes",
                                         "1048576",
                                         "--timeout",
                                         "7",
                                         "--machine",
                                         "/m",
                                         "--vendor",
                                         "amd"});
  EXPECT_EQ(options.run.backend, BackendKind::kHost);
  EXPECT_THAT(options.run.devices, ElementsAre("GPU-1", "0000:17:00.0"));
  EXPECT_EQ(options.run.level, 2);
  ASSERT_EQ(options.run.checks.size(), 1u);
  EXPECT_EQ(options.run.checks[0]->key, "memory-pattern");
  EXPECT_EQ(options.run.run_id, "uid-1");
  EXPECT_EQ(options.run.fingerprint, "a=b c");
  EXPECT_EQ(options.report_path, "/run/x.sock");
  EXPECT_EQ(options.run.seed, 9u);
  EXPECT_EQ(options.run.memory_bytes, 1048576u);
  EXPECT_EQ(options.run.timeout, std::chrono::seconds(7));
  EXPECT_EQ(options.run.machine, "/m");
  EXPECT_EQ(options.run.vendor, "amd");
}

TEST(FlagsTest, EveryBadFlagIsNamedWithItsRemedy) {
  EXPECT_THAT(ErrorOf({"--frob"}), AllOf(HasSubstr("--frob"), HasSubstr("--help")));
  EXPECT_THAT(ErrorOf({"run"}), HasSubstr("unexpected argument run"));
  EXPECT_THAT(ErrorOf({"--seed"}), HasSubstr("--seed needs a value"));
  EXPECT_THAT(ErrorOf({"--backend", "vulkan"}), HasSubstr("--backend must be auto, cuda"));
  EXPECT_THAT(ErrorOf({"--vendor", "intel"}), HasSubstr("--vendor must be nvidia or amd"));
  EXPECT_THAT(ErrorOf({"--level", "3"}), HasSubstr("--level must be L0, L1 or L2"));
  EXPECT_THAT(ErrorOf({"--level", "L3"}), HasSubstr("--level must be L0, L1 or L2"));
  EXPECT_THAT(ErrorOf({"--expect-devices", "0"}), HasSubstr("--expect-devices must be"));
  EXPECT_THAT(ErrorOf({"--checks", "memory-pattern,x"}),
              HasSubstr("no check \"x\"; there are inventory, compute-checksum, memory-pattern"));
  EXPECT_THAT(ErrorOf({"--checks", ""}), HasSubstr("--checks knows no check"));
  EXPECT_THAT(ErrorOf({"--run-id", "a b"}), HasSubstr("--run-id must be"));
  EXPECT_THAT(ErrorOf({"--seed", "-1"}), HasSubstr("--seed must be a whole number"));
  EXPECT_THAT(ErrorOf({"--seed", "9007199254740992"}), HasSubstr("--seed must be"));
  EXPECT_THAT(ErrorOf({"--memory-bytes", "1"}), HasSubstr("from 65536"));
  EXPECT_THAT(ErrorOf({"--timeout", "0"}), HasSubstr("--timeout must be"));
  EXPECT_THAT(ErrorOf({"--timeout", "5s"}), HasSubstr("--timeout must be"));
  // More than milliseconds can count.
  EXPECT_THAT(ErrorOf({"--timeout", "5866666666666666666"}), HasSubstr("--timeout must be"));
  EXPECT_THAT(ErrorOf({"--device", ""}), HasSubstr("--device must be"));
  EXPECT_THAT(ErrorOf({"--report", "/run/x"}), HasSubstr("unix:/path"));
  EXPECT_THAT(ErrorOf({"--report", "unix:x"}), HasSubstr("absolute path"));
  EXPECT_THAT(ErrorOf({"--report", "unix:/" + std::string(200, 'x')}), HasSubstr("longer than"));
}

TEST(FlagsTest, FlagsThatContradictEachOtherAreRefused) {
  EXPECT_THAT(ErrorOf({"--machine", "/m", "--backend", "cuda"}), HasSubstr("--machine"));
  EXPECT_THAT(ErrorOf({"--backend", "cuda", "--vendor", "amd"}), HasSubstr("--vendor amd"));
  EXPECT_THAT(ErrorOf({"--vendor", "nvidia", "--backend", "hip"}), HasSubstr("--vendor nvidia"));
}

TEST(FlagsTest, VersionNamesTheArchitecturesOrTheirAbsence) {
  EXPECT_THAT(VersionText(), HasSubstr(BIMETAL_HAS_CUDA != 0
                                           ? "cuda kernels: sm_"
                                           : "cuda kernels: none (built with BIMETAL_CUDA=OFF)"));
  EXPECT_THAT(VersionText(),
              HasSubstr(BIMETAL_HAS_HIP != 0 ? "hip kernels: gfx90a gfx942 "
                                             : "hip kernels: none (built with BIMETAL_HIP=OFF)"));
}

}  // namespace
}  // namespace bimetal::kernels
