// Whole runs in this process: every line, every verdict, whatever the devices do.
#include "kernels/run/run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "kernels/json/json.h"
#include "kernels/run/board.h"

namespace bimetal::kernels {
namespace {

using testing::HasSubstr;

// The JSON lines of a run, taken apart.
struct Lines {
  RunSummary summary;
  std::vector<JsonValue> values;

  std::string Text(std::size_t i, const char* key) const {
    const JsonValue* member = values.at(i).Find(key);
    return member == nullptr || member->AsString() == nullptr ? "?" : *member->AsString();
  }
  // "check device" -> "verdict: evidence"
  std::map<std::string, std::string> Verdicts() const {
    std::map<std::string, std::string> verdicts;
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (Text(i, "type") != "verdict") continue;
      const std::string key = Text(i, "check") + " " + Text(i, "device");
      EXPECT_EQ(verdicts.count(key), 0u) << key << " has two verdicts";
      verdicts[key] = Text(i, "verdict") + ": " + Text(i, "evidence");
    }
    return verdicts;
  }
};

Lines RunLines(const RunOptions& options) {
  Lines lines;
  lines.summary = RunValidation(options, [](const std::string&) {});
  for (std::string line : lines.summary.lines) {
    // This room's reader knows whole numbers only; spreads are tested apart.
    const std::size_t spread = line.find(",\"distribution\":{");
    if (spread != std::string::npos) line.erase(spread, line.find('}', spread) - spread + 1);
    std::string error;
    auto value = ParseJson(line, &error);
    EXPECT_TRUE(value.has_value()) << line << ": " << error;
    if (value) lines.values.push_back(std::move(*value));
  }
  EXPECT_EQ(lines.Text(0, "type"), "run");
  EXPECT_EQ(lines.Text(lines.values.size() - 1, "type"), "done");
  return lines;
}

RunOptions Options() {
  RunOptions options;
  options.run_id = "uid-1";
  options.fingerprint = "fp";
  options.memory_bytes = 1u << 20;
  options.checks = {FindCheck("compute-checksum"), FindCheck("memory-pattern")};
  return options;
}

class RunTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(testing::TempDir()) /
              ("bimetal_run_test_" +
               std::string(testing::UnitTest::GetInstance()->current_test_info()->name()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  static std::string Device(const std::string& id, const std::string& vendor,
                            const std::string& faults = "") {
    return R"({"id":")" + id + R"(","vendor":")" + vendor +
           R"(","computeUnits":4,"memoryBytes":85899345920,"faults":[)" + faults + "]}";
  }
  RunOptions Machine(const std::string& devices) {
    std::ofstream(folder_ / "devices.json")
        << R"({"simulated":true,"devices":[)" << devices << "]}";
    RunOptions options = Options();
    options.machine = folder_.string();
    return options;
  }
  std::filesystem::path folder_;
};

TEST_F(RunTest, CleanMachinePassesAndSaysThatItIsSimulated) {
  const Lines lines = RunLines(Machine(Device("A", "nvidia") + "," + Device("B", "nvidia")));
  EXPECT_EQ(lines.summary.verdict, VerdictKind::kPass);
  EXPECT_EQ(lines.summary.passed, 4u);
  EXPECT_EQ(lines.Text(0, "run"), "uid-1");
  EXPECT_EQ(lines.Text(0, "fingerprint"), "fp");
  EXPECT_EQ(lines.Text(0, "backend"), "host");
  EXPECT_EQ(lines.Text(0, "vendor"), "nvidia");
  EXPECT_TRUE(*lines.values[0].Find("simulated")->AsBool());
  EXPECT_EQ(*lines.values[0].Find("devices")->AsInteger(), 2);
  EXPECT_EQ(lines.Verdicts().size(), 4u);
  EXPECT_EQ(lines.Text(5, "verdict"), "Pass");
}

TEST_F(RunTest, ErrorsUnderAnyLoadOfTheRunFailTheStress) {
  const std::string errors = R"({"kind":"errors","count":3})";
  RunOptions options = Machine(Device("A", "nvidia", errors) + "," + Device("B", "nvidia"));
  options.level = 2;
  options.checks.push_back(FindCheck("stress"));
  auto verdicts = RunLines(options).Verdicts();
  EXPECT_THAT(verdicts["compute-checksum A"], HasSubstr("Pass"));
  EXPECT_THAT(verdicts["stress A"], HasSubstr("uncorrected errors 0 -> 3"));
  EXPECT_THAT(verdicts["stress A"], testing::StartsWith("Fail"));
  EXPECT_THAT(verdicts["stress B"], testing::StartsWith("Pass"));
}

TEST_F(RunTest, LinesHaveExactlyTheAgreedFields) {
  const Lines lines = RunLines(Machine(Device("A", "amd")));
  const auto keys = [&](std::size_t i) {
    std::string joined;
    for (const auto& [key, value] : *lines.values.at(i).AsObject()) joined += key + " ";
    return joined;
  };
  EXPECT_EQ(keys(0), "type run vendor backend simulated level fingerprint devices program ");
  EXPECT_EQ(keys(1),
            "type run check device level verdict value unit floor floorSource seed durationMs "
            "evidence backend ");
  EXPECT_EQ(keys(3), "type run verdict passed failed inconclusive ");
}

TEST_F(RunTest, OneFaultyDeviceFailsTheRunAndNoOther) {
  const Lines lines = RunLines(
      Machine(Device("good", "nvidia") + "," +
              Device("bad", "nvidia", R"({"kind":"memory","offset":4096,"bit":3,"stuck":1})")));
  EXPECT_EQ(lines.summary.verdict, VerdictKind::kFail);
  EXPECT_EQ(lines.summary.failed, 1u);
  EXPECT_EQ(lines.summary.passed, 3u);
  EXPECT_THAT(lines.Verdicts().at("memory-pattern bad"),
              HasSubstr("Fail: first mismatch at offset 0x1000"));
}

TEST_F(RunTest, DeviceThatFailsByItselfIsToBlameForWrongCopiesWithItsPeers) {
  RunOptions options =
      Machine(Device("good", "nvidia") + "," +
              Device("bad", "nvidia", R"({"kind":"memory","offset":4096,"bit":3,"stuck":1})"));
  options.checks = {FindCheck("memory-pattern"), FindCheck("peer-to-peer")};
  const Lines lines = RunLines(options);
  EXPECT_THAT(lines.Verdicts().at("peer-to-peer bad"), HasSubstr("Fail: copy from"));
  EXPECT_THAT(lines.Verdicts().at("peer-to-peer good"), Not(HasSubstr("Fail")));
}

TEST_F(RunTest, HungDeviceIsInconclusiveAndHoldsNobodyUp) {
  RunOptions options =
      Machine(Device("good", "nvidia") + "," + Device("hung", "nvidia", R"({"kind":"hang"})"));
  options.memory_bytes = 64u << 10;
  options.timeout = std::chrono::milliseconds(2'500);
  const Lines lines = RunLines(options);
  EXPECT_EQ(lines.summary.verdict, VerdictKind::kInconclusive);
  EXPECT_FALSE(lines.summary.abandoned);
  EXPECT_THAT(lines.Verdicts().at("memory-pattern good"), HasSubstr("Pass"));
  EXPECT_THAT(lines.Verdicts().at("compute-checksum hung"), HasSubstr("did not finish in time"));
  EXPECT_THAT(lines.Verdicts().at("memory-pattern hung"), HasSubstr("not run"));
}

TEST_F(RunTest, RequestedDevicesOnlyAndAbsentOnesAreInconclusive) {
  RunOptions options = Machine(Device("A", "nvidia") + "," + Device("B", "nvidia"));
  options.devices = {"B", "C", "b"};
  const Lines lines = RunLines(options);
  const auto verdicts = lines.Verdicts();
  EXPECT_EQ(verdicts.size(), 4u);
  EXPECT_THAT(verdicts.at("memory-pattern B"), HasSubstr("Pass"));
  EXPECT_EQ(verdicts.at("memory-pattern C"), "Inconclusive: no device answers to id C");
  EXPECT_EQ(lines.summary.verdict, VerdictKind::kInconclusive);
}

TEST_F(RunTest, InventoryFailsOnAnAbsentDeviceAndOnAnotherNumber) {
  RunOptions options = Machine(Device("A", "nvidia") + "," + Device("B", "nvidia"));
  options.checks = {FindCheck("inventory")};
  options.level = 0;
  options.expect_devices = 2;
  EXPECT_EQ(RunLines(options).summary.verdict, VerdictKind::kPass);
  options.expect_devices = 3;
  const Lines fewer = RunLines(options);
  EXPECT_EQ(fewer.summary.verdict, VerdictKind::kFail);
  EXPECT_EQ(fewer.Verdicts().at("inventory "), "Fail: expected 3 devices, found 2");
  EXPECT_THAT(fewer.Verdicts().at("inventory A"), HasSubstr("Pass"));
  options.expect_devices.reset();
  options.devices = {"A", "C"};
  const auto absent = RunLines(options).Verdicts();
  EXPECT_EQ(absent.at("inventory C"), "Fail: no device answers to id C");
  EXPECT_EQ(absent.size(), 2u);
}

TEST_F(RunTest, NodeChecksLeaveADeviceOutThatHangsAndNameTheCall) {
  RunOptions options = Machine(Device("A", "amd") + "," + Device("B", "amd") + "," +
                               Device("hung", "amd", R"({"kind":"hang","call":"allocate"})"));
  options.checks = {FindCheck("hbm-triad"), FindCheck("peer-to-peer")};
  options.timeout = std::chrono::milliseconds(300);
  const Lines lines = RunLines(options);
  EXPECT_TRUE(lines.summary.abandoned);
  const auto verdicts = lines.Verdicts();
  EXPECT_THAT(verdicts.at("hbm-triad A"), HasSubstr("NoProfile"));
  EXPECT_THAT(verdicts.at("hbm-triad hung"),
              HasSubstr("Inconclusive: no answer from the device or its driver in time: allocate "
                        "in hbm-triad has not returned"));
  EXPECT_THAT(verdicts.at("peer-to-peer hung"), HasSubstr("Inconclusive"));
}

// Each call of the device layer, at a level at which all of them are made.
TEST_F(RunTest, HangInAnyCallIsInconclusiveAndNamed) {
  for (const char* call : {"open", "allocate", "launch", "wait", "copy"}) {
    RunOptions options =
        Machine(Device("hung", "amd", R"({"kind":"hang","call":")" + std::string(call) + R"("})"));
    options.checks = {FindCheck("host-to-device")};
    options.timeout = std::chrono::milliseconds(50);
    options.grace = std::chrono::milliseconds(100);
    const Lines lines = RunLines(options);
    EXPECT_THAT(lines.Verdicts().at("host-to-device hung"),
                HasSubstr("Inconclusive: no answer from the device or its driver in time: " +
                          std::string(call) + " in "))
        << call;
  }
}

TEST_F(RunTest, LoneDeviceHasNoPeersAndNoVerdictOnThem) {
  RunOptions options = Machine(Device("A", "nvidia"));
  options.checks.push_back(FindCheck("peer-to-peer"));
  const Lines lines = RunLines(options);
  EXPECT_EQ(lines.summary.verdict, VerdictKind::kPass);
  EXPECT_EQ(lines.Verdicts().size(), 2u);
}

TEST_F(RunTest, EveryCheckOfTheDeepestLevelGivesOneVerdictADevice) {
  RunOptions options = Machine(Device("A", "nvidia") + "," + Device("B", "nvidia"));
  options.memory_bytes = 192u << 10;
  options.level = 2;
  options.checks.clear();
  std::size_t owed = 0;
  DeviceInfo info;
  info.vendor = "nvidia";
  for (const Check& check : AllChecks()) {
    options.checks.push_back(&check);
    owed += Applies(check, info, 2) ? 2 : 0;
  }
  const Lines lines = RunLines(options);
  EXPECT_EQ(lines.Verdicts().size(), owed);
  EXPECT_EQ(lines.summary.verdict, VerdictKind::kPass);
  EXPECT_EQ(lines.summary.inconclusive, 0u);
}

TEST_F(RunTest, VendorPicksItsDevicesAndTwoVendorsNeedAName) {
  RunOptions options = Machine(Device("A", "nvidia") + "," + Device("B", "amd"));
  const Lines both = RunLines(options);
  EXPECT_EQ(both.summary.verdict, VerdictKind::kInconclusive);
  EXPECT_THAT(both.Verdicts().begin()->second, HasSubstr("--vendor"));
  options.vendor = "amd";
  const Lines amd = RunLines(options);
  EXPECT_EQ(amd.summary.verdict, VerdictKind::kPass);
  EXPECT_EQ(amd.Verdicts().count("memory-pattern B"), 1u);
  EXPECT_EQ(amd.Verdicts().size(), 2u);
}

TEST_F(RunTest, EmptyMachineIsInconclusiveNeverAPass) {
  const Lines lines = RunLines(Machine(""));
  EXPECT_EQ(lines.summary.verdict, VerdictKind::kInconclusive);
  EXPECT_EQ(lines.Verdicts().size(), 2u);
}

TEST_F(RunTest, CorruptMachineIsInconclusiveAndNamesTheFile) {
  RunOptions options = Machine("{");
  const Lines lines = RunLines(options);
  EXPECT_EQ(lines.summary.verdict, VerdictKind::kInconclusive);
  EXPECT_THAT(lines.Verdicts().at("memory-pattern "), HasSubstr("devices.json"));
}

TEST_F(RunTest, DeeperLevelTestsMoreAndKeepsTheVerdict) {
  RunOptions options = Machine(Device("A", "nvidia"));
  const std::string l1 = RunLines(options).Verdicts().at("compute-checksum A");
  options.level = 2;
  const Lines deep = RunLines(options);
  EXPECT_EQ(deep.summary.verdict, VerdictKind::kPass);
  EXPECT_EQ(deep.Text(0, "level"), "L2");
  EXPECT_NE(deep.Verdicts().at("compute-checksum A"), l1);
}

TEST_F(RunTest, BareHostIsADeviceOfNoVendor) {
  RunOptions options = Options();
  options.backend = BackendKind::kHost;
  const Lines lines = RunLines(options);
  EXPECT_EQ(lines.summary.verdict, VerdictKind::kPass);
  EXPECT_EQ(lines.Text(0, "vendor"), "host");
  EXPECT_TRUE(*lines.values[0].Find("simulated")->AsBool());
}

// A driver call that never returns: the run ends at its time and says so for every check.
TEST(BoardTest, OwedVerdictsBecomeInconclusiveAndLateOnesAreDropped) {
  std::vector<std::string> said;
  Board board(Options(), [&](const std::string& line) { said.push_back(line); });
  const Check& first = *FindCheck("compute-checksum");
  const Check& second = *FindCheck("memory-pattern");
  board.Announce("cuda", "nvidia", 2,
                 {{"A", &first}, {"A", &second}, {"B", &first}, {"B", &second}});
  CheckResult pass;
  pass.verdict = VerdictKind::kPass;
  board.Post("A", first, pass, std::chrono::milliseconds(1));
  board.Post("A", first, pass, std::chrono::milliseconds(1));
  board.Post("stranger", first, pass, std::chrono::milliseconds(1));
  EXPECT_FALSE(board.WaitUntilFinished(std::chrono::steady_clock::now()));
  board.Forgo("no answer");
  const RunSummary summary = board.Close();
  board.Post("B", first, pass, std::chrono::milliseconds(1));
  EXPECT_EQ(summary.passed, 1u);
  EXPECT_EQ(summary.inconclusive, 3u);
  EXPECT_EQ(summary.verdict, VerdictKind::kInconclusive);
  EXPECT_EQ(said.size(), 6u);
  EXPECT_EQ(said, summary.lines);
}

// A supervisor's board, fed with what a worker's board says.
TEST(BoardTest, RelayedRunIsTheSameRunAndKeepsItsDebts) {
  RunOptions options = Options();
  const Check& first = *FindCheck("compute-checksum");
  const Check& second = *FindCheck("memory-pattern");
  Board supervisor(options, [](const std::string&) {});
  options.on_event = [&](const std::string& event) { supervisor.Relay(event); };
  Board worker(options, [&](const std::string& line) { supervisor.Relay(line); });
  worker.Announce("cuda", "nvidia", 2, {{"A", &first}, {"A", &second}, {"B", &first}});
  worker.Begin("A", first);
  CheckResult result;
  result.verdict = VerdictKind::kNoProfile;
  result.distribution = Summarize({1.5, 2.5});
  worker.Post("A", first, result, std::chrono::milliseconds(1));
  worker.Begin("A", second);
  EXPECT_EQ(supervisor.LastStep("A"), "memory-pattern");
  EXPECT_EQ(supervisor.LastStep("B"), "");
  supervisor.Relay("no line at all");
  supervisor.Forgo("the process died");
  const RunSummary summary = supervisor.Close();
  EXPECT_EQ(summary.passed, 1u);
  EXPECT_EQ(summary.inconclusive, 2u);
  EXPECT_THAT(
      summary.lines.at(1),
      HasSubstr(R"("distribution":{"samples":2,"min":1.5,"p5":1.5,"median":1.5,"max":2.5})"));
  EXPECT_THAT(summary.lines.at(3), HasSubstr("the process died"));
  EXPECT_THAT(summary.lines.back(), HasSubstr(R"("type":"done")"));
}

TEST(BoardTest, SilentRunAnnouncesTheRequestedDevices) {
  RunOptions options = Options();
  options.devices = {"X"};
  options.vendor = "amd";
  Board board(options, [](const std::string&) {});
  board.Forgo("the driver never answered");
  const RunSummary summary = board.Close();
  EXPECT_THAT(summary.lines.at(0),
              HasSubstr(R"("vendor":"amd","backend":"none","simulated":false)"));
  EXPECT_THAT(summary.lines.at(1), HasSubstr(R"("device":"X")"));
  EXPECT_EQ(summary.inconclusive, 2u);
}

}  // namespace
}  // namespace bimetal::kernels
