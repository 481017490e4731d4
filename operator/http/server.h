#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/base/result.h"

namespace bimetal::op {

struct HttpServerOptions {
  std::string listen = "0.0.0.0:8080";  // "host:port" or "[v6]:port"; port 0: any free one
  // The body for an Accept header; sets the content type. Called from several threads at once.
  std::function<std::string(const std::string& accept, std::string* content_type)> metrics;
  // An error makes the probe fail; its message is the body.
  std::function<Status()> healthy;
  std::function<Status()> ready;
  int threads = 8;
  int idle_seconds = 2;  // a client that sends nothing for so long is hung up on
};

// Serves /metrics, /healthz and /readyz in plain HTTP. Thread-safe. The destructor stops it.
class HttpServer {
 public:
  // Listens when it returns. Error kUnavailable where the address cannot be bound, kInvalid where
  // it is none.
  static Result<std::unique_ptr<HttpServer>> Start(HttpServerOptions options);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  int port() const;
  // Refuses new connections, lets requests in progress end. Idempotent.
  void Stop();

 private:
  struct Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace bimetal::op
