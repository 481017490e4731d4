#include "kube/transport/transport.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/fakes/http_server.h"

namespace bimetal::kube {
namespace {

using test::HttpConnection;
using test::HttpRequest;
using test::HttpServer;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

std::unique_ptr<Transport> Connect(const HttpServer& server, TransportOptions options = {},
                                   Config config = {}) {
  config.server = server.url();
  auto transport = MakeTransport(config, options);
  EXPECT_TRUE(transport) << transport.error().message;
  return std::move(transport).value();
}

Request Get(const std::string& path, Millis deadline = Seconds(20)) {
  Request request;
  request.path_and_query = path;
  request.deadline = deadline;
  return request;
}

TEST(TransportTest, SendsMethodPathHeadersAndBodyAsTheyAre) {
  HttpServer server([](const HttpRequest&, HttpConnection& c) {
    c.Respond(201, "made", "text/plain", {{"X-Thing", "Yes"}});
  });
  Config config;
  config.token = "tok";
  const auto transport = Connect(server, {}, config);
  Request request = Get("/a%2Fb/c?labelSelector=x%3Dy%2Cz&limit=5");
  request.method = "PATCH";
  request.body = R"({"a":1})";
  request.content_type = "application/merge-patch+json";
  const auto response = transport->Send(request);
  ASSERT_TRUE(response) << response.error().message;
  EXPECT_EQ(response->status, 201);
  EXPECT_EQ(response->body, "made");
  EXPECT_EQ(response->headers.at("x-thing"), "Yes");
  const auto seen = server.requests().at(0);
  EXPECT_EQ(seen.method, "PATCH");
  EXPECT_EQ(seen.target, "/a%2Fb/c?labelSelector=x%3Dy%2Cz&limit=5");
  EXPECT_EQ(seen.body, R"({"a":1})");
  EXPECT_EQ(seen.headers.at("content-type"), "application/merge-patch+json");
  EXPECT_EQ(seen.headers.at("accept"), "application/json");
  EXPECT_EQ(seen.headers.at("authorization"), "Bearer tok");
}

TEST(TransportTest, ReusesItsConnections) {
  HttpServer server([](const HttpRequest&, HttpConnection& c) { c.Respond(200, "{}"); });
  const auto transport = Connect(server);
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(transport->Send(Get("/")));
  // A connection goes back to the pool a moment after its answer: a quick next request may need
  // another.
  EXPECT_LT(server.connections_accepted(), 10) << "20 without reuse";
}

TEST(TransportTest, NeverFollowsARedirect) {
  HttpServer other([](const HttpRequest&, HttpConnection& c) { c.Respond(200, "stolen"); });
  HttpServer server([&](const HttpRequest&, HttpConnection& c) {
    c.Respond(302, "", "text/plain", {{"Location", other.url() + "/x"}});
  });
  Config config;
  config.token = "tok";
  const auto response = Connect(server, {}, config)->Send(Get("/"));
  ASSERT_TRUE(response) << response.error().message;
  EXPECT_EQ(response->status, 302);
  EXPECT_TRUE(other.requests().empty());
}

TEST(TransportTest, TheDeadlineCountsForTheWholeAnswer) {
  // Drips forever, so that no inactivity timer would ever fire.
  HttpServer server([](const HttpRequest&, HttpConnection& c) {
    c.BeginChunked();
    while (c.Chunk("x")) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    c.Drop();
  });
  const auto transport = Connect(server);
  const auto begun = std::chrono::steady_clock::now();
  const auto response = transport->Send(Get("/", Millis{300}));
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, ErrorCode::kDeadline) << response.error().message;
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(10));
}

TEST(TransportTest, AServerThatSaysNothingIsADeadlineToo) {
  HttpServer server([](const HttpRequest&, HttpConnection& c) { c.WaitForPeer(); });
  const auto response = Connect(server)->Send(Get("/", Millis{200}));
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, ErrorCode::kDeadline);
}

TEST(TransportTest, CutAnswersAreUnavailable) {
  HttpServer server([](const HttpRequest& request, HttpConnection& c) {
    if (request.target == "/length") {
      c.Write("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"half\":");
    } else if (request.target == "/chunked") {
      c.BeginChunked();
      c.Chunk("{\"half\":");
    } else if (request.target == "/garbage") {
      c.Write("this is not HTTP\r\n\r\n");
    }
    c.Drop();
  });
  const auto transport = Connect(server);
  for (const char* path : {"/length", "/chunked", "/garbage", "/nothing"}) {
    const auto response = transport->Send(Get(path));
    ASSERT_FALSE(response) << path;
    EXPECT_EQ(response.error().code, ErrorCode::kUnavailable) << response.error().message;
  }
}

TEST(TransportTest, NobodyThereIsUnavailable) {
  int port = 0;
  {
    HttpServer server([](const HttpRequest&, HttpConnection&) {});
    port = server.port();
  }
  Config config;
  config.server = "http://127.0.0.1:" + std::to_string(port);
  config.token = "s3cret";
  const auto response = MakeTransport(config).value()->Send(Get("/"));
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(response.error().message, Not(HasSubstr("s3cret")));
}

TEST(TransportTest, AnAnswerOverTheLimitIsRefused) {
  HttpServer server(
      [](const HttpRequest&, HttpConnection& c) { c.Respond(200, std::string(3'000'000, 'x')); });
  TransportOptions options;
  options.max_response_bytes = 1'000'000;
  const auto response = Connect(server, options)->Send(Get("/"));
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, ErrorCode::kData);
  const auto whole = Connect(server)->Send(Get("/"));
  ASSERT_TRUE(whole) << whole.error().message;
  EXPECT_EQ(whole->body.size(), 3'000'000u);
}

TEST(TransportTest, RefusesServersThatItMustNotDial) {
  const auto code = [](const std::string& server) {
    Config config;
    config.server = server;
    const auto transport = MakeTransport(config);
    return transport ? "accepted" : std::string(ErrorCodeName(transport.error().code));
  };
  EXPECT_EQ(code("https://kubernetes.default.svc:443"), "accepted");
  EXPECT_EQ(code("http://10.0.0.1"), "Invalid");  // a token in the clear
  EXPECT_EQ(code("https://[::1]:6443"), "Unsupported");
  EXPECT_EQ(code("ftp://host"), "Invalid");
  EXPECT_EQ(code("not a url"), "Invalid");
  EXPECT_EQ(code(""), "Invalid");
}

TEST(TransportTest, ManyThreadsShareIt) {
  HttpServer server(
      [](const HttpRequest& request, HttpConnection& c) { c.Respond(200, request.target); });
  const auto transport = Connect(server);
  std::atomic<int> good{0};
  std::vector<std::jthread> threads;
  for (int t = 0; t < 12; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i) {
        const std::string path = "/" + std::to_string(t) + "/" + std::to_string(i);
        const auto response = transport->Send(Get(path));
        if (response && response->body == path) ++good;
      }
    });
  }
  threads.clear();
  EXPECT_EQ(good, 240);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
std::size_t ResidentBytes() {
  std::ifstream in("/proc/self/statm");
  std::size_t total = 0;
  std::size_t resident = 0;
  in >> total >> resident;
  return resident * 4096;
}

TEST(TransportTest, ThousandsOfRequestsAndCancelledStreamsDoNotGrowTheProcess) {
  HttpServer server([](const HttpRequest& request, HttpConnection& c) {
    if (request.target == "/stream") {
      c.BeginChunked();
      c.Chunk("line\n");
      c.WaitForPeer();
      return;
    }
    c.Respond(200, std::string(10'000, 'x'));
  });
  const auto transport = Connect(server);
  const auto work = [&](int requests, int streams) {
    for (int i = 0; i < requests; ++i) ASSERT_TRUE(transport->Send(Get("/")));
    for (int i = 0; i < streams; ++i) {
      ASSERT_TRUE(transport->Stream(Get("/stream"), [](std::string_view) { return false; }, {}));
    }
  };
  work(500, 50);
  const std::size_t warm = ResidentBytes();
  work(3000, 100);
  // The server's own record of requests and its finished threads are a part of this.
  EXPECT_LT(ResidentBytes(), warm + (std::size_t{16} << 20));
}
#endif

class TokenFileTest : public testing::Test {
 protected:
  void SetUp() override {
    file_ = std::filesystem::path(testing::TempDir()) / "transport_token";
    Write("old");
    config_.token_file = file_.string();
  }
  void Write(const std::string& text) { std::ofstream(file_) << text; }

  std::filesystem::path file_;
  Config config_;
};

TEST_F(TokenFileTest, ARefusedTokenIsReadAgainAndTheRequestSentOnceMore) {
  HttpServer server([](const HttpRequest& request, HttpConnection& c) {
    const bool good = request.headers.at("authorization") == "Bearer new";
    c.Respond(good ? 200 : 401, "{}");
  });
  const auto transport = Connect(server, {}, config_);
  EXPECT_EQ(transport->Send(Get("/"))->status, 401);
  EXPECT_EQ(server.requests().size(), 1u);  // the file gave nothing new
  Write("new");
  EXPECT_EQ(transport->Send(Get("/"))->status, 200);
  EXPECT_EQ(server.requests().size(), 3u);
  Write("newer");
  EXPECT_EQ(transport->Send(Get("/"))->status, 200);  // nobody complained: the minute is not over
}

TEST(StreamTest, HandsOverLinesAndEndsInOrder) {
  HttpServer server([](const HttpRequest&, HttpConnection& c) {
    c.BeginChunked();
    c.Chunk("one\ntw");
    c.Chunk("o\n\nlast");
    c.EndChunked();
  });
  std::vector<std::string> lines;
  const auto response = Connect(server)->Stream(Get("/"),
                                                [&](std::string_view line) {
                                                  lines.emplace_back(line);
                                                  return true;
                                                },
                                                {});
  ASSERT_TRUE(response) << response.error().message;
  EXPECT_THAT(lines, ElementsAre("one", "two", "", "last"));
}

TEST(StreamTest, ACutStreamGivesItsWholeLinesAndAnError) {
  HttpServer server([](const HttpRequest&, HttpConnection& c) {
    c.BeginChunked();
    c.Chunk("one\nhalf");
    c.Drop();
  });
  std::vector<std::string> lines;
  const auto response = Connect(server)->Stream(Get("/"),
                                                [&](std::string_view line) {
                                                  lines.emplace_back(line);
                                                  return true;
                                                },
                                                {});
  EXPECT_FALSE(response);
  EXPECT_THAT(lines, ElementsAre("one"));
}

TEST(StreamTest, ARefusalHasItsBodyAndNoLines) {
  HttpServer server([](const HttpRequest&, HttpConnection& c) { c.Respond(403, "why\nnot\n"); });
  const auto response = Connect(server)->Stream(Get("/"),
                                                [](std::string_view) {
                                                  ADD_FAILURE() << "a line of a refusal";
                                                  return true;
                                                },
                                                {});
  ASSERT_TRUE(response);
  EXPECT_EQ(response->status, 403);
  EXPECT_EQ(response->body, "why\nnot\n");
}

TEST(StreamTest, StopsWithinASecond) {
  HttpServer server([](const HttpRequest&, HttpConnection& c) {
    c.BeginChunked();
    c.Chunk("one\n");
    c.WaitForPeer();
  });
  const auto transport = Connect(server);
  std::stop_source stop;
  std::chrono::steady_clock::time_point asked;
  std::jthread other;
  const auto response = transport->Stream(
      Get("/", Millis{0}),
      [&](std::string_view) {
        other = std::jthread([&] {
          asked = std::chrono::steady_clock::now();
          stop.request_stop();
        });
        return true;
      },
      stop.get_token());
  EXPECT_TRUE(response);
  EXPECT_LT(std::chrono::steady_clock::now() - asked, std::chrono::seconds(1));
}

TEST(StreamTest, EveryCutInsideAMultiByteCharacterGivesTheSameLine) {
  const std::string line = "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80z";
  HttpServer server([&](const HttpRequest& request, HttpConnection& c) {
    const auto cut = static_cast<std::size_t>(std::stoi(request.target.substr(1)));
    c.BeginChunked();
    c.Chunk((line + "\n" + line).substr(0, cut));
    c.Chunk((line + "\n" + line + "\n").substr(cut));
    c.EndChunked();
  });
  const auto transport = Connect(server);
  for (std::size_t cut = 1; cut < 2 * line.size(); ++cut) {
    std::vector<std::string> lines;
    ASSERT_TRUE(transport->Stream(Get("/" + std::to_string(cut)),
                                  [&](std::string_view text) {
                                    lines.emplace_back(text);
                                    return true;
                                  },
                                  {}));
    EXPECT_THAT(lines, ElementsAre(line, line)) << cut;
  }
}

TEST(StreamTest, ALineThatNeverEndsIsRefused) {
  HttpServer server([](const HttpRequest&, HttpConnection& c) {
    c.BeginChunked();
    while (c.Chunk(std::string(65536, 'x'))) {
    }
    c.Drop();
  });
  TransportOptions options;
  options.max_line_bytes = 1'000'000;
  const auto response =
      Connect(server, options)->Stream(Get("/"), [](std::string_view) { return true; }, {});
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, ErrorCode::kData);
}

TEST(StreamTest, AConsumerThatIsBusyMakesTheServerWait) {
  constexpr std::size_t kLines = 64;
  const std::string line = std::string(1'000'000, 'x') + "\n";
  std::atomic<std::size_t> sent{0};
  HttpServer server([&](const HttpRequest&, HttpConnection& c) {
    c.BeginChunked();
    for (std::size_t i = 0; i < kLines && c.Chunk(line); ++i) ++sent;
    c.EndChunked();
  });
  TransportOptions options;
  options.stream_buffer_bytes = 2'000'000;
  std::size_t seen = 0;
  std::size_t most_ahead = 0;
  const auto response =
      Connect(server, options)
          ->Stream(Get("/"),
                   [&](std::string_view) {
                     // The server may run ahead by our buffer and the sockets', never by the whole
                     // answer.
                     if (seen == 0) std::this_thread::sleep_for(std::chrono::milliseconds(500));
                     most_ahead = std::max(most_ahead, sent - seen);
                     ++seen;
                     return true;
                   },
                   {});
  ASSERT_TRUE(response) << response.error().message;
  EXPECT_EQ(seen, kLines);
  EXPECT_LT(most_ahead, 32u);
}

}  // namespace
}  // namespace bimetal::kube
