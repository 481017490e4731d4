#include "cli/replay.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "core/queue/replay.h"

namespace bimetal::cli {
namespace {

class ReplayCommand : public testing::Test {
 protected:
  ReplayCommand() { line_.file = testing::TempDir() + "bimetal_cli_replay_test.json"; }
  ~ReplayCommand() override { std::filesystem::remove(line_.file); }

  void Write(const std::string& text) { std::ofstream(line_.file, std::ios::binary) << text; }
  Result<Answer> Run() {
    line_.command = Command::kReplay;
    return RunCommand(line_, {"", "", [](const std::string&) { return false; }}, "bimetal",
                      SystemClock());
  }

  CommandLine line_;
};

TEST_F(ReplayCommand, SaysThatThePlanIsTheSame) {
  core::queue::Snapshot snapshot;
  snapshot.now = TimePoint{7};
  Write(core::queue::WriteCycle(snapshot, core::queue::Decide(snapshot)));
  const auto answer = Run();
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->out, "same\n");
  EXPECT_EQ(answer->note, "");
  EXPECT_EQ(answer->exit_status, kExitSuccess);
}

TEST_F(ReplayCommand, NamesTheFirstDifference) {
  core::queue::Plan plan;
  plan.evaluations = 3;
  Write(core::queue::WriteCycle({}, plan));
  const auto answer = Run();
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->out, "differs at evaluations: 3 was recorded, 0 is decided now\n");
  EXPECT_EQ(answer->exit_status, kExitDiffers);
}

TEST_F(ReplayCommand, NotesThatAnotherVersionWroteTheSnapshot) {
  Write("{\"snapshot\":{},\"plan\":{}}");
  const auto answer = Run();
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->note.substr(0, 50), "the snapshot is not read as it was recorded, anoth");
}

TEST_F(ReplayCommand, NamesTheFileThatIsNoCycle) {
  EXPECT_EQ(Run().error().message, "file " + line_.file + " cannot be read");
  Write("");
  EXPECT_EQ(Run().error().message.substr(0, 6 + line_.file.size()), "file " + line_.file + ":");
  Write("{}");
  EXPECT_NE(Run().error().message.find("expected an object with snapshot and plan"),
            std::string::npos);
  line_.file = testing::TempDir();
  EXPECT_FALSE(Run());
  line_.file = testing::TempDir() + "bimetal_cli_replay_test.json";
}

}  // namespace
}  // namespace bimetal::cli
