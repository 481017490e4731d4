#include "tests/fakes/http_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <utility>

namespace bimetal::test {
namespace {

std::string Lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

// Reads one request from `buffer` and the socket; false when the peer is gone.
bool ReadRequest(int socket, std::string& buffer, HttpRequest& request) {
  const auto more = [&] {
    char bytes[16384];
    const ssize_t got = ::recv(socket, bytes, sizeof bytes, 0);
    if (got <= 0) return false;
    buffer.append(bytes, static_cast<std::size_t>(got));
    return true;
  };
  std::size_t end = 0;
  while ((end = buffer.find("\r\n\r\n")) == std::string::npos) {
    if (!more()) return false;
  }
  const std::string head = buffer.substr(0, end);
  buffer.erase(0, end + 4);
  const std::size_t first = head.find(' ');
  const std::size_t second = head.find(' ', first + 1);
  request.method = head.substr(0, first);
  request.target = head.substr(first + 1, second - first - 1);
  for (std::size_t at = head.find("\r\n"); at != std::string::npos;) {
    const std::size_t next = head.find("\r\n", at + 2);
    const std::string line = head.substr(at + 2, next - at - 2);
    const std::size_t colon = line.find(':');
    if (colon != std::string::npos) {
      request.headers[Lower(line.substr(0, colon))] =
          line.substr(line.find_first_not_of(' ', colon + 1));
    }
    at = next;
  }
  std::size_t length = 0;
  if (const auto it = request.headers.find("content-length"); it != request.headers.end()) {
    length = std::strtoul(it->second.c_str(), nullptr, 10);
  }
  while (buffer.size() < length) {
    if (!more()) return false;
  }
  request.body = buffer.substr(0, length);
  buffer.erase(0, length);
  return true;
}

}  // namespace

std::string HttpRequest::query(std::string_view key) const {
  const std::size_t begin = target.find('?');
  if (begin == std::string::npos) return "";
  std::string_view rest = std::string_view(target).substr(begin + 1);
  while (!rest.empty()) {
    const std::string_view pair = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(rest.size(), pair.size() + 1));
    const std::size_t equals = pair.find('=');
    if (equals != std::string_view::npos && pair.substr(0, equals) == key) {
      return std::string(pair.substr(equals + 1));
    }
  }
  return "";
}

bool HttpConnection::Write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

void HttpConnection::Respond(int status, std::string_view body, std::string_view content_type,
                             const std::map<std::string, std::string>& headers) {
  std::string text = "HTTP/1.1 " + std::to_string(status) +
                     " Text\r\nContent-Type: " + std::string(content_type) +
                     "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n";
  for (const auto& [name, value] : headers) text += name + ": " + value + "\r\n";
  Write(text + "\r\n" + std::string(body));
}

void HttpConnection::BeginChunked(int status, std::string_view content_type) {
  Write("HTTP/1.1 " + std::to_string(status) + " Text\r\nContent-Type: " +
        std::string(content_type) + "\r\nTransfer-Encoding: chunked\r\n\r\n");
}

bool HttpConnection::Chunk(std::string_view bytes) {
  if (bytes.empty()) return true;
  char size[32];
  std::snprintf(size, sizeof size, "%zx\r\n", bytes.size());
  return Write(std::string(size) + std::string(bytes) + "\r\n");
}

void HttpConnection::EndChunked() { Write("0\r\n\r\n"); }

void HttpConnection::WaitForPeer() {
  char byte;
  while (::recv(socket_, &byte, 1, 0) > 0) {
  }
  dropped_ = true;
}

HttpServer::HttpServer(Handler handler, int port) : handler_(std::move(handler)) {
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  ::setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  socklen_t size = sizeof address;
  if (::bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      ::listen(listener_, 64) != 0 ||
      ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    std::perror("fake HTTP server");
    std::abort();
  }
  port_ = ntohs(address.sin_port);
  acceptor_ = std::thread([this] { Accept(); });
}

HttpServer::~HttpServer() {
  stopping_ = true;
  ::shutdown(listener_, SHUT_RDWR);
  acceptor_.join();
  DropConnections();
  for (std::thread& worker : workers_) worker.join();
  ::close(listener_);
}

std::string HttpServer::url() const { return "http://127.0.0.1:" + std::to_string(port_); }

std::vector<HttpRequest> HttpServer::requests() const {
  const std::lock_guard lock(mutex_);
  return requests_;
}

void HttpServer::DropConnections() {
  const std::lock_guard lock(mutex_);
  for (const int socket : sockets_) ::shutdown(socket, SHUT_RDWR);
}

void HttpServer::Accept() {
  while (!stopping_) {
    const int socket = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (socket < 0) return;
    const int on = 1;
    ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    ++accepted_;
    const std::lock_guard lock(mutex_);
    sockets_.push_back(socket);
    workers_.emplace_back([this, socket] { Serve(socket); });
  }
}

void HttpServer::Serve(int socket) {
  std::string buffer;
  while (!stopping_) {
    HttpRequest request;
    if (!ReadRequest(socket, buffer, request)) break;
    {
      const std::lock_guard lock(mutex_);
      requests_.push_back(request);
    }
    HttpConnection connection(socket);
    handler_(request, connection);
    if (connection.dropped()) break;
  }
  const std::lock_guard lock(mutex_);
  sockets_.remove(socket);
  ::shutdown(socket, SHUT_RDWR);
  ::close(socket);
}

}  // namespace bimetal::test
