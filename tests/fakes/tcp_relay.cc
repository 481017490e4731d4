#include "tests/fakes/tcp_relay.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace bimetal::test {

TcpRelay::TcpRelay(const std::string& host, int port) : host_(host), target_port_(port) {
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (::bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      ::listen(listener_, 64) != 0 ||
      ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    std::perror("TCP relay");
    std::abort();
  }
  port_ = ntohs(address.sin_port);
  acceptor_ = std::thread([this] { Accept(); });
}

TcpRelay::~TcpRelay() {
  stopping_ = true;
  ::shutdown(listener_, SHUT_RDWR);
  acceptor_.join();
  DropConnections();
  for (std::thread& worker : workers_) worker.join();
  for (const int socket : sockets_) ::close(socket);
  ::close(listener_);
}

void TcpRelay::DropConnections() {
  // Sockets are closed at the end only, so that no number here can mean another one meanwhile.
  const std::lock_guard lock(mutex_);
  for (const int socket : sockets_) ::shutdown(socket, SHUT_RDWR);
}

void TcpRelay::Accept() {
  while (!stopping_) {
    const int client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (client < 0) return;
    const int server = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(target_port_));
    ::inet_pton(AF_INET, host_.c_str(), &address.sin_addr);
    if (::connect(server, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
      ::close(server);
      ::close(client);
      continue;
    }
    const std::lock_guard lock(mutex_);
    sockets_.push_back(client);
    sockets_.push_back(server);
    workers_.emplace_back([this, client, server] { Pump(client, server); });
    workers_.emplace_back([this, client, server] { Pump(server, client); });
  }
}

void TcpRelay::Pump(int from, int to) {
  char bytes[16384];
  while (true) {
    const ssize_t got = ::recv(from, bytes, sizeof bytes, 0);
    if (got <= 0) break;
    for (ssize_t sent = 0; sent < got;) {
      const ssize_t now =
          ::send(to, bytes + sent, static_cast<std::size_t>(got - sent), MSG_NOSIGNAL);
      if (now <= 0) return;
      sent += now;
    }
  }
  ::shutdown(to, SHUT_RDWR);
}

}  // namespace bimetal::test
