#include "operator/controllers/cycle_recorder.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <vector>

#include <gtest/gtest.h>

#include "core/queue/replay.h"
#include "tests/unit/operator/controllers/jobs_fixture.h"

namespace bimetal::test {
namespace {

class CycleRecorderTest : public JobControllerTest {
 protected:
  CycleRecorderTest()
      : folder_(std::filesystem::temp_directory_path() /
                ("bimetal-cycles-" + std::to_string(::getpid()))) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directory(folder_);
  }
  ~CycleRecorderTest() override { std::filesystem::remove_all(folder_); }

  std::vector<std::string> Names() const {
    std::vector<std::string> out;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      out.push_back(entry.path().filename().string());
    }
    std::sort(out.begin(), out.end());
    return out;
  }
  std::string TextOf(const std::string& name) const {
    std::stringstream text;
    text << std::ifstream(folder_ / name).rdbuf();
    return text.str();
  }

  std::filesystem::path folder_;
};

TEST_F(CycleRecorderTest, WhatTheOperatorDecidedIsDecidedTheSameAgain) {
  op::CycleRecorder recorder({folder_.string(), 5});
  op::SchedulingCycle cycle(
      world_.clock, world_.store, world_.nodes, {&world_.jobs},
      [&](const auto& snapshot, const auto& plan) { recorder.Record(snapshot, plan); });
  StartWith(8, 8);
  EXPECT_EQ(cycle.Run(), "idle");
  EXPECT_TRUE(Names().empty());
  world_.jobs.OnJob(MakeJob("fits", 2, 4));
  world_.jobs.OnJob(MakeJob("waits", 3, 4));
  world_.jobs.Reconcile();
  EXPECT_EQ(cycle.Run(), "placed");
  ASSERT_EQ(Names(), std::vector<std::string>{"cycle-1.json"});
  const std::string text = TextOf("cycle-1.json");
  EXPECT_NE(text.find("\"assignments\":[{\"job\":\"uid-fits\""), std::string::npos) << text;
  const auto replay = core::queue::ReplayCycle(text);
  ASSERT_TRUE(replay) << replay.error().message;
  EXPECT_EQ(replay->difference, "");
  EXPECT_EQ(replay->unread, "");
}

TEST_F(CycleRecorderTest, KeepsTheNewestAndCountsOnAfterARestart) {
  std::ofstream(folder_ / "cycle-9.json") << "older";
  std::ofstream(folder_ / "cycle-x.json") << "not ours";
  std::ofstream(folder_ / "cycle-1json") << "not ours";
  op::CycleRecorder({folder_.string(), 3}).Record({}, {});
  op::CycleRecorder again({folder_.string(), 3});
  for (int i = 0; i < 3; ++i) again.Record({}, {});
  EXPECT_EQ(Names(), (std::vector<std::string>{"cycle-11.json", "cycle-12.json", "cycle-13.json",
                                               "cycle-1json", "cycle-x.json"}));
}

TEST_F(CycleRecorderTest, AFolderThatCannotBeWrittenStopsNothing) {
  op::CycleRecorder recorder({(folder_ / "later").string(), 3});
  recorder.Record({}, {});
  recorder.Record({}, {});
  std::filesystem::create_directory(folder_ / "later");
  recorder.Record({}, {});
  EXPECT_TRUE(std::filesystem::exists(folder_ / "later" / "cycle-1.json"));
  op::CycleRecorder({"", 3}).Record({}, {});
  op::CycleRecorder({"/dev/null", 3}).Record({}, {});
}

}  // namespace
}  // namespace bimetal::test
