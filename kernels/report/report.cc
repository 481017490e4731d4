#include "kernels/report/report.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <thread>
#include <utility>

#include "kernels/json/json.h"

namespace bimetal::kernels {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t kMaxReplyBytes = 64u << 10;

// A file descriptor with one owner.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

DeviceError Failed(const std::string& what) { return {DeviceErrorCode::kFailed, what}; }
DeviceError FailedErrno(const std::string& what) {
  return Failed(what + ": " + std::string(std::strerror(errno)));
}

// Waits until the socket is ready for `events`.
Done WaitFor(int fd, short events, Clock::time_point deadline) {
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    if (left.count() <= 0) return Failed("no answer in time");
    pollfd waited{fd, events, 0};
    const int ready = poll(&waited, 1, static_cast<int>(left.count()));
    if (ready > 0) return Success();
    if (ready < 0 && errno != EINTR) return FailedErrno("poll");
  }
}

Done SendAll(int fd, std::string_view data, Clock::time_point deadline) {
  while (!data.empty()) {
    const ssize_t sent = send(fd, data.data(), data.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) {
      data.remove_prefix(static_cast<std::size_t>(sent));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      KERNELS_TRY(WaitFor(fd, POLLOUT, deadline));
    } else if (errno != EINTR) {
      return FailedErrno("send");
    }
  }
  return Success();
}

Outcome<std::string> ReadLine(int fd, Clock::time_point deadline) {
  std::string line;
  char buffer[4096];
  for (;;) {
    KERNELS_TRY(WaitFor(fd, POLLIN, deadline));
    const ssize_t got = recv(fd, buffer, sizeof(buffer), MSG_DONTWAIT);
    if (got == 0) return Failed("connection closed before the reply");
    if (got < 0) {
      if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) continue;
      return FailedErrno("recv");
    }
    line.append(buffer, static_cast<std::size_t>(got));
    if (const auto end = line.find('\n'); end != std::string::npos) return line.substr(0, end);
    if (line.size() > kMaxReplyBytes) return Failed("the reply has no end");
  }
}

// The reply line, or why there is none yet.
Outcome<std::string> Exchange(const std::string& path, std::string_view data,
                              Clock::time_point deadline) {
  const Descriptor fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (fd.get() < 0) return FailedErrno("socket");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  // A full backlog of a Unix socket answers EAGAIN at once: the next attempt's matter.
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return FailedErrno("connect");
  }
  KERNELS_TRY(SendAll(fd.get(), data, deadline));
  return ReadLine(fd.get(), deadline);
}

// Success for {"ok":true}; the receiver's refusal otherwise.
Done JudgeReply(const std::string& line) {
  std::string error;
  const std::optional<JsonValue> reply = ParseJson(line, &error);
  const JsonValue* ok = reply ? reply->Find("ok") : nullptr;
  if (ok == nullptr || ok->AsBool() == nullptr) return Failed("the reply is no {\"ok\":...} line");
  if (*ok->AsBool()) return Success();
  const JsonValue* reason = reply->Find("error");
  return Failed("refused: " + (reason != nullptr && reason->AsString() != nullptr
                                   ? *reason->AsString()
                                   : std::string("no reason given")));
}

}  // namespace

Outcome<std::string> ParseReportTarget(std::string_view target) {
  constexpr std::string_view kScheme = "unix:";
  if (target.substr(0, kScheme.size()) != kScheme) return Failed("must be unix:/path/of/socket");
  const std::string path(target.substr(kScheme.size()));
  if (path.empty() || path.front() != '/') return Failed("must name an absolute path, unix:/path");
  if (path.size() >= sizeof(sockaddr_un::sun_path)) {
    return Failed("path is longer than " + std::to_string(sizeof(sockaddr_un::sun_path) - 1) +
                  " bytes");
  }
  return path;
}

Done SendReport(const std::string& path, const std::vector<std::string>& lines,
                const ReportOptions& options) {
  std::string data;
  for (const std::string& line : lines) data += line + "\n";
  const Clock::time_point end = Clock::now() + options.timeout;
  auto pause = options.first_pause;
  for (int attempt = 1;; ++attempt) {
    const Outcome<std::string> reply =
        Exchange(path, data, std::min(end, Clock::now() + options.attempt_timeout));
    if (reply.ok()) {
      const Done judged = JudgeReply(reply.value());
      if (judged.ok()) return Success();
      return Failed("report to " + path + ": " + judged.error().message);
    }
    if (Clock::now() + pause >= end) {
      return Failed("report to " + path + " failed, attempts: " + std::to_string(attempt) +
                    ", last: " + reply.error().message);
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, options.longest_pause);
  }
}

}  // namespace bimetal::kernels
