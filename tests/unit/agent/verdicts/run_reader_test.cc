#include "agent/verdicts/run_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace bimetal::agent {
namespace {

using ::testing::HasSubstr;

constexpr char kRun[] =
    R"({"type":"run","run":"u-1","vendor":"amd","backend":"hip","simulated":false,"level":"L1",)"
    R"("fingerprint":"fp","devices":1,"program":"0.1.0"})";
constexpr char kPass[] =
    R"({"type":"verdict","run":"u-1","check":"memory.pattern","device":"GPU-1","verdict":"Pass",)"
    R"("value":"12","unit":"GB/s","floorSource":"none","seed":7,"durationMs":12,"new":{"a":[1]}})";
constexpr char kDone[] =
    R"({"type":"done","run":"u-1","verdict":"Pass","passed":1,"failed":0,"inconclusive":0})";

// The error of the last line, "" where all were taken.
std::string Feed(const std::vector<std::string>& lines) {
  RunReader reader;
  for (const auto& line : lines) {
    const auto status = reader.AddLine(line);
    if (!status) return status.error().message;
  }
  return "";
}

TEST(RunReaderTest, PutsARunTogether) {
  RunReader reader;
  ASSERT_TRUE(reader.AddLine(kRun));
  EXPECT_TRUE(reader.started());
  ASSERT_TRUE(reader.AddLine(kPass));
  EXPECT_FALSE(reader.done());
  ASSERT_TRUE(reader.AddLine(kDone));
  ASSERT_TRUE(reader.done());
  EXPECT_EQ(reader.received().fingerprint, "fp");
  const auto& run = reader.received().run;
  EXPECT_EQ(run.run(), "u-1");
  EXPECT_EQ(run.backend(), "hip");
  ASSERT_EQ(run.verdicts_size(), 1);
  EXPECT_EQ(run.verdicts(0).check(), "memory.pattern");
  EXPECT_EQ(run.verdicts(0).level(), "L1");
  EXPECT_EQ(run.verdicts(0).seed(), 7);
  EXPECT_EQ(run.verdicts(0).duration_ms(), 12);
}

TEST(RunReaderTest, RunWithoutABackEndIsTakenWithItsInconclusiveVerdicts) {
  RunReader reader;
  ASSERT_TRUE(reader.AddLine(
      R"({"type":"run","run":"u-1","vendor":"nvidia","backend":"none","level":"L1"})"));
  ASSERT_TRUE(reader.AddLine(
      R"({"type":"verdict","check":"c","device":"","verdict":"Inconclusive","evidence":"none"})"));
  ASSERT_TRUE(reader.AddLine(R"({"type":"done","inconclusive":1})"));
  EXPECT_EQ(reader.received().run.backend(), "cuda");
}

TEST(RunReaderTest, BadLinesAreRefusedWithNumberAndField) {
  EXPECT_THAT(Feed({"nonsense"}), HasSubstr("line 1: is no JSON object"));
  EXPECT_THAT(Feed({"[1]"}), HasSubstr("line 1"));
  EXPECT_THAT(Feed({kPass}), HasSubstr("the first line must be of type run"));
  EXPECT_THAT(Feed({kRun, kRun}), HasSubstr("line 2: a second line of type run"));
  EXPECT_THAT(Feed({kRun, R"({"type":"stop"})"}), HasSubstr("type: must be"));
  EXPECT_THAT(Feed({kRun, R"({"type":"verdict","run":"u-2"})"}), HasSubstr("run: is not the run"));
  EXPECT_THAT(Feed({R"({"type":"run","run":"","vendor":"amd"})"}), HasSubstr("run: must be"));
  EXPECT_THAT(Feed({R"({"type":"run","run":"a b","vendor":"amd"})"}), HasSubstr("run: must be"));
  EXPECT_THAT(Feed({R"({"type":"run","run":"u","vendor":"intel"})"}), HasSubstr("vendor: must be"));
  EXPECT_THAT(Feed({kRun, R"({"type":"verdict","check":"c","device":"d","verdict":"Maybe"})"}),
              HasSubstr("verdict: must be"));
  EXPECT_THAT(
      Feed({kRun,
            R"({"type":"verdict","check":"c","device":"d","verdict":"Pass","durationMs":-1})"}),
      HasSubstr("durationMs"));
  EXPECT_THAT(Feed({kRun, kPass, kDone, kPass}), HasSubstr("comes after done"));
}

TEST(RunReaderTest, SpreadAndCapabilityArePassedOn) {
  RunReader reader;
  ASSERT_TRUE(reader.AddLine(kRun));
  ASSERT_TRUE(reader.AddLine(
      R"({"type":"verdict","check":"gemm-bf16","device":"GPU-1","verdict":"Pass",)"
      R"("capability":"bf16","distribution":{"samples":24,"min":1.5,"p5":2,"median":3,"max":4,)"
      R"("clockMhz":1980,"powerWatts":512.5}})"));
  const auto& verdict = reader.received().run.verdicts(0);
  EXPECT_EQ(verdict.capability(), "bf16");
  EXPECT_EQ(verdict.distribution().samples(), 24);
  EXPECT_DOUBLE_EQ(verdict.distribution().p5(), 2);
  EXPECT_DOUBLE_EQ(verdict.distribution().power_watts(), 512.5);
}

TEST(RunReaderTest, SpreadThatNobodyMeasuredIsRefused) {
  const auto refusal = [](const std::string& rest) {
    return Feed({kRun, R"({"type":"verdict","check":"c","device":"GPU-1","verdict":"NoProfile",)" +
                           rest + "}"});
  };
  for (const char* bad :
       {R"({"samples":24,"min":"NaN"})", R"({"samples":24,"max":"Infinity"})",
        R"({"samples":24,"min":-1})", R"({"samples":0})", R"({"samples":24,"min":3,"p5":2})",
        R"({"samples":24,"min":1,"p5":2,"median":5,"max":4})"}) {
    EXPECT_THAT(refusal(std::string(R"("distribution":)") + bad), HasSubstr("distribution: must"))
        << bad;
  }
  EXPECT_THAT(refusal(R"("capability":"bf16")"), HasSubstr("capability: must"));
}

TEST(RunReaderTest, CountsThatDisagreeMeanLostLines) {
  EXPECT_THAT(Feed({kRun, kDone}), HasSubstr("the counts are not those of the verdicts"));
  EXPECT_THAT(Feed({kRun, kPass, R"({"type":"done","failed":1})"}), HasSubstr("the counts"));
}

TEST(RunReaderTest, LinesAreBoundedInLengthAndNumber) {
  EXPECT_THAT(Feed({std::string(RunReader::kMaxLine + 1, 'x')}), HasSubstr("longer than"));
  RunReader reader;
  ASSERT_TRUE(reader.AddLine(kRun));
  Status last;
  for (int i = 0; i < RunReader::kMaxLines && last; ++i) last = reader.AddLine(kPass);
  ASSERT_FALSE(last);
  EXPECT_THAT(last.error().message, HasSubstr("more than 4096 lines"));
}

TEST(RunReaderTest, RunIsBoundedInBytes) {
  const std::string big =
      R"({"type":"verdict","check":"c","device":"d","verdict":"Pass","evidence":")" +
      std::string(1000, 'x') + "\"}";
  RunReader reader;
  ASSERT_TRUE(reader.AddLine(kRun));
  Status last;
  for (int i = 0; i < 4000 && last; ++i) last = reader.AddLine(big);
  ASSERT_FALSE(last);
  EXPECT_THAT(last.error().message, HasSubstr("larger than 3 MiB"));
}

TEST(RunReaderTest, EveryCheckOf64DevicesWithTheLongestEvidenceFits) {
  constexpr int kDevices = 64, kChecks = 32;
  RunReader reader;
  ASSERT_TRUE(reader.AddLine(kRun));
  for (int i = 0; i < kDevices * kChecks; ++i) {
    const std::string line =
        R"({"type":"verdict","check":"gemm-rate-fp8-fnuz-)" + std::to_string(i % kChecks) +
        R"(","device":"0000:05:00.0-partition-)" + std::to_string(i / kChecks) +
        R"(","verdict":"Fail","value":"123456.7","unit":"TFLOPS","seed":9223372036854775807,)"
        R"("durationMs":59999,"evidence":")" +
        std::string(2000, 'e') +
        R"(","distribution":{"samples":24,"min":1.5,"p5":2.5,"median":3.5,"max":4.5,)"
        R"("clockMhz":2100,"powerWatts":750}})";
    const auto status = reader.AddLine(line);
    ASSERT_TRUE(status) << status.error().message;
  }
  ASSERT_TRUE(reader.AddLine(R"({"type":"done","failed":2048})"));
  EXPECT_TRUE(reader.done());
  EXPECT_EQ(reader.received().run.verdicts_size(), kDevices * kChecks);
}

TEST(RunReaderTest, DeepNestingIsRefused) {
  EXPECT_THAT(Feed({R"({"x":)" + std::string(60000, '[')}), HasSubstr("line 1"));
}

TEST(RunReaderTest, BrokenBytesNeverCrashIt) {
  std::mt19937 random(1);
  const std::string base = std::string(kRun) + kPass;
  for (int i = 0; i < 2000; ++i) {
    std::string line = base.substr(random() % base.size());
    for (int k = 0; k < 3 && !line.empty(); ++k) {
      line[random() % line.size()] = static_cast<char>(random());
    }
    RunReader reader;
    static_cast<void>(reader.AddLine(kRun));
    static_cast<void>(reader.AddLine(line));
  }
}

}  // namespace
}  // namespace bimetal::agent
