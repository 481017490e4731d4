#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>

#include "core/base/result.h"
#include "core/base/time.h"
#include "kube/config/config.h"

namespace bimetal::kube {

using StopToken = std::stop_token;

struct Request {
  std::string method = "GET";
  // Already percent-encoded: "/api/v1/pods?limit=500".
  std::string path_and_query;
  std::string body;
  std::string content_type;
  std::string accept = "application/json";
  // From the call to the last byte of the answer. Stream: zero means no limit.
  Millis deadline = Seconds(30);
};

struct Response {
  int status = 0;
  // Keys in lower case.
  std::map<std::string, std::string> headers;
  std::string body;
};

// Bytes to the API server and back, nothing more. Any HTTP status is a Response; an Error means
// that there was no whole answer: kUnavailable (no connection, cut connection, stopped), kDeadline,
// kInvalid or kUnsupported (the configuration), kData (an answer over the size limits).
// Thread-safe. Both calls block; call them from threads of your own, never from on_line.
class Transport {
 public:
  virtual ~Transport() = default;

  virtual Result<Response> Send(const Request& request, StopToken stop = {}) = 0;

  // Hands every line of a 2xx body to `on_line`, without its newline, on the calling thread; a last
  // line without newline is handed over only if the body ended in order. Ends when the server ends
  // the body, on_line returns false, or `stop` is requested (all three: a Response without body).
  // While on_line is busy at most a few MiB are buffered and the server is made to wait.
  // Another status gives its Response with the body (at most 1 MiB of it) and no line.
  virtual Result<Response> Stream(const Request& request,
                                  const std::function<bool(std::string_view line)>& on_line,
                                  StopToken stop) = 0;
};

struct TransportOptions {
  // A gap of this length within an answer cuts it; for streams it must exceed the server's
  // bookmark interval (a minute) and the longest pause of on_line.
  Millis request_inactivity = Seconds(30);
  Millis stream_inactivity = Seconds(150);
  // How often token and certificate files are read again.
  Millis reread_interval = Seconds(60);
  std::size_t max_response_bytes = std::size_t{256} << 20;
  std::size_t max_line_bytes = std::size_t{32} << 20;
  // Bytes of a stream that wait for on_line before the server is made to wait.
  std::size_t stream_buffer_bytes = std::size_t{2} << 20;
  // Must outlive the transport; the system's clock where null.
  const Clock* clock = nullptr;
};

// The transport over cpprestsdk. Connects on first use.
// Errors: kInvalid for a server URL that is not one; kUnsupported for IPv6 literals.
Result<std::unique_ptr<Transport>> MakeTransport(const Config& config,
                                                 const TransportOptions& options = {});

}  // namespace bimetal::kube
