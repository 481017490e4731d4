#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "kernels/device/outcome.h"

namespace bimetal::workloads {

using Deadline = std::chrono::steady_clock::time_point;
using kernels::Done;
using kernels::Outcome;

// One TCP socket. Every wait ends at its deadline, or early once a stop is requested.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int fd) : fd_(fd) {}
  Socket(Socket&& other) noexcept;
  Socket& operator=(Socket&& other) noexcept;
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  ~Socket();

  bool is_open() const { return fd_ >= 0; }
  int fd() const { return fd_; }

  Done Send(std::span<const std::byte> data, Deadline deadline) const;
  // Fills `data`; a connection that ends before is an error.
  Done Receive(std::span<std::byte> data, Deadline deadline) const;

 private:
  int fd_ = -1;
};

// Listens on every address of this machine. Port 0: one is chosen (BoundPort tells).
Outcome<Socket> Listen(std::uint16_t port);
Outcome<std::uint16_t> BoundPort(const Socket& listener);
Outcome<Socket> Accept(const Socket& listener, Deadline deadline);

// Resolves and connects, again and again with growing pauses until the deadline: the name of a
// gang's first pod resolves only once that pod has an address.
Outcome<Socket> ConnectWithRetry(const std::string& host, std::uint16_t port, Deadline deadline);

}  // namespace bimetal::workloads
