#include "agent/verdicts/verdict_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "agent/verdicts/unix_socket.h"

namespace bimetal::agent {
namespace {

using ::testing::HasSubstr;

constexpr char kRun[] = R"({"type":"run","run":"u-1","vendor":"amd","backend":"hip","level":"L1"})"
                        "\n"
                        R"({"type":"verdict","check":"c","device":"d","verdict":"Pass"})"
                        "\n"
                        R"({"type":"done","passed":1})"
                        "\n";

// A client's end of a connection.
class Client {
 public:
  explicit Client(const std::string& path) : fd_(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof(address.sun_path) - 1);
    connected_ =
        connect(fd_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
    // The bound of every wait in here.
    const timeval limit{20, 0};
    setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    setsockopt(fd_.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
  }
  bool connected() const { return connected_; }
  bool Send(std::string_view text) const {
    return send(fd_.get(), text.data(), text.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(text.size());
  }
  void EndSending() const { shutdown(fd_.get(), SHUT_WR); }
  // All that comes until the server closes.
  std::string Receive() const {
    std::string out;
    char buffer[4096];
    ssize_t n = 0;
    while ((n = recv(fd_.get(), buffer, sizeof(buffer), 0)) > 0) {
      out.append(buffer, static_cast<std::size_t>(n));
    }
    return out;
  }

 private:
  Descriptor fd_;
  bool connected_ = false;
};

class VerdictServerTest : public ::testing::Test {
 protected:
  VerdictServerTest() {
    std::string name = ::testing::TempDir() + "verdicts-XXXXXX";
    folder_ = mkdtemp(name.data());
    options_.path = folder_ + "/run/agent.sock";
    options_.order_wait = Seconds(20);
  }
  ~VerdictServerTest() override {
    server_.reset();
    std::filesystem::remove_all(folder_);
  }

  void Start() {
    VerdictHooks hooks;
    hooks.is_expected = [this](const std::string& run) {
      const std::lock_guard lock(mutex_);
      return expected_.contains(run);
    };
    hooks.want_orders = [this] {
      ++wanted_;
      if (order_when_wanted_) Expect("u-1");
    };
    hooks.accept = [this](const ReceivedRun& run, TimePoint, TimePoint) -> Status {
      const std::lock_guard lock(mutex_);
      taken_.push_back(run.run.run());
      return accept_result_;
    };
    auto server = VerdictServer::Start(options_, clock_, std::move(hooks));
    ASSERT_TRUE(server) << server.error().message;
    server_ = std::move(*server);
  }
  void Expect(const std::string& run) {
    const std::lock_guard lock(mutex_);
    expected_.insert(run);
  }
  std::string Ask(std::string_view text) {
    const Client client(options_.path);
    EXPECT_TRUE(client.connected());
    client.Send(text);
    return client.Receive();
  }

  SystemClock clock_;
  std::string folder_;
  VerdictServerOptions options_;
  std::mutex mutex_;
  std::set<std::string> expected_;
  std::vector<std::string> taken_;
  Status accept_result_;
  std::atomic<int> wanted_{0};
  std::atomic<bool> order_when_wanted_{false};
  std::unique_ptr<VerdictServer> server_;
};

TEST_F(VerdictServerTest, ExpectedRunIsTakenAndConfirmed) {
  Start();
  Expect("u-1");
  EXPECT_EQ(Ask(kRun), "{\"ok\":true}\n");
  EXPECT_EQ(taken_, std::vector<std::string>{"u-1"});
}

TEST_F(VerdictServerTest, SocketIsForOwnerAndGroup) {
  Start();
  struct stat info {};
  ASSERT_EQ(stat(options_.path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0660U);
  ASSERT_EQ(stat((folder_ + "/run").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0750U);
}

TEST_F(VerdictServerTest, UnknownRunIsRefusedOnceTheWaitIsOver) {
  options_.order_wait = Millis{150};
  Start();
  EXPECT_THAT(Ask(kRun), HasSubstr(R"("ok":false,"error":"unknown run u-1)"));
  EXPECT_EQ(wanted_, 1);
  EXPECT_TRUE(taken_.empty());
}

TEST_F(VerdictServerTest, RunThatIsFasterThanItsOrderWaitsForIt) {
  order_when_wanted_ = true;
  Start();
  EXPECT_EQ(Ask(kRun), "{\"ok\":true}\n");
  EXPECT_EQ(wanted_, 1);
}

TEST_F(VerdictServerTest, ClientsThatGaveUpFreeTheirPlaces) {
  options_.max_connections = 1;
  Start();
  { EXPECT_TRUE(Client(options_.path).Send(kRun)); }  // unknown run, and gone
  Expect("u-2");
  std::string other = kRun;
  other.replace(other.find("u-1"), 3, "u-2");
  std::string reply;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(15);
  do {
    reply = Ask(other);
  } while (reply.find("too many") != std::string::npos &&
           std::chrono::steady_clock::now() < deadline);
  EXPECT_EQ(reply, "{\"ok\":true}\n");
}

TEST_F(VerdictServerTest, ErrorOfTheAgentIsTold) {
  Start();
  Expect("u-1");
  accept_result_ = Fail(ErrorCode::kInvalid, "wrong \"vendor\"");
  EXPECT_EQ(Ask(kRun), R"({"ok":false,"error":"wrong \"vendor\""})"
                       "\n");
}

TEST_F(VerdictServerTest, FiveMegabytesOfJunkAreRefusedAndTheNextRunIsTaken) {
  Start();
  Expect("u-1");
  {
    const Client client(options_.path);
    client.Send(std::string(5'000'000, 'x'));
    EXPECT_THAT(client.Receive(), HasSubstr("longer than 65536 bytes"));
  }
  {
    const Client client(options_.path);
    std::string lines;
    for (int i = 0; i < 500'000; ++i) lines += "x\n";
    client.Send(lines);
    EXPECT_THAT(client.Receive(), HasSubstr("line 1: is no JSON object"));
  }
  EXPECT_EQ(Ask(kRun), "{\"ok\":true}\n");
}

TEST_F(VerdictServerTest, LinesThatEndEarlyAreRefused) {
  Start();
  Expect("u-1");
  const Client client(options_.path);
  const std::string_view text = kRun;
  client.Send(text.substr(0, text.size() - 5));
  client.EndSending();
  EXPECT_THAT(client.Receive(), HasSubstr("without a line of type done"));
}

TEST_F(VerdictServerTest, SilentClientIsCutOffAtTheDeadline) {
  options_.deadline = Millis{150};
  Start();
  const Client client(options_.path);
  EXPECT_THAT(client.Receive(), HasSubstr("did not come in time"));
}

TEST_F(VerdictServerTest, OneConnectionTooManyIsToldSo) {
  options_.max_connections = 2;
  Start();
  const Client first(options_.path);
  const Client second(options_.path);
  EXPECT_THAT(Client(options_.path).Receive(), HasSubstr("too many connections"));
}

TEST_F(VerdictServerTest, SocketThatSomebodyRemovedIsMadeAnew) {
  Start();
  std::filesystem::remove(options_.path);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(15);
  while (!Client(options_.path).connected() && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::yield();
  }
  Expect("u-1");
  EXPECT_EQ(Ask(kRun), "{\"ok\":true}\n");
}

TEST_F(VerdictServerTest, OtherThingsAtThePathAreLeftAlone) {
  std::filesystem::create_directories(options_.path);
  const auto server = VerdictServer::Start(options_, clock_, {});
  ASSERT_FALSE(server);
  EXPECT_EQ(server.error().code, ErrorCode::kUnavailable);
  EXPECT_TRUE(std::filesystem::is_directory(options_.path));
}

TEST_F(VerdictServerTest, StopEndsOpenConnectionsAndRemovesTheSocket) {
  Start();
  const Client silent(options_.path);
  const Client waiting(options_.path);
  waiting.Send(kRun);
  server_.reset();
  EXPECT_FALSE(std::filesystem::exists(options_.path));
}

}  // namespace
}  // namespace bimetal::agent
