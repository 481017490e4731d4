#include "kernels/report/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <thread>

namespace bimetal::kernels {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A real Unix socket that answers its connections with the given replies, one each, in order; an
// empty reply closes the connection without one.
class Receiver {
 public:
  explicit Receiver(std::vector<std::string> replies)
      : path_(testing::TempDir() + "/bimetal_report_" + std::to_string(getpid()) + ".sock") {
    unlink(path_.c_str());
    fd_ = socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path_.copy(address.sun_path, sizeof(address.sun_path) - 1);
    EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_EQ(listen(fd_, 8), 0);
    thread_ = std::thread([this, replies] {
      for (const std::string& reply : replies) Serve(reply);
    });
  }
  ~Receiver() {
    Join();
    close(fd_);
    unlink(path_.c_str());
  }
  void Join() {
    if (thread_.joinable()) thread_.join();
  }
  const std::string& path() const { return path_; }
  const std::vector<std::string>& received() const { return received_; }

 private:
  void Serve(const std::string& reply) {
    const int connection = accept(fd_, nullptr, nullptr);
    std::string data;
    char buffer[4096];
    // The last line of a report is its done line.
    while (data.find("\"done\"") == std::string::npos || data.back() != '\n') {
      const ssize_t got = recv(connection, buffer, sizeof(buffer), 0);
      if (got <= 0) break;
      data.append(buffer, static_cast<std::size_t>(got));
    }
    received_.push_back(data);
    if (!reply.empty()) send(connection, reply.data(), reply.size(), MSG_NOSIGNAL);
    close(connection);
  }

  std::string path_;
  int fd_ = -1;
  std::thread thread_;
  std::vector<std::string> received_;
};

const std::vector<std::string> kLines = {R"({"type":"run"})", R"({"type":"verdict"})",
                                         R"({"type":"done"})"};
constexpr char kData[] = "{\"type\":\"run\"}\n{\"type\":\"verdict\"}\n{\"type\":\"done\"}\n";

ReportOptions Quick() {
  ReportOptions options;
  options.timeout = std::chrono::milliseconds(30'000);
  options.attempt_timeout = std::chrono::milliseconds(10'000);
  options.first_pause = std::chrono::milliseconds(1);
  return options;
}

TEST(ReportTest, SendsAllLinesAndTakesTheReply) {
  Receiver receiver({"{\"ok\":true}\n"});
  const Done sent = SendReport(receiver.path(), kLines, Quick());
  EXPECT_TRUE(sent.ok()) << sent.error().message;
  receiver.Join();
  EXPECT_THAT(receiver.received(), ElementsAre(kData));
}

TEST(ReportTest, LostReplyIsRetriedWithEveryLine) {
  Receiver receiver({"", "", "{\"ok\":true}\n"});
  EXPECT_TRUE(SendReport(receiver.path(), kLines, Quick()).ok());
  receiver.Join();
  EXPECT_THAT(receiver.received(), ElementsAre(kData, kData, kData));
}

TEST(ReportTest, RefusalIsFinalAndItsReasonIsSaid) {
  Receiver receiver({"{\"ok\":false,\"error\":\"run uid-1 is unknown\"}\n"});
  const Done sent = SendReport(receiver.path(), kLines, Quick());
  ASSERT_FALSE(sent.ok());
  EXPECT_THAT(sent.error().message, HasSubstr("refused: run uid-1 is unknown"));
}

TEST(ReportTest, ReplyThatIsNoAnswerIsAnError) {
  for (const char* reply : {"hello\n", "{}\n", "{\"ok\":1}\n", "[]\n"}) {
    Receiver receiver({reply});
    const Done sent = SendReport(receiver.path(), kLines, Quick());
    ASSERT_FALSE(sent.ok()) << reply;
    EXPECT_THAT(sent.error().message, HasSubstr("no {\"ok\":...} line"));
  }
}

TEST(ReportTest, EndlessReplyIsCutOff) {
  Receiver receiver({std::string(100'000, 'x'), "{\"ok\":true}\n"});
  EXPECT_TRUE(SendReport(receiver.path(), kLines, Quick()).ok());
}

TEST(ReportTest, GivesUpAtItsDeadline) {
  ReportOptions options = Quick();
  options.timeout = std::chrono::milliseconds(6);
  const Done sent = SendReport("/nonexistent/agent.sock", kLines, options);
  ASSERT_FALSE(sent.ok());
  EXPECT_THAT(sent.error().message, HasSubstr("/nonexistent/agent.sock failed, attempts: "));
}

TEST(ReportTest, SilentReceiverIsNotWaitedForLongerThanTheDeadline) {
  const std::string path = testing::TempDir() + "/bimetal_silent_" + std::to_string(getpid());
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  unlink(path.c_str());
  ASSERT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  ASSERT_EQ(listen(fd, 8), 0);
  ReportOptions options = Quick();
  options.timeout = std::chrono::milliseconds(60);
  options.attempt_timeout = std::chrono::milliseconds(30);
  const Done sent = SendReport(path, kLines, options);
  ASSERT_FALSE(sent.ok());
  EXPECT_THAT(sent.error().message, HasSubstr("no answer in time"));
  close(fd);
  unlink(path.c_str());
}

}  // namespace
}  // namespace bimetal::kernels
