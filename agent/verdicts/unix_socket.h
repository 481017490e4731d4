#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "core/base/result.h"
#include "core/base/time.h"

namespace bimetal::agent {

// A file descriptor with one owner.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  ~Descriptor() { Reset(); }
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this != &other) {
      Reset();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  int get() const { return fd_; }

 private:
  void Reset();
  int fd_;
};

// A listening Unix stream socket, mode 0660, in a folder that is made (0750) where it is missing.
// What lies at the path is removed if it is a socket, else kUnavailable.
Result<Descriptor> ListenUnix(const std::string& path, int backlog);

// Sends all of `text`; false where the peer is gone or takes nothing for a second.
bool SendAll(int fd, std::string_view text);

enum class WaitResult { kReady, kTimeout, kHungUp };

// Waits for bytes to read (or the end of the stream).
WaitResult WaitReadable(int fd, Millis timeout);
// Waits until the peer has closed both directions; kTimeout: it has not.
WaitResult WaitHangUp(int fd, Millis timeout);

}  // namespace bimetal::agent
