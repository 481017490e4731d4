#include "operator/http/server.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace bimetal::op {
namespace {

// A plain socket, so that the tests see the very bytes. -1 where nothing listens.
int Connect(int port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  const timeval limit{20, 0};
  ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  ::inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    ::close(fd);
    return -1;
  }
  return fd;
}

std::string ReadAll(int fd) {
  std::string out;
  char buffer[4096];
  for (ssize_t n; (n = ::recv(fd, buffer, sizeof(buffer), 0)) > 0;) {
    out.append(buffer, static_cast<std::size_t>(n));
  }
  return out;
}

// `hang_up`: nothing more will come from us, so that the server need not wait for it.
std::string Send(int port, const std::string& request, bool hang_up = false) {
  const int fd = Connect(port);
  if (fd < 0) return "";
  ::send(fd, request.data(), request.size(), MSG_NOSIGNAL);
  if (hang_up) ::shutdown(fd, SHUT_WR);
  std::string out = ReadAll(fd);
  ::close(fd);
  return out;
}

std::string Get(int port, const std::string& path, const std::string& headers = "") {
  return Send(port,
              "GET " + path + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" + headers + "\r\n");
}

std::string BodyOf(const std::string& response) {
  const auto end = response.find("\r\n\r\n");
  return end == std::string::npos ? "" : response.substr(end + 4);
}

std::string StatusOf(const std::string& response) { return response.substr(9, 3); }

HttpServerOptions Options() {
  HttpServerOptions options;
  options.listen = "127.0.0.1:0";
  options.metrics = [](const std::string& accept, std::string* type) {
    *type = "text/plain; version=0.0.4; charset=utf-8";
    return "accept " + accept + "\n";
  };
  return options;
}

std::unique_ptr<HttpServer> Started(HttpServerOptions options) {
  auto server = HttpServer::Start(std::move(options));
  EXPECT_TRUE(server) << server.error().message;
  return *std::move(server);
}

TEST(HttpServer, ServesMetricsWithTheTypeThatTheHandlerChose) {
  const auto server = Started(Options());
  const std::string response = Get(server->port(), "/metrics", "Accept: text/plain\r\n");
  EXPECT_EQ(StatusOf(response), "200");
  EXPECT_EQ(BodyOf(response), "accept text/plain\n");
  EXPECT_NE(response.find("Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n"),
            std::string::npos);
}

TEST(HttpServer, ProbesFollowTheirChecks) {
  std::atomic<bool> good = true;
  HttpServerOptions options = Options();
  options.healthy = [&]() -> Status {
    if (good) return {};
    return Fail(ErrorCode::kUnavailable, "the loop has not moved for 30 s");
  };
  options.ready = [&]() -> Status {
    return Fail(ErrorCode::kUnavailable, "informers are not synced: pods");
  };
  const auto server = Started(std::move(options));
  EXPECT_EQ(StatusOf(Get(server->port(), "/healthz")), "200");
  EXPECT_EQ(BodyOf(Get(server->port(), "/healthz")), "ok\n");
  good = false;
  EXPECT_EQ(StatusOf(Get(server->port(), "/healthz")), "503");
  EXPECT_EQ(BodyOf(Get(server->port(), "/healthz")), "the loop has not moved for 30 s\n");
  EXPECT_EQ(StatusOf(Get(server->port(), "/readyz")), "503");
  EXPECT_EQ(BodyOf(Get(server->port(), "/readyz")), "informers are not synced: pods\n");
}

TEST(HttpServer, OtherPathsMethodsAndBrokenRequestsAreErrorsAndHarmNothing) {
  const auto server = Started(Options());
  const int port = server->port();
  EXPECT_EQ(StatusOf(Get(port, "/")), "404");
  EXPECT_EQ(StatusOf(Get(port, "/metrics/../../etc/passwd")), "404");
  EXPECT_EQ(StatusOf(Send(port,
                          "POST /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
                          "Content-Length: 0\r\n\r\n")),
            "404");
  const std::string kBroken[] = {
      "POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n",
      "nonsense\r\n\r\n",
      std::string("\0\0\0\0\r\n\r\n", 8),
      "GET /" + std::string(100'000, 'a') + " HTTP/1.1\r\n\r\n",
      "GET /metrics HTTP/1.1\r\nX: " + std::string(100'000, 'a') + "\r\n\r\n",
      "GET /metrics",
      "",
  };
  for (const auto& request : kBroken) {
    EXPECT_EQ(Send(port, request, true).find(" 200 "), std::string::npos) << request.substr(0, 40);
  }
  EXPECT_EQ(StatusOf(Get(port, "/metrics")), "200");
}

TEST(HttpServer, AHandlerThatThrowsIsA500WithoutItsWords) {
  HttpServerOptions options = Options();
  options.metrics = [](const std::string&, std::string*) -> std::string {
    throw std::runtime_error("inside");
  };
  const auto server = Started(std::move(options));
  const std::string response = Get(server->port(), "/metrics");
  EXPECT_EQ(StatusOf(response), "500");
  EXPECT_EQ(response.find("inside"), std::string::npos);
}

TEST(HttpServer, APortIsNotShared) {
  const auto server = Started(Options());
  HttpServerOptions options = Options();
  options.listen = "127.0.0.1:" + std::to_string(server->port());
  const auto second = HttpServer::Start(std::move(options));
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kUnavailable);
}

TEST(HttpServer, AddressesThatAreNoneAreRefused) {
  for (const char* listen : {"", "8080", ":8080", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:70000"}) {
    HttpServerOptions options = Options();
    options.listen = listen;
    const auto server = HttpServer::Start(std::move(options));
    ASSERT_FALSE(server) << listen;
    EXPECT_EQ(server.error().code, ErrorCode::kInvalid) << listen;
  }
  HttpServerOptions options = Options();
  options.listen = "192.0.2.1:8080";
  EXPECT_EQ(HttpServer::Start(std::move(options)).error().code, ErrorCode::kUnavailable);
}

TEST(HttpServer, AStopLetsTheRequestInProgressEndAndClosesThePort) {
  std::mutex mutex;
  std::condition_variable changed;
  bool entered = false;
  bool leave = false;
  HttpServerOptions options = Options();
  options.healthy = [&]() -> Status {
    std::unique_lock lock(mutex);
    entered = true;
    changed.notify_all();
    changed.wait(lock, [&] { return leave; });
    return {};
  };
  const auto server = Started(std::move(options));
  const int port = server->port();
  std::string response;
  std::thread caller([&] { response = Get(port, "/healthz"); });
  {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return entered; });
  }
  std::thread stopper([&] { server->Stop(); });
  {
    const std::lock_guard lock(mutex);
    leave = true;
    changed.notify_all();
  }
  caller.join();
  stopper.join();
  EXPECT_EQ(StatusOf(response), "200");
  EXPECT_EQ(Connect(port), -1);
  server->Stop();
}

TEST(HttpServer, AStopRightAfterTheStartIsNotForgotten) {
  for (int i = 0; i < 20; ++i) Started(Options())->Stop();
}

TEST(HttpServer, AClientThatSaysNothingHoldsUpNobody) {
  HttpServerOptions options = Options();
  options.threads = 2;
  options.idle_seconds = 1;
  const auto server = Started(std::move(options));
  const int silent = Connect(server->port());
  ASSERT_GE(silent, 0);
  EXPECT_EQ(StatusOf(Get(server->port(), "/healthz")), "200");
  // Its connection is closed by the server, not kept for ever.
  EXPECT_EQ(ReadAll(silent), "");
  ::close(silent);
}

}  // namespace
}  // namespace bimetal::op
