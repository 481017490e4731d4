#include "core/queue/replay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/queue/json.h"
#include "core/queue/record.h"
#include "tests/unit/core/queue/simulated.h"

namespace bimetal::core::queue {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// A cycle of a random tree with everything that follows from one before it.
Snapshot Seen(std::uint64_t seed) {
  auto s = testing::RandomSimulated(seed);
  s.CarryOut(Decide(s.Look()), true);
  return s.Look();
}

std::string Replaced(std::string text, const std::string& what, const std::string& by) {
  const auto at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return text.replace(at, what.size(), by);
}

TEST(ReplayTest, ARecordedCycleIsTheSameAgain) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const Snapshot snapshot = Seen(seed);
    const std::string text = WriteCycle(snapshot, Decide(snapshot));
    const auto replay = ReplayCycle(text);
    ASSERT_TRUE(replay) << replay.error().message;
    EXPECT_EQ(replay->difference, "") << seed;
    EXPECT_EQ(replay->unread, "") << seed;
    EXPECT_EQ(WriteJson(*ParseJson(text)) + "\n", text);
  }
}

TEST(ReplayTest, TheFirstDifferenceIsNamedWithBothValues) {
  const std::string text = WriteCycle({}, {});
  EXPECT_EQ(ReplayCycle(Replaced(text, "\"evaluations\":0", "\"evaluations\":7"))->difference,
            "evaluations: 7 was recorded, 0 is decided now");
  EXPECT_EQ(ReplayCycle(Replaced(text, "\"evictions\":[]", "\"evictions\":[{\"job\":\"a\"}]"))
                ->difference,
            R"(evictions[0]: {"job":"a"} was recorded, nothing is decided now)");
  EXPECT_EQ(
      ReplayCycle(Replaced(text, "\"holds\":[],\"evaluations\"", "\"evaluations\""))->difference,
      "holds: nothing was recorded, [] is decided now");
  EXPECT_THAT(ReplayCycle(Replaced(text, "\"holds\":[],\"evaluations\":0",
                                   "\"evaluations\":0,\"holds\":[]"))
                  ->difference,
              StartsWith(": {"));
}

TEST(ReplayTest, ASnapshotOfAnotherVersionIsDecidedAndSaid) {
  const auto replay =
      ReplayCycle(Replaced(WriteCycle({}, {}), "{\"now\":0", "{\"new\":5,\"now\":0"));
  ASSERT_TRUE(replay);
  EXPECT_EQ(replay->difference, "");
  EXPECT_EQ(replay->unread, "new: 5 was recorded, nothing is read");
}

TEST(ReplayTest, WhatCannotBeReadIsNamed) {
  const auto wrong = [](const std::string& text) {
    const auto replay = ReplayCycle(text);
    return replay ? std::string("read") : replay.error().message;
  };
  EXPECT_THAT(wrong("[]"), HasSubstr("expected an object with snapshot and plan"));
  EXPECT_THAT(wrong("{\"snapshot\":{}}"), HasSubstr("expected an object with snapshot and plan"));
  EXPECT_EQ(wrong("{\"snapshot\":{},\"plan\":[]}"), "plan: expected an object");
  EXPECT_EQ(wrong("{\"snapshot\":{\"jobs\":[{\"priority\":\"high\"}]},\"plan\":{}}"),
            "snapshot: jobs[0].priority: expected an integer");
  EXPECT_NE(wrong("{"), "read");
  EXPECT_NE(wrong(""), "read");
}

}  // namespace
}  // namespace bimetal::core::queue
