// The program itself: a gang of four processes over loopback, and what happens when one is missing
// or asked to stop.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "workloads/net/socket.h"

namespace bimetal::workloads {
namespace {

using testing::HasSubstr;

std::string ReadFile(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// One started process whose output goes to a file.
class Process {
 public:
  Process(const std::vector<std::string>& arguments, const std::vector<std::string>& environment,
          std::string output)
      : output_(std::move(output)) {
    std::vector<char*> argv = {const_cast<char*>(BIMETAL_WORKLOAD)};
    for (const std::string& argument : arguments)
      argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    std::vector<char*> envp;
    for (const std::string& entry : environment) envp.push_back(const_cast<char*>(entry.c_str()));
    envp.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, output_.c_str(), O_WRONLY | O_CREAT | O_TRUNC,
                                     0600);
    posix_spawn_file_actions_adddup2(&actions, 1, 2);
    EXPECT_EQ(posix_spawn(&pid_, BIMETAL_WORKLOAD, &actions, nullptr, argv.data(), envp.data()), 0);
    posix_spawn_file_actions_destroy(&actions);
  }
  int Wait() const {
    int status = 0;
    waitpid(pid_, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  void Signal(int signal) const { kill(pid_, signal); }
  std::string Output() const { return ReadFile(output_); }
  // Waits, at most 60 s, until the process has printed `text`.
  bool Printed(const std::string& text) const {
    for (int i = 0; i < 6'000; ++i) {
      if (Output().find(text) != std::string::npos) return true;
      usleep(10'000);
    }
    return false;
  }

 private:
  pid_t pid_ = -1;
  std::string output_;
};

std::uint16_t FreePort() {
  const Socket listener = std::move(Listen(0).value());
  return BoundPort(listener).value();
}

std::string Scratch(const std::string& name) {
  return testing::TempDir() + "/bimetal_exchange_" + std::to_string(getpid()) + "_" + name;
}

std::vector<std::string> Gang(int rank, int world, std::uint16_t port) {
  return {"RANK=" + std::to_string(rank),
          "WORLD_SIZE=" + std::to_string(world),
          "MASTER_ADDR=localhost",
          "MASTER_PORT=" + std::to_string(port),
          "BIMETAL_JOB_UID=uid",
          "BIMETAL_ATTEMPT=1",
          "BIMETAL_PROGRESS_FILE=" + Scratch("progress" + std::to_string(rank))};
}

TEST(ExchangeProgramTest, FourProcessesAgreeOnTheExactSum) {
  constexpr int kWorld = 4;
  const std::uint16_t port = FreePort();
  std::vector<Process> ranks;
  // Rank 0 last: the others must wait for it.
  for (int rank = kWorld - 1; rank >= 0; --rank) {
    unlink(Scratch("progress" + std::to_string(rank)).c_str());
    ranks.emplace_back(std::vector<std::string>{"exchange", "--rounds", "5", "--values", "3"},
                       Gang(rank, kWorld, port), Scratch("out" + std::to_string(rank)));
  }
  for (const Process& process : ranks) EXPECT_EQ(process.Wait(), 0) << process.Output();
  // Rounds 1 to 5 sum to 15, at three places, of 1+2+3+4 ranks; the indices 0..2 add 4 * 3 a round.
  const std::string sum = std::to_string(15 * 3 * 10 + 5 * 12);
  for (int rank = 0; rank < kWorld; ++rank) {
    const std::string output = ranks[static_cast<std::size_t>(kWorld - 1 - rank)].Output();
    EXPECT_THAT(output,
                HasSubstr("\nsum=" + sum + " world=4 rank=" + std::to_string(rank) + " ok\n"));
    EXPECT_THAT(output, HasSubstr(" backend "));
    EXPECT_THAT(ReadFile(Scratch("progress" + std::to_string(rank))), HasSubstr("\"step\":5}\n"));
  }
}

TEST(ExchangeProgramTest, MissingRankEndsTheOthersWithItsNumber) {
  const std::uint16_t port = FreePort();
  const Process root({"exchange", "--join-timeout", "4"}, Gang(0, 3, port), Scratch("root"));
  const Process member({"exchange", "--join-timeout", "4"}, Gang(1, 3, port), Scratch("member"));
  EXPECT_EQ(root.Wait(), 1);
  EXPECT_EQ(member.Wait(), 1);
  EXPECT_THAT(root.Output(), HasSubstr("waiting for ranks 2: no answer in time"));
}

TEST(ExchangeProgramTest, StopSignalEndsItGracefullyAndItsGangClearly) {
  const std::uint16_t port = FreePort();
  const Process root({"exchange", "--rounds", "1000", "--seconds", "100"}, Gang(0, 2, port),
                     Scratch("stop0"));
  const Process member({"exchange", "--rounds", "1000", "--seconds", "100"}, Gang(1, 2, port),
                       Scratch("stop1"));
  ASSERT_TRUE(member.Printed("round 1/")) << member.Output();
  member.Signal(SIGTERM);
  EXPECT_EQ(member.Wait(), 143);
  EXPECT_THAT(member.Output(), HasSubstr("stopped by a signal"));
  EXPECT_EQ(root.Wait(), 1);
  EXPECT_THAT(root.Output(), HasSubstr("rank 1: "));
}

TEST(ExchangeProgramTest, WrongVariableIsAUsageError) {
  auto environment = Gang(0, 2, 1);
  environment[0] = "RANK=two";
  const Process process({"exchange"}, environment, Scratch("usage"));
  EXPECT_EQ(process.Wait(), 64);
  EXPECT_THAT(process.Output(), HasSubstr("RANK='two'"));
}

TEST(ExchangeProgramTest, SleepStopsAtOnceOnASignal) {
  const Process process({"sleep", "--seconds", "1000"}, {}, Scratch("sleep"));
  ASSERT_TRUE(process.Printed("sleep 1000 s"));
  process.Signal(SIGTERM);
  EXPECT_EQ(process.Wait(), 143);
}

TEST(ExchangeProgramTest, EnvPrintsWhatTheOperatorSet) {
  const Process process({"env"}, {"RANK=1", "HOME=/x", "BIMETAL_VARIANT=rocm"}, Scratch("env"));
  EXPECT_EQ(process.Wait(), 0);
  EXPECT_EQ(process.Output(), "BIMETAL_VARIANT=rocm\nRANK=1\n");
}

}  // namespace
}  // namespace bimetal::workloads
