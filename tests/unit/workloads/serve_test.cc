// The inference server as a program: real HTTP, real signals.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "workloads/serve/ask.h"
#include "workloads/serve/predictor.h"

namespace bimetal::workloads {
namespace {

using testing::HasSubstr;

// A server on a port of its own choice.
class Server {
 public:
  explicit Server(std::vector<std::string> arguments, const std::string& name)
      : output_(testing::TempDir() + "/bimetal_serve_" + std::to_string(getpid()) + "_" + name) {
    arguments.insert(arguments.begin(), {BIMETAL_WORKLOAD, "serve", "--port", "0"});
    std::vector<char*> argv;
    for (auto& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    std::vector<std::string> environment = {"BIMETAL_REPLICA=chat-1", "BIMETAL_VENDOR=amd"};
    std::vector<char*> envp;
    for (auto& entry : environment) envp.push_back(entry.data());
    envp.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, output_.c_str(), O_WRONLY | O_CREAT | O_TRUNC,
                                     0600);
    EXPECT_EQ(posix_spawn(&pid_, BIMETAL_WORKLOAD, &actions, nullptr, argv.data(), envp.data()), 0);
    posix_spawn_file_actions_destroy(&actions);
    const std::string line = Printed("listen");  // "listens on port N", "cannot listen on port N"
    if (line.rfind("s on port ", 0) == 0) port_ = std::stoi(line.substr(10));
  }
  ~Server() {
    if (pid_ > 0) kill(pid_, SIGKILL);
    Wait();
  }

  int port() const { return port_; }
  void Signal(int signal) const { kill(pid_, signal); }
  int Wait() {
    if (pid_ <= 0) return status_;
    waitpid(pid_, &status_, 0);
    pid_ = -1;
    return status_ = WIFEXITED(status_) ? WEXITSTATUS(status_) : -WTERMSIG(status_);
  }
  std::string Output() const {
    std::stringstream text;
    text << std::ifstream(output_).rdbuf();
    return text.str();
  }
  // What follows `text` in its output; waits at most 60 s for a whole line.
  std::string Printed(const std::string& text) const {
    for (int i = 0; i < 6'000; ++i) {
      const std::string all = Output();
      const auto at = all.find(text);
      if (at != std::string::npos && all.find('\n', at) != std::string::npos) {
        return all.substr(at + text.size(), all.find('\n', at) - at - text.size());
      }
      usleep(10'000);
    }
    return "";
  }

 private:
  std::string output_;
  pid_t pid_ = -1;
  int status_ = 0, port_ = 0;
};

TEST(PredictorTest, ADeviceAndTheProcessorGiveTheSameAnswerAndInputsDiffer) {
  auto predictor = Predictor::Open();
  ASSERT_TRUE(predictor.ok()) << predictor.error().message;
  std::set<std::uint64_t> answers;
  for (const std::uint64_t request : {0ULL, 1ULL, 2ULL, ~0ULL}) {
    const auto answer = predictor.value()->Predict(request, std::chrono::seconds(30));
    ASSERT_TRUE(answer.ok()) << answer.error().message;
    EXPECT_EQ(answer.value(), PredictOnHost(request));
    answers.insert(answer.value());
  }
  EXPECT_EQ(answers.size(), 4u);
}

TEST(ServeProgramTest, AnswersWithWhatItComputedAndWhoItIs) {
  Server server({}, "answers");
  ASSERT_GT(server.port(), 0) << server.Output();
  server.Printed("ready");
  httplib::Client client("127.0.0.1", server.port());
  const auto answer = client.Get("/predict?input=7");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 200);
  EXPECT_EQ(answer->body, "{\"input\":7,\"output\":\"" + std::to_string(PredictOnHost(7)) +
                              "\",\"replica\":\"chat-1\",\"vendor\":\"amd\",\"variant\":\"\"}\n");
  for (const char* bad : {"/predict", "/predict?input=", "/predict?input=-1", "/predict?input=x"}) {
    const auto refused = client.Get(bad);
    ASSERT_TRUE(refused) << bad;
    EXPECT_EQ(refused->status, 400) << bad;
  }
  EXPECT_EQ(client.Get("/nothing")->status, 404);
}

TEST(ServeProgramTest, IsNotReadyBeforeItIsWarm) {
  Server server({"--warm-up-ms", "60000"}, "warm");
  httplib::Client client("127.0.0.1", server.port());
  const auto early = client.Get("/healthz");
  ASSERT_TRUE(early);
  EXPECT_EQ(early->status, 503);
  server.Signal(SIGTERM);
  EXPECT_EQ(server.Wait(), 0) << "a stop while warming up is in order, too";
}

TEST(ServeProgramTest, AStopSignalLosesNoRequest) {
  Server server({"--delay-ms", "20", "--linger-ms", "400"}, "stop");
  server.Printed("ready");
  std::atomic<bool> stop = false;
  std::atomic<int> answered = 0, failed = 0;
  std::vector<std::thread> clients;
  for (int i = 0; i < 4; ++i) {
    clients.emplace_back([&] {
      while (!stop) {
        httplib::Client client("127.0.0.1", server.port());
        const auto answer = client.Get("/predict?input=1");
        ++(answer && answer->status == 200 ? answered : failed);
      }
    });
  }
  while (answered < 20) std::this_thread::yield();
  server.Signal(SIGTERM);
  server.Printed("stopping");
  httplib::Client client("127.0.0.1", server.port());
  const auto health = client.Get("/healthz");
  ASSERT_TRUE(health);
  EXPECT_EQ(health->status, 503) << "says that it takes no more, and still answers";
  stop = true;  // whoever sends requests has been told; those under way are answered
  for (auto& thread : clients) thread.join();
  EXPECT_EQ(server.Wait(), 0);
  EXPECT_EQ(failed, 0);
  EXPECT_THAT(server.Output(), HasSubstr("stopped after " + std::to_string(answered.load())));
}

TEST(AskTest, CountsAnswersByVendorAndFailures) {
  Server server({}, "ask");
  server.Printed("ready");
  std::vector<std::string> lines;
  const auto say = [&](const std::string& line) { lines.push_back(line); };
  AskOptions options;
  options.host = "127.0.0.1";
  options.port = static_cast<std::uint16_t>(server.port());
  options.duration = std::chrono::seconds(1);
  EXPECT_EQ(RunAsk(options, say), 0);
  EXPECT_THAT(lines.back(), HasSubstr(" failed 0 amd "));
  server.Signal(SIGKILL);
  server.Wait();
  EXPECT_EQ(RunAsk(options, say), 1);
  EXPECT_THAT(lines.back(), testing::Not(HasSubstr(" failed 0")));
}

TEST(ServeProgramTest, APortThatIsTakenIsSaid) {
  Server first({}, "first");
  Server second({"--port", std::to_string(first.port())}, "second");
  EXPECT_EQ(second.Wait(), 1);
  EXPECT_THAT(second.Output(), HasSubstr("cannot listen on port"));
}

}  // namespace
}  // namespace bimetal::workloads
