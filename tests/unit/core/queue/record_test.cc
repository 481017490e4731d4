#include "core/queue/record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/queue/json.h"
#include "tests/unit/core/queue/simulated.h"

namespace bimetal::core::queue {
namespace {

using ::testing::HasSubstr;
using testing::RandomSimulated;

// A snapshot with something in every list.
Snapshot Full(std::uint64_t seed) {
  auto s = RandomSimulated(seed);
  s.CarryOut(Decide(s.Look()), true);
  Snapshot snapshot = s.Look();
  snapshot.namespaces = {{"team", {{"a", "b"}}}, {"\"odd\"\n", {}}};
  snapshot.past_use = {
      {.queue = QueueName{"q0"}, .devices = 3, .from = TimePoint{1}, .to = TimePoint{9'000'000}}};
  snapshot.past_evictions = {{.queue = QueueName{"q0"}, .at = TimePoint{9'999'999}}};
  snapshot.nodes[0].labels = {{"zone", "eu\u00e9"}};
  snapshot.nodes[0].taints = {{.key = "k", .value = "v", .effect = "NoSchedule"}};
  return snapshot;
}

TEST(RecordTest, ARecordedCycleIsDecidedToTheSameBytes) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const Snapshot snapshot = Full(seed);
    const std::string text = WriteSnapshot(snapshot);
    const auto read = ReadSnapshot(text);
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(WriteSnapshot(*read), text) << seed;
    EXPECT_EQ(WritePlan(Decide(*read)), WritePlan(Decide(snapshot))) << seed;
  }
}

TEST(RecordTest, WhatIsMissingOrUnknownIsPassedOverAndWhatIsWrongIsNamed) {
  EXPECT_TRUE(ReadSnapshot("{}"));
  EXPECT_TRUE(ReadSnapshot(R"({"now":5,"later":[{"x":null}]})"));
  const auto wrong = [](const char* text) {
    const auto read = ReadSnapshot(text);
    return read ? std::string("read") : read.error().message;
  };
  EXPECT_EQ(wrong(R"({"jobs":[{},{"priority":"high"}]})"), "jobs[1].priority: expected an integer");
  EXPECT_EQ(wrong(R"({"queues":[{"order":9}]})"),
            "queues[0].order: expected the number of a choice");
  EXPECT_EQ(wrong(R"({"nodes":7})"), "nodes: expected a list");
  EXPECT_EQ(wrong(R"({"namespaces":["a"]})"), "namespaces: expected a list of names and values");
  EXPECT_EQ(wrong(R"({"holds":[{"variant":-1}]})"), "holds[0].variant: expected an integer");
  EXPECT_EQ(wrong(R"({"jobs":[{}]})"), "jobs[0]: needs variants and roles");
  EXPECT_EQ(wrong(R"({"jobs":[{"variants":[{"devicesPerPod":0}],"roles":[{}]}]})"),
            "jobs[0].variants: devicesPerPod must be 1 to 128");
  EXPECT_THAT(wrong("[]"), HasSubstr("expected an object"));
}

TEST(RecordTest, AnyBytesAreReadOrRefused) {
  const std::string text = WriteSnapshot(Full(7));
  core::testing::Random random(1);
  for (int i = 0; i < 2000; ++i) {
    std::string broken = text.substr(0, 400);
    const auto at = static_cast<std::size_t>(random.Up(400));
    broken[at] = static_cast<char>(random.Up(256));
    if (random.OneIn(3)) broken.resize(at);
    if (const auto read = ReadSnapshot(broken)) Decide(*read);
  }
  EXPECT_FALSE(ParseJson(std::string(1000, '[')));
  EXPECT_FALSE(ParseJson("\"\\u12\""));
  EXPECT_FALSE(ParseJson("99999999999999999999"));
  EXPECT_EQ(ParseJson(R"("\u00e9\n")")->string, "\u00e9\n");
}

}  // namespace
}  // namespace bimetal::core::queue
