// The program itself: exit statuses, and what it prints where no vendor library is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

namespace {

using testing::HasSubstr;
using testing::Not;

struct Result {
  int status = -1;
  std::string output;  // stdout and stderr together
};

// `prefix`: assignments of the environment.
Result Validate(const std::string& arguments, const std::string& prefix = "") {
  // The two oldest checks stand for all, where a test names none: what a check finds is tested
  // elsewhere.
  const bool names = arguments.find("--checks") != std::string::npos ||
                     arguments.find("--help") != std::string::npos || arguments == "--frob" ||
                     arguments == "--version" || arguments == "--list";
  const std::string checks = names ? "" : " --checks compute-checksum,memory-pattern";
  const std::string command = prefix + " " BIMETAL_VALIDATE " " + arguments + checks + " 2>&1";
  FILE* pipe = popen(command.c_str(), "r");
  Result result;
  std::array<char, 4096> buffer{};
  while (const std::size_t got = fread(buffer.data(), 1, buffer.size(), pipe)) {
    result.output.append(buffer.data(), got);
  }
  result.status = WEXITSTATUS(pclose(pipe));
  return result;
}

// Processes of this machine with such a word in their command line; a worker's has it so.
int ProcessesWith(const std::string& word) {
  int found = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    std::ifstream in(entry.path() / "cmdline");
    const std::string line{std::istreambuf_iterator<char>(in), {}};
    if (line.find("--" + word) != std::string::npos) ++found;
  }
  return found;
}

std::chrono::microseconds ChildrenProcessorTime() {
  rusage usage{};
  getrusage(RUSAGE_CHILDREN, &usage);
  return std::chrono::seconds(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         std::chrono::microseconds(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

bool HasRealLibrary(const char* name) {
  for (const char* folder : {"/usr/lib/x86_64-linux-gnu/", "/usr/lib64/", "/opt/rocm/lib/"}) {
    if (std::filesystem::exists(std::string(folder) + name)) return true;
  }
  return false;
}

std::string MachineFile(const std::string& faults) {
  const std::string path = testing::TempDir() + "/bimetal_program_test.json";
  std::ofstream out(path);
  out << R"({"simulated":true,"devices":[)";
  for (int i = 0; i < 8; ++i) {
    out << (i == 0 ? "" : ",") << R"({"id":"GPU-)" << i
        << R"(","vendor":"amd","computeUnits":304,"memoryBytes":206141652992,"faults":[)"
        << (i == 5 ? faults : "") << "]}";
  }
  out << "]}";
  return path;
}

TEST(ProgramTest, MissingNvidiaLibraryIsInconclusiveWithTheLoadersReason) {
  if (HasRealLibrary("libcuda.so.1")) GTEST_SKIP() << "this machine has libcuda.so.1";
  const Result result = Validate("--backend cuda --device GPU-abc");
  EXPECT_EQ(result.status, 2);
  EXPECT_THAT(result.output, HasSubstr("libcuda.so.1: cannot open shared object file"));
  EXPECT_THAT(result.output,
              HasSubstr(R"("device":"GPU-abc","level":"L1","verdict":"Inconclusive")"));
  EXPECT_THAT(result.output, Not(HasSubstr("\"Pass\"")));
  EXPECT_THAT(result.output, Not(HasSubstr("\"Fail\"")));
}

TEST(ProgramTest, MissingAmdLibraryIsInconclusiveWithTheLoadersReason) {
  if (HasRealLibrary("libamdhip64.so")) GTEST_SKIP() << "this machine has libamdhip64.so";
  const Result result = Validate("--vendor amd");
  EXPECT_EQ(result.status, 2);
  EXPECT_THAT(result.output, HasSubstr("libamdhip64.so.7: cannot open shared object file"));
  EXPECT_THAT(result.output, Not(HasSubstr("\"Pass\"")));
}

TEST(ProgramTest, HostNeverStandsInForAVendor) {
  if (HasRealLibrary("libcuda.so.1") || HasRealLibrary("libamdhip64.so")) {
    GTEST_SKIP() << "this machine has a vendor library";
  }
  const Result result = Validate("");
  EXPECT_EQ(result.status, 2);
  EXPECT_THAT(result.output, HasSubstr(R"("backend":"none","simulated":false)"));
  EXPECT_THAT(result.output, HasSubstr("nvidia: could not open"));
  EXPECT_THAT(result.output, HasSubstr("amd: could not open"));
}

TEST(ProgramTest, FakeVendorLibraryIsFoundAsTheLoaderFindsARealOne) {
  const std::string path = "LD_LIBRARY_PATH=" BIMETAL_FAKE_DIR;
  if (BIMETAL_HAS_CUDA != 0) {
    const Result cuda = Validate("--vendor nvidia", path);
    EXPECT_EQ(cuda.status, 0) << cuda.output;
    EXPECT_THAT(cuda.output, HasSubstr(R"("backend":"cuda","simulated":false)"));
  }
  if (BIMETAL_HAS_HIP != 0) {
    const Result hip = Validate("--vendor amd", path);
    EXPECT_EQ(hip.status, 0) << hip.output;
    EXPECT_THAT(hip.output, HasSubstr(R"("backend":"hip","simulated":false)"));
  }
  const Result both = Validate("", path);
  EXPECT_EQ(both.status, 2);
  EXPECT_THAT(both.output, HasSubstr("devices of both vendors answer"));
}

TEST(ProgramTest, LibraryThatDoesNotLetItsProcessEndIsKilledAndTheVerdictsStand) {
  if (BIMETAL_HAS_CUDA == 0) GTEST_SKIP() << "built with BIMETAL_CUDA=OFF";
  const auto start = std::chrono::steady_clock::now();
  const Result result = Validate("--run-id exit-test --vendor nvidia --timeout 600",
                                 "FAKE_CUDA_HANGS_AT_EXIT=1 LD_LIBRARY_PATH=" BIMETAL_FAKE_DIR);
  EXPECT_EQ(result.status, 0) << result.output;
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::minutes(1));
  EXPECT_EQ(ProcessesWith("run-id=exit-test"), 0);
}

TEST(ProgramTest, DriverThatCrashesIsInconclusiveAndNamesTheSignal) {
  const Result result = Validate("--vendor nvidia --device GPU-a",
                                 "FAKE_CUDA_CRASHES=1 LD_LIBRARY_PATH=" BIMETAL_FAKE_DIR);
  EXPECT_EQ(result.status, 2);
  EXPECT_THAT(result.output, HasSubstr("the validation process was ended by signal 6 (Aborted)"));
  EXPECT_THAT(result.output, HasSubstr(R"("passed":0,"failed":0,"inconclusive":2)"));
}

TEST(ProgramTest, DriverThatNeverAnswersIsInconclusiveInTimeAndLeavesNoProcess) {
  const auto start = std::chrono::steady_clock::now();
  const Result result = Validate("--run-id hang-test --vendor nvidia --device GPU-a --timeout 1",
                                 "FAKE_CUDA_HANGS=1 LD_LIBRARY_PATH=" BIMETAL_FAKE_DIR);
  EXPECT_EQ(result.status, 2);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::minutes(1));
  EXPECT_THAT(result.output, HasSubstr("no answer from the device or its driver in time: cuInit in "
                                       "finding devices has not returned"));
  EXPECT_THAT(result.output, HasSubstr(R"("passed":0,"failed":0,"inconclusive":2)"));
  EXPECT_EQ(ProcessesWith("run-id=hang-test"), 0);
}

TEST(ProgramTest, AllChecksOfL1OnEightSimulatedDevicesStayWithinTheBudget) {
  const auto start = std::chrono::steady_clock::now();
  std::string all;
  std::istringstream list(Validate("--list").output);
  for (std::string line; std::getline(list, line);) {
    if (line.find("\tL2\t") == std::string::npos) {
      all += (all.empty() ? "" : ",") + line.substr(0, line.find('\t'));
    }
  }
  const Result result = Validate("--checks " + all + " --machine " + MachineFile(""));
  EXPECT_EQ(result.status, 0) << result.output;
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
}

TEST(ProgramTest, EightSimulatedDevicesPassWithinFiveSecondsOfProcessor) {
  [[maybe_unused]] const std::chrono::microseconds before = ChildrenProcessorTime();
  const Result result = Validate("--machine " + MachineFile(""));
  EXPECT_EQ(result.status, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr(R"("passed":16,"failed":0,"inconclusive":0)"));
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_LT(ChildrenProcessorTime() - before, std::chrono::seconds(5));
#endif
}

TEST(ProgramTest, FaultExitsWithOne) {
  const Result result =
      Validate("--memory-bytes 1048576 --machine " +
               MachineFile(R"({"kind":"memory","offset":65536,"bit":3,"stuck":1})"));
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.output, HasSubstr(R"("passed":15,"failed":1,"inconclusive":0)"));
}

TEST(ProgramTest, CorruptMachineExitsWithTwoAndNamesTheFile) {
  const std::string path = testing::TempDir() + "/bimetal_program_corrupt.json";
  std::ofstream(path) << "{\"simulated\":tr";
  const Result result = Validate("--machine " + path);
  EXPECT_EQ(result.status, 2);
  EXPECT_THAT(result.output, HasSubstr(path + ": line 1, column 14"));
}

TEST(ProgramTest, PassThatCouldNotBeReportedExitsWithTwo) {
  const Result result = Validate(
      "--backend host --memory-bytes 65536 --report-timeout 1 --report unix:/nonexistent/s");
  EXPECT_EQ(result.status, 2);
  EXPECT_THAT(result.output, HasSubstr("report to /nonexistent/s failed"));
}

TEST(ProgramTest, UsageErrorExitsWith64AndOneLine) {
  const Result result = Validate("--frob");
  EXPECT_EQ(result.status, 64);
  EXPECT_EQ(result.output, "bimetal-validate: unknown flag --frob: see --help for the flags\n");
}

TEST(ProgramTest, HelpVersionAndListExitWithZero) {
  EXPECT_EQ(Validate("--help").status, 0);
  EXPECT_THAT(Validate("--version").output, HasSubstr("host kernels: yes"));
  EXPECT_THAT(Validate("--list").output, HasSubstr("memory-pattern\tL1\t"));
}

}  // namespace
