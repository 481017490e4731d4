#include "agent/verdicts/verdict_server.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <list>
#include <optional>
#include <thread>
#include <utility>

#include "agent/verdicts/unix_socket.h"
#include "core/base/log.h"

namespace bimetal::agent {
namespace {

constexpr int kBacklog = 16;
constexpr int kHousekeepingMs = 1000;
constexpr Millis kStep{100};  // how soon a connection sees that we stop or that an order came

std::string ErrorLine(const std::string& error) {
  std::string line = R"({"ok":false,"error":")";
  AppendJsonEscaped(line, error);
  return line + "\"}\n";
}

// Takes lines out of a stream of bytes.
class LineBuffer {
 public:
  void Append(const char* data, std::size_t size) { text_.append(data, size); }
  // The next whole line; nothing where none is whole yet.
  std::optional<std::string> Next() {
    const std::size_t end = text_.find('\n', searched_);
    if (end == std::string::npos) {
      searched_ = text_.size();
      return std::nullopt;
    }
    std::string line = text_.substr(0, end);
    text_.erase(0, end + 1);
    searched_ = 0;
    return line;
  }
  bool TooLong() const { return text_.size() > RunReader::kMaxLine; }

 private:
  std::string text_;
  std::size_t searched_ = 0;
};

}  // namespace

class VerdictServer::Impl {
 public:
  Impl(VerdictServerOptions options, const Clock& clock, VerdictHooks hooks, Descriptor listening)
      : options_(std::move(options)),
        clock_(clock),
        hooks_(std::move(hooks)),
        listening_(std::move(listening)),
        wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        inode_(InodeOfSocket()),
        thread_([this] { Run(); }) {}

  ~Impl() {
    stopping_ = true;
    static_cast<void>(eventfd_write(wake_.get(), 1));
    thread_.join();
    for (auto& connection : connections_) connection.thread.join();
    if (InodeOfSocket() == inode_) unlink(options_.path.c_str());
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

 private:
  struct Connection {
    std::atomic<bool> ended{false};
    std::thread thread;
  };

  std::optional<ino_t> InodeOfSocket() const {
    struct stat info {};
    if (lstat(options_.path.c_str(), &info) != 0) return std::nullopt;
    return info.st_ino;
  }

  void Run() {
    while (!stopping_) {
      std::array<pollfd, 2> waited{{{listening_.get(), POLLIN, 0}, {wake_.get(), POLLIN, 0}}};
      poll(waited.data(), waited.size(), kHousekeepingMs);
      if (stopping_) return;
      Reap();
      if (InodeOfSocket() != inode_) ListenAgain();
      if ((waited[0].revents & POLLIN) != 0) Accept();
    }
  }

  // Somebody removed or replaced the socket.
  void ListenAgain() {
    auto fresh = ListenUnix(options_.path, kBacklog);
    if (!fresh) {
      Log(LogLevel::kError, "verdict socket lost", {{"reason", fresh.error().message}});
      return;
    }
    listening_ = std::move(*fresh);
    inode_ = InodeOfSocket();
    Log(LogLevel::kWarning, "verdict socket made anew", {{"path", options_.path}});
  }

  void Reap() {
    for (auto at = connections_.begin(); at != connections_.end();) {
      if (!at->ended) {
        ++at;
        continue;
      }
      at->thread.join();
      at = connections_.erase(at);
    }
  }

  void Accept() {
    Descriptor fd(accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (fd.get() < 0) return;
    if (connections_.size() >= static_cast<std::size_t>(options_.max_connections)) {
      SendAll(fd.get(), ErrorLine("too many connections, try again"));
      return;
    }
    Connection& connection = connections_.emplace_back();
    connection.thread = std::thread([this, &connection, fd = std::move(fd)] {
      Serve(fd.get());
      connection.ended = true;
    });
  }

  void Serve(int fd) {
    const TimePoint began = clock_.Now();
    RunReader reader;
    Status result = ReadRun(fd, reader);
    if (result) result = Deliver(fd, reader.received(), began);
    if (result) {
      Log(LogLevel::kInfo, "validation run taken", {{"run", reader.received().run.run()}});
      SendAll(fd, "{\"ok\":true}\n");
      return;
    }
    Log(LogLevel::kWarning, "validation run refused", {{"reason", result.error().message}});
    SendAll(fd, ErrorLine(result.error().message));
  }

  // Reads to the end of the `done` line.
  Status ReadRun(int fd, RunReader& reader) {
    const Millis deadline = clock_.Monotonic() + options_.deadline;
    LineBuffer lines;
    std::array<char, 16384> buffer{};
    while (!reader.done()) {
      if (stopping_) return Fail(ErrorCode::kUnavailable, "the agent stops, try again");
      const Millis left = deadline - clock_.Monotonic();
      if (left.v <= 0) return Fail(ErrorCode::kDeadline, "the lines did not come in time");
      if (WaitReadable(fd, std::min(left, kStep)) == WaitResult::kTimeout) continue;
      const ssize_t n = recv(fd, buffer.data(), buffer.size(), MSG_DONTWAIT);
      if (n < 0 && (errno == EAGAIN || errno == EINTR)) continue;
      if (n <= 0) return Fail(ErrorCode::kInvalid, "the lines end without a line of type done");
      lines.Append(buffer.data(), static_cast<std::size_t>(n));
      while (auto line = lines.Next()) {
        if (!line->empty()) BIMETAL_TRY(reader.AddLine(*line));
      }
      if (lines.TooLong()) return Fail(ErrorCode::kInvalid, "a line is longer than 65536 bytes");
    }
    return {};
  }

  // Waits for the order that names the run, then hands the run over.
  Status Deliver(int fd, const ReceivedRun& received, TimePoint began) {
    const std::string& run = received.run.run();
    const TimePoint ended = clock_.Now();
    const Millis deadline = clock_.Monotonic() + options_.order_wait;
    if (!hooks_.is_expected(run)) hooks_.want_orders();
    while (!hooks_.is_expected(run)) {
      if (stopping_) return Fail(ErrorCode::kUnavailable, "the agent stops, try again");
      if (clock_.Monotonic() >= deadline) {
        return Fail(ErrorCode::kNotFound, "unknown run " + run + ": the operator ordered none");
      }
      if (WaitHangUp(fd, kStep) == WaitResult::kHungUp) {
        return Fail(ErrorCode::kUnavailable, "the client left before run " + run + " was ordered");
      }
    }
    return hooks_.accept(received, began, ended);
  }

  const VerdictServerOptions options_;
  const Clock& clock_;
  const VerdictHooks hooks_;
  std::atomic<bool> stopping_{false};
  // Of thread_ alone.
  Descriptor listening_;
  Descriptor wake_;
  std::optional<ino_t> inode_;
  std::list<Connection> connections_;
  std::thread thread_;  // last, so that it starts when all else is there
};

Result<std::unique_ptr<VerdictServer>> VerdictServer::Start(VerdictServerOptions options,
                                                            const Clock& clock,
                                                            VerdictHooks hooks) {
  BIMETAL_TRY_ASSIGN(Descriptor listening, ListenUnix(options.path, kBacklog));
  return std::unique_ptr<VerdictServer>(new VerdictServer(
      std::make_unique<Impl>(std::move(options), clock, std::move(hooks), std::move(listening))));
}

VerdictServer::VerdictServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
VerdictServer::~VerdictServer() = default;

}  // namespace bimetal::agent
