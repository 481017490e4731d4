#include "workloads/net/socket.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "workloads/program/stop.h"

namespace bimetal::workloads {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kFirstPause{100};
constexpr milliseconds kLongestPause{2'000};
constexpr milliseconds kConnectTimeout{3'000};  // of one address, so that a dropped SYN is retried

kernels::DeviceError Failed(const std::string& what) {
  return {kernels::DeviceErrorCode::kFailed, what};
}
kernels::DeviceError FailedErrno(const std::string& what, int error) {
  return Failed(what + ": " + std::strerror(error));
}

Done WaitFor(int fd, short events, Deadline deadline) {
  while (!StopRequested()) {
    const auto left = std::chrono::duration_cast<milliseconds>(deadline - Clock::now());
    if (left.count() <= 0) {
      return kernels::DeviceError{kernels::DeviceErrorCode::kTimeout, "no answer in time"};
    }
    pollfd waited{fd, events, 0};
    const int ready = poll(&waited, 1, static_cast<int>(std::min<std::int64_t>(left.count(), 200)));
    if (ready > 0) return kernels::Success();
    if (ready < 0 && errno != EINTR) return FailedErrno("poll", errno);
  }
  return Failed("stopped by a signal");
}

void SetNoDelay(int fd) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

Outcome<Socket> ListenOn(int family, std::uint16_t port) {
  Socket socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.is_open()) return FailedErrno("socket", errno);
  const int on = 1;
  const int off = 0;
  setsockopt(socket.fd(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  int bound = 0;
  if (family == AF_INET6) {
    setsockopt(socket.fd(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
    sockaddr_in6 address{};
    address.sin6_family = AF_INET6;
    address.sin6_port = htons(port);
    bound = bind(socket.fd(), reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  } else {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    bound = bind(socket.fd(), reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  }
  if (bound != 0) return FailedErrno("bind to port " + std::to_string(port), errno);
  if (listen(socket.fd(), SOMAXCONN) != 0) return FailedErrno("listen", errno);
  return socket;
}

Outcome<Socket> ConnectTo(const addrinfo& address, Deadline deadline) {
  Socket socket(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.is_open()) return FailedErrno("socket", errno);
  if (connect(socket.fd(), address.ai_addr, address.ai_addrlen) != 0) {
    if (errno != EINPROGRESS) return FailedErrno("connect", errno);
    KERNELS_TRY(WaitFor(socket.fd(), POLLOUT, std::min(deadline, Clock::now() + kConnectTimeout)));
    int error = 0;
    socklen_t size = sizeof(error);
    getsockopt(socket.fd(), SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) return FailedErrno("connect", error);
  }
  SetNoDelay(socket.fd());
  return socket;
}

Outcome<Socket> ConnectOnce(const std::string& host, std::uint16_t port, Deadline deadline) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (error != 0) return Failed("resolve " + host + ": " + gai_strerror(error));
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, &freeaddrinfo);
  Outcome<Socket> last = Failed("resolve " + host + ": no address");
  for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
    last = ConnectTo(*at, deadline);
    if (last.ok()) return last;
  }
  return last;
}

}  // namespace

Socket::Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

Socket& Socket::operator=(Socket&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

Socket::~Socket() {
  if (fd_ >= 0) close(fd_);
}

Done Socket::Send(std::span<const std::byte> data, Deadline deadline) const {
  while (!data.empty()) {
    const ssize_t sent = send(fd_, data.data(), data.size(), MSG_NOSIGNAL);
    if (sent >= 0) {
      data = data.subspan(static_cast<std::size_t>(sent));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      KERNELS_TRY(WaitFor(fd_, POLLOUT, deadline));
    } else if (errno != EINTR) {
      return FailedErrno("send", errno);
    }
  }
  return kernels::Success();
}

Done Socket::Receive(std::span<std::byte> data, Deadline deadline) const {
  while (!data.empty()) {
    const ssize_t got = recv(fd_, data.data(), data.size(), 0);
    if (got > 0) {
      data = data.subspan(static_cast<std::size_t>(got));
    } else if (got == 0) {
      return Failed("the other side closed the connection");
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      KERNELS_TRY(WaitFor(fd_, POLLIN, deadline));
    } else if (errno != EINTR) {
      return FailedErrno("receive", errno);
    }
  }
  return kernels::Success();
}

Outcome<Socket> Listen(std::uint16_t port) {
  Outcome<Socket> both = ListenOn(AF_INET6, port);
  return both.ok() ? std::move(both) : ListenOn(AF_INET, port);
}

Outcome<std::uint16_t> BoundPort(const Socket& listener) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (getsockname(listener.fd(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return FailedErrno("getsockname", errno);
  }
  // The port stands at the same place for both families.
  return ntohs(reinterpret_cast<const sockaddr_in*>(&address)->sin_port);
}

Outcome<Socket> Accept(const Socket& listener, Deadline deadline) {
  for (;;) {
    Socket socket(accept4(listener.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (socket.is_open()) {
      SetNoDelay(socket.fd());
      return socket;
    }
    if (errno == EAGAIN || errno == EWOULDBLOCK) {
      KERNELS_TRY(WaitFor(listener.fd(), POLLIN, deadline));
    } else if (errno != EINTR && errno != ECONNABORTED) {
      return FailedErrno("accept", errno);
    }
  }
}

Outcome<Socket> ConnectWithRetry(const std::string& host, std::uint16_t port, Deadline deadline) {
  milliseconds pause = kFirstPause;
  for (;;) {
    Outcome<Socket> socket = ConnectOnce(host, port, deadline);
    if (socket.ok()) return socket;
    if (StopRequested()) return Failed("stopped by a signal");
    if (Clock::now() + pause >= deadline) {
      return kernels::DeviceError{kernels::DeviceErrorCode::kTimeout,
                                  "could not reach " + host + ":" + std::to_string(port) +
                                      " in time, last: " + socket.error().message};
    }
    SleepUnlessStopped(pause);
    pause = std::min(pause * 2, kLongestPause);
  }
}

}  // namespace bimetal::workloads
