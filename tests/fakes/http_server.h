#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace bimetal::test {

struct HttpRequest {
  std::string method;
  std::string target;                          // path and query as sent
  std::map<std::string, std::string> headers;  // keys in lower case
  std::string body;

  // The path without the query.
  std::string path() const { return target.substr(0, target.find('?')); }
  // The raw value of a query parameter, "" where absent.
  std::string query(std::string_view key) const;
};

// The server's end of one connection, while a handler runs. That handler's thread only.
class HttpConnection {
 public:
  explicit HttpConnection(int socket) : socket_(socket) {}

  // A whole answer with Content-Length.
  void Respond(int status, std::string_view body,
               std::string_view content_type = "application/json",
               const std::map<std::string, std::string>& headers = {});
  // A chunked answer: Begin, Chunk..., End. Without End the answer stays unfinished.
  void BeginChunked(int status = 200, std::string_view content_type = "application/json");
  // False once the peer has gone.
  bool Chunk(std::string_view bytes);
  void EndChunked();
  // Any bytes as they are.
  bool Write(std::string_view bytes);
  // Closes the connection after the handler.
  void Drop() { dropped_ = true; }
  // Waits until the peer closes or the server stops.
  void WaitForPeer();

  bool dropped() const { return dropped_; }

 private:
  int socket_;
  bool dropped_ = false;
};

// A real HTTP/1.1 server on a loopback port of the system's choice; the handler plays the API
// server. One thread per connection; the handler is called from several of them. Thread-safe.
class HttpServer {
 public:
  using Handler = std::function<void(const HttpRequest&, HttpConnection&)>;

  explicit HttpServer(Handler handler, int port = 0);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  int port() const { return port_; }
  // "http://127.0.0.1:port".
  std::string url() const;
  // All requests so far, in order of arrival.
  std::vector<HttpRequest> requests() const;
  // Cuts all open connections; the server goes on.
  void DropConnections();
  int connections_accepted() const { return accepted_; }

 private:
  void Accept();
  void Serve(int socket);

  Handler handler_;
  int listener_ = -1;
  int port_ = 0;
  std::atomic<bool> stopping_{false};
  std::atomic<int> accepted_{0};
  mutable std::mutex mutex_;
  std::vector<HttpRequest> requests_;
  std::list<int> sockets_;
  std::vector<std::thread> workers_;
  std::thread acceptor_;
};

}  // namespace bimetal::test
