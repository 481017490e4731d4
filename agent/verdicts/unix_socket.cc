#include "agent/verdicts/unix_socket.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

namespace bimetal::agent {
namespace {

constexpr Millis kSendPatience = Seconds(1);

tl::unexpected<Error> SystemFail(const std::string& what, const std::string& path) {
  return Fail(ErrorCode::kUnavailable, what + " " + path + ": " + std::strerror(errno));
}

Status MakeFolder(const std::string& folder) {
  std::error_code failed;
  if (std::filesystem::is_directory(folder, failed)) return {};
  std::filesystem::create_directories(folder, failed);
  if (failed || chmod(folder.c_str(), 0750) != 0) {
    return Fail(ErrorCode::kUnavailable, "making " + folder + ": it cannot be made");
  }
  return {};
}

WaitResult Poll(int fd, short events, Millis timeout) {
  pollfd waited{fd, events, 0};
  const int ready = poll(&waited, 1, static_cast<int>(std::max<std::int64_t>(timeout.v, 0)));
  if (ready == 0 || (ready < 0 && errno == EINTR)) return WaitResult::kTimeout;
  if (ready < 0) return WaitResult::kHungUp;
  if ((waited.revents & events) != 0) return WaitResult::kReady;
  return WaitResult::kHungUp;
}

}  // namespace

void Descriptor::Reset() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

Result<Descriptor> ListenUnix(const std::string& path, int backlog) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(address.sun_path)) {
    return Fail(ErrorCode::kInvalid, "socket " + path + ": not a path of at most 107 bytes");
  }
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  BIMETAL_TRY(MakeFolder(std::filesystem::path(path).parent_path().string()));
  struct stat old {};
  if (lstat(path.c_str(), &old) == 0) {
    if (!S_ISSOCK(old.st_mode)) {
      return Fail(ErrorCode::kUnavailable, "socket " + path + ": something else lies there");
    }
    unlink(path.c_str());
  }
  Descriptor fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (fd.get() < 0) return SystemFail("making socket", path);
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return SystemFail("binding socket", path);
  }
  if (chmod(path.c_str(), 0660) != 0) return SystemFail("setting the mode of", path);
  if (listen(fd.get(), backlog) != 0) return SystemFail("listening on", path);
  return fd;
}

bool SendAll(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t sent = send(fd, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) {
      text.remove_prefix(static_cast<std::size_t>(sent));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (Poll(fd, POLLOUT, kSendPatience) != WaitResult::kReady) return false;
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

WaitResult WaitReadable(int fd, Millis timeout) { return Poll(fd, POLLIN, timeout); }

WaitResult WaitHangUp(int fd, Millis timeout) { return Poll(fd, 0, timeout); }

}  // namespace bimetal::agent
