// The transport over cpprestsdk. The rules kept here, each for a measured reason: no redirects (the
// Authorization header would travel), the cluster's CA alone, overall deadlines by cancellation
// (the library's timeout is an inactivity timer), two long-lived clients (a client per request
// leaks), nothing that waits on a pool thread, all exceptions observed (exchange.cc).
#include <algorithm>
#include <chrono>
#include <exception>
#include <memory>
#include <mutex>
#include <utility>

#include <cpprest/http_client.h>
#include <pplx/threadpool.h>

#include "core/base/log.h"
#include "kube/transport/exchange.h"
#include "kube/transport/line_splitter.h"
#include "kube/transport/tls.h"
#include "kube/transport/token_source.h"
#include "kube/transport/transport.h"

namespace bimetal::kube {
namespace {

namespace http = web::http;
using HttpClient = http::client::http_client;

constexpr std::size_t kMaxErrorBody = std::size_t{1} << 20;
constexpr std::size_t kPoolThreads = 4;

void SizePoolOnce() {
  static std::once_flag once;
  std::call_once(once, [] {
    try {
      crossplat::threadpool::initialize_with_threads(kPoolThreads);
    } catch (const std::exception&) {
      Log(LogLevel::kWarning, "the HTTP pool is already in use and keeps its size");
    }
  });
}

bool IsIpv4(const std::string& host) {
  return !host.empty() && host.find_first_not_of("0123456789.") == std::string::npos;
}

bool IsLoopback(const std::string& host) {
  return host == "localhost" || (IsIpv4(host) && host.starts_with("127."));
}

Exchange::Deadline DeadlineOf(Millis limit) {
  const auto now = std::chrono::steady_clock::now();
  // "No limit" is a year: the wait computes with the value.
  return now + std::chrono::milliseconds(limit.v > 0 ? limit.v : Minutes(525'600).v);
}

class CpprestTransport final : public Transport {
 public:
  CpprestTransport(const Config& config, web::uri base, const TransportOptions& options)
      : base_(std::move(base)),
        options_(options),
        clock_(options.clock != nullptr ? *options.clock : system_clock_),
        token_(config, clock_, options.reread_interval),
        tls_(std::make_shared<TlsMaterial>(config)) {}

  Result<Response> Send(const Request& request, StopToken stop) override {
    const Exchange::Deadline deadline = DeadlineOf(request.deadline);
    return WithToken(request, [&](const std::string& token) -> Result<Response> {
      BIMETAL_TRY_ASSIGN(const auto exchange, Start(request, token, false));
      Result<Response> response = ReadWhole(*exchange, deadline, stop, options_.max_response_bytes);
      exchange->Cancel();
      return response;
    });
  }

  Result<Response> Stream(const Request& request,
                          const std::function<bool(std::string_view line)>& on_line,
                          StopToken stop) override {
    const Exchange::Deadline deadline = DeadlineOf(request.deadline);
    return WithToken(request, [&](const std::string& token) -> Result<Response> {
      BIMETAL_TRY_ASSIGN(const auto exchange, Start(request, token, true));
      Result<Response> response = ReadLines(*exchange, deadline, stop, on_line);
      exchange->Cancel();
      if (!response && stop.stop_requested()) return Response{200, {}, {}};
      return response;
    });
  }

 private:
  struct Clients {
    HttpClient requests;
    HttpClient streams;
    std::size_t stamp;
  };

  // Runs `call` with the token; once more with a newer one where the first was refused.
  template <class F>
  Result<Response> WithToken(const Request& request, F&& call) {
    BIMETAL_TRY_ASSIGN(const std::string token, token_.Get());
    Result<Response> response = call(token);
    if (response && response->status == 401 && token_.Refresh(token)) {
      BIMETAL_TRY_ASSIGN(const std::string fresh, token_.Get());
      response = call(fresh);
    }
    if (!response) {
      std::string context = request.method + " " + base_.host();
      if (const std::string tls = tls_->Error(); !tls.empty()) context += " (" + tls + ")";
      return tl::unexpected<Error>(WithContext(response.error(), context));
    }
    return response;
  }

  Result<std::shared_ptr<Exchange>> Start(const Request& request, const std::string& token,
                                          bool is_stream) {
    try {
      const std::shared_ptr<Clients> clients = CurrentClients();
      http::http_request message(request.method);
      message.set_request_uri(web::uri(request.path_and_query));
      message.headers().add("Accept", request.accept);
      message.headers().add("User-Agent", "bimetal");
      if (!token.empty()) message.headers().add("Authorization", "Bearer " + token);
      if (!request.body.empty() || !request.content_type.empty()) {
        message.set_body(request.body, request.content_type);
      }
      return Exchange::Start(is_stream ? clients->streams : clients->requests, std::move(message),
                             options_.stream_buffer_bytes);
    } catch (const std::exception& e) {
      return Fail(ErrorCode::kInvalid, std::string("request cannot be made: ") + e.what());
    }
  }

  Result<Response> ReadWhole(Exchange& exchange, Exchange::Deadline deadline, const StopToken& stop,
                             std::size_t max_bytes) {
    BIMETAL_TRY_ASSIGN(Exchange::Head head, exchange.WaitHead(deadline, stop));
    Response response{head.status, std::move(head.headers), {}};
    while (true) {
      BIMETAL_TRY_ASSIGN(const std::string piece, exchange.NextPiece(deadline, stop));
      if (piece.empty()) return response;
      if (response.body.size() + piece.size() > max_bytes) {
        return Fail(ErrorCode::kData,
                    "the answer is larger than " + std::to_string(max_bytes) + " bytes");
      }
      response.body += piece;
    }
  }

  Result<Response> ReadLines(Exchange& exchange, Exchange::Deadline deadline, const StopToken& stop,
                             const std::function<bool(std::string_view)>& on_line) {
    BIMETAL_TRY_ASSIGN(Exchange::Head head, exchange.WaitHead(deadline, stop));
    Response response{head.status, std::move(head.headers), {}};
    if (response.status < 200 || response.status > 299)
      return ReadError(exchange, deadline, stop, std::move(response));
    LineSplitter lines(options_.max_line_bytes);
    while (true) {
      BIMETAL_TRY_ASSIGN(const std::string piece, exchange.NextPiece(deadline, stop));
      if (piece.empty()) break;
      const auto outcome = lines.Feed(
          piece, [&](std::string_view line) { return !stop.stop_requested() && on_line(line); });
      if (outcome == LineSplitter::Outcome::kStopped) return response;
      if (outcome == LineSplitter::Outcome::kTooLong) {
        return Fail(ErrorCode::kData, "a line of the answer is longer than " +
                                          std::to_string(options_.max_line_bytes) + " bytes");
      }
    }
    if (!lines.rest().empty()) on_line(lines.rest());
    return response;
  }

  // What can be had of the body of a refusal; the status counts even where the body is cut.
  static Result<Response> ReadError(Exchange& exchange, Exchange::Deadline deadline,
                                    const StopToken& stop, Response response) {
    while (response.body.size() < kMaxErrorBody) {
      const Result<std::string> piece = exchange.NextPiece(deadline, stop);
      if (!piece || piece->empty()) break;
      response.body += *piece;
    }
    response.body.resize(std::min(response.body.size(), kMaxErrorBody));
    return response;
  }

  // The clients live long. They are made anew when a certificate file has changed, because their
  // open connections keep the old certificate.
  std::shared_ptr<Clients> CurrentClients() {
    const std::lock_guard lock(mutex_);
    const Millis now = clock_.Monotonic();
    if (clients_ && now - stamped_at_ < options_.reread_interval) return clients_;
    stamped_at_ = now;
    const std::size_t stamp = tls_->Stamp();
    if (clients_ && clients_->stamp == stamp) return clients_;
    clients_ = std::make_shared<Clients>(
        Clients{HttpClient(base_, ClientConfig(options_.request_inactivity)),
                HttpClient(base_, ClientConfig(options_.stream_inactivity)), stamp});
    return clients_;
  }

  http::client::http_client_config ClientConfig(Millis inactivity) const {
    http::client::http_client_config config;
    config.set_timeout(std::chrono::milliseconds(inactivity.v));
    config.set_max_redirects(0);
    config.set_proxy(web::web_proxy(web::web_proxy::disabled));
    config.set_chunksize(std::size_t{256} << 10);
    config.set_validate_certificates(true);
    config.set_tlsext_sni_enabled(!IsIpv4(base_.host()));  // an address is not a server name
    config.set_ssl_context_callback(
        [tls = tls_](boost::asio::ssl::context& context) { tls->Configure(context); });
    return config;
  }

  const web::uri base_;
  const TransportOptions options_;
  const SystemClock system_clock_;
  const Clock& clock_;
  TokenSource token_;
  const std::shared_ptr<TlsMaterial> tls_;
  std::mutex mutex_;
  std::shared_ptr<Clients> clients_;
  Millis stamped_at_;
};

Status CheckServer(const web::uri& uri, const Config& config) {
  const std::string& host = uri.host();
  if ((uri.scheme() != "https" && uri.scheme() != "http") || host.empty()) {
    return Fail(ErrorCode::kInvalid, "server is not an http or https URL: " + config.server);
  }
  if (host.find(':') != std::string::npos || host.front() == '[') {
    return Fail(ErrorCode::kUnsupported,
                "server is an IPv6 address, which cannot be dialled; use a name: " + config.server);
  }
  if (uri.scheme() == "http" && !IsLoopback(host)) {
    return Fail(ErrorCode::kInvalid, "http is allowed for loopback only: " + config.server);
  }
  if (!config.tls_server_name.empty() && config.tls_server_name != host) {
    return Fail(ErrorCode::kUnsupported,
                "tls-server-name differs from the server's host; use a server URL with the name " +
                    config.tls_server_name);
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<Transport>> MakeTransport(const Config& config,
                                                 const TransportOptions& options) {
  SizePoolOnce();
  try {
    web::uri base(config.server);
    BIMETAL_TRY(CheckServer(base, config));
    return std::make_unique<CpprestTransport>(config, std::move(base), options);
  } catch (const std::exception&) {
    return Fail(ErrorCode::kInvalid, "server is not a URL: " + config.server);
  }
}

}  // namespace bimetal::kube
