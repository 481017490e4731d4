#include "operator/http/server.h"

#include <httplib.h>
#include <sys/socket.h>

#include <atomic>
#include <charconv>
#include <chrono>
#include <mutex>
#include <thread>
#include <utility>

namespace bimetal::op {
namespace {

constexpr int kWriteSeconds = 5;
constexpr std::size_t kRequestsPerConnection = 100;
constexpr std::size_t kMaxBody = 4096;  // nobody sends us one
constexpr char kText[] = "text/plain; charset=utf-8";

struct Address {
  std::string host;
  int port = 0;
};

Result<Address> ParseAddress(const std::string& listen) {
  const auto colon = listen.rfind(':');
  Address out;
  if (colon == std::string::npos) {
    return Fail(ErrorCode::kInvalid, "not HOST:PORT: \"" + listen + "\"");
  }
  out.host = listen.substr(0, colon);
  if (out.host.size() > 2 && out.host.front() == '[' && out.host.back() == ']') {
    out.host = out.host.substr(1, out.host.size() - 2);
  }
  const char* end = listen.data() + listen.size();
  const auto [stop, problem] = std::from_chars(listen.data() + colon + 1, end, out.port);
  if (out.host.empty() || problem != std::errc() || stop != end || out.port < 0 ||
      out.port > 65535) {
    return Fail(ErrorCode::kInvalid, "not HOST:PORT: \"" + listen + "\"");
  }
  return out;
}

void Answer(const std::function<Status()>& check, httplib::Response& response) {
  const Status status = check ? check() : Status();
  response.status = status ? 200 : 503;
  response.set_content(status ? "ok\n" : status.error().message + "\n", kText);
}

}  // namespace

struct HttpServer::Impl {
  HttpServerOptions options;
  httplib::Server server;
  std::thread acceptor;
  std::atomic<bool> accept_ended = false;
  int port = 0;
  std::mutex stop_mutex;

  void Configure() {
    server.set_read_timeout(options.idle_seconds);
    server.set_write_timeout(kWriteSeconds);
    server.set_keep_alive_timeout(options.idle_seconds);
    server.set_keep_alive_max_count(kRequestsPerConnection);
    server.set_payload_max_length(kMaxBody);
    server.set_tcp_nodelay(true);
    // The library's own choice is SO_REUSEPORT, under which two servers share a port unnoticed.
    server.set_socket_options([](socket_t socket) {
      const int yes = 1;
      ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    });
    const int threads = options.threads;
    server.new_task_queue = [threads] {
      return new httplib::ThreadPool(static_cast<std::size_t>(threads));
    };
    server.set_exception_handler(
        [](const httplib::Request&, httplib::Response& response, std::exception_ptr) {
          response.status = 500;
          response.set_content("internal error\n", kText);
        });
    server.Get("/metrics", [this](const httplib::Request& request, httplib::Response& response) {
      std::string type = kText;
      std::string body =
          options.metrics ? options.metrics(request.get_header_value("Accept"), &type) : "";
      response.set_content(std::move(body), type);
    });
    server.Get("/healthz", [this](const httplib::Request&, httplib::Response& response) {
      Answer(options.healthy, response);
    });
    server.Get("/readyz", [this](const httplib::Request&, httplib::Response& response) {
      Answer(options.ready, response);
    });
  }

  Status Listen() {
    BIMETAL_TRY_ASSIGN(const Address address, ParseAddress(options.listen));
    port = address.port;
    bool bound = false;
    if (port == 0) {
      port = server.bind_to_any_port(address.host);
      bound = port > 0;
    } else {
      bound = server.bind_to_port(address.host, port);
    }
    if (!bound) return Fail(ErrorCode::kUnavailable, "cannot listen on " + options.listen);
    acceptor = std::thread([this] {
      server.listen_after_bind();
      accept_ended = true;
    });
    // Before it runs the library would forget a stop.
    while (!server.is_running() && !accept_ended) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    if (accept_ended) return Fail(ErrorCode::kUnavailable, "cannot accept on " + options.listen);
    return {};
  }

  void Stop() {
    const std::lock_guard lock(stop_mutex);
    if (!acceptor.joinable()) return;
    server.stop();
    acceptor.join();
  }
};

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

HttpServer::~HttpServer() { Stop(); }

Result<std::unique_ptr<HttpServer>> HttpServer::Start(HttpServerOptions options) {
  if (options.threads < 1 || options.threads > 64) {
    return Fail(ErrorCode::kInvalid, "threads of the HTTP server: not between 1 and 64");
  }
  auto server = std::unique_ptr<HttpServer>(new HttpServer(std::make_unique<Impl>()));
  server->impl_->options = std::move(options);
  server->impl_->Configure();
  BIMETAL_TRY(server->impl_->Listen());
  return server;
}

int HttpServer::port() const { return impl_->port; }

void HttpServer::Stop() { impl_->Stop(); }

}  // namespace bimetal::op
