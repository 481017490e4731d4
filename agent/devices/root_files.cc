#include "agent/devices/root_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <system_error>
#include <utility>

namespace bimetal::agent {
namespace {

constexpr std::size_t kMaxEntries = 10'000;

class Fd {
 public:
  explicit Fd(int fd) : fd_(fd) {}
  ~Fd() {
    if (fd_ >= 0) close(fd_);
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

std::string ErrnoText(int code) { return std::generic_category().message(code); }

template <class T>
Reading<T> FromErrno(int code, std::string_view path) {
  if (code == ENOENT || code == ENOTDIR) {
    return Reading<T>::Unknown("no such file: " + std::string(path));
  }
  return Reading<T>::Failed("reading " + std::string(path) + ": " + ErrnoText(code));
}

bool IsText(std::string_view text) {
  return std::none_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte < 0x20 && c != '\n' && c != '\t' && c != '\r') || byte == 0x7f;
  });
}

// Reads to the end or to one byte over `limit`; errno code, 0 where all went well.
int ReadUpTo(int fd, std::size_t limit, std::string& out) {
  std::array<char, 8192> buffer;
  while (out.size() <= limit) {
    const ssize_t n = read(fd, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    if (n == 0) return 0;
    out.append(buffer.data(), static_cast<std::size_t>(n));
  }
  return 0;
}

// Reads /dev/kmsg, one record a call, until nothing more is there now.
int ReadRecords(int fd, std::size_t limit, std::string& out) {
  std::array<char, 16384> buffer;
  while (out.size() <= limit) {
    const ssize_t n = read(fd, buffer.data(), buffer.size());
    if (n < 0 && (errno == EINTR || errno == EPIPE)) continue;  // EPIPE: a record was overwritten
    if (n < 0 && errno == EAGAIN) return 0;
    if (n < 0) return errno;
    if (n == 0) return 0;
    out.append(buffer.data(), static_cast<std::size_t>(n));
  }
  return 0;
}

}  // namespace

RootFiles::RootFiles(std::string root) : root_(std::move(root)) {
  while (root_.size() > 1 && root_.back() == '/') root_.pop_back();
}

int RootFiles::Open(std::string_view path, int flags) const {
  while (!path.empty() && path.front() == '/') path.remove_prefix(1);
  const std::string relative(path);
  const Fd root(open(root_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (root.get() < 0) return -1;
  open_how how{};
  how.flags = static_cast<std::uint64_t>(flags | O_CLOEXEC);
  how.resolve = RESOLVE_IN_ROOT;
  long fd = -1;
  for (int attempt = 0; attempt < 8; ++attempt) {
    fd = syscall(SYS_openat2, root.get(), relative.c_str(), &how, sizeof how);
    if (fd >= 0 || errno != EAGAIN)
      break;  // EAGAIN: a rename elsewhere raced with a ".." in a link
  }
  if (fd < 0 && (errno == ENOSYS || errno == EPERM)) {
    // Kernels before 5.6 and sandboxes that forbid the call: plain open, links are then trusted.
    return openat(root.get(), relative.c_str(), flags | O_CLOEXEC);
  }
  return static_cast<int>(fd);
}

Reading<std::string> RootFiles::Bytes(std::string_view path, std::size_t limit) const {
  const Fd fd(Open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY));
  if (fd.get() < 0) return FromErrno<std::string>(errno, path);
  struct stat info {};
  if (fstat(fd.get(), &info) != 0) return FromErrno<std::string>(errno, path);
  if (!S_ISREG(info.st_mode)) {
    return Reading<std::string>::Failed("not a regular file: " + std::string(path));
  }
  std::string bytes;
  if (const int code = ReadUpTo(fd.get(), limit, bytes); code != 0) {
    return FromErrno<std::string>(code, path);
  }
  if (bytes.size() > limit) {
    return Reading<std::string>::Failed("longer than " + std::to_string(limit) +
                                        " bytes: " + std::string(path));
  }
  if (bytes.empty()) return Reading<std::string>::Unknown("empty: " + std::string(path));
  return Reading<std::string>::Of(std::move(bytes));
}

Reading<std::string> RootFiles::Text(std::string_view path, std::size_t limit) const {
  auto bytes = Bytes(path, limit);
  if (!bytes.known()) return bytes;
  if (!IsText(bytes.value)) return Reading<std::string>::Failed("not text: " + std::string(path));
  const std::string_view trimmed = Trim(bytes.value);
  if (trimmed.empty()) return Reading<std::string>::Unknown("empty: " + std::string(path));
  return Reading<std::string>::Of(std::string(trimmed));
}

Reading<std::string> RootFiles::KernelLog(std::string_view path, std::size_t limit) const {
  const Fd fd(Open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY));
  if (fd.get() < 0) return FromErrno<std::string>(errno, path);
  struct stat info {};
  if (fstat(fd.get(), &info) != 0) return FromErrno<std::string>(errno, path);
  const bool is_kmsg = S_ISCHR(info.st_mode) && info.st_rdev == makedev(1, 11);
  if (!is_kmsg && !S_ISREG(info.st_mode)) {
    return Reading<std::string>::Failed("not a kernel log: " + std::string(path));
  }
  if (!is_kmsg && static_cast<std::uint64_t>(info.st_size) > limit) {
    lseek(fd.get(), info.st_size - static_cast<off_t>(limit), SEEK_SET);
  }
  std::string text;
  const int code = is_kmsg ? ReadRecords(fd.get(), limit, text) : ReadUpTo(fd.get(), limit, text);
  if (code != 0) return FromErrno<std::string>(code, path);
  return Reading<std::string>::Of(std::move(text));
}

Reading<std::int64_t> RootFiles::Number(std::string_view path) const {
  const auto text = Text(path);
  if (!text.known()) return SameGap<std::int64_t>(text);
  std::optional<std::int64_t> value;
  if (text.value.starts_with("0x") || text.value.starts_with("0X")) {
    const auto hex = ParseUnsigned(std::string_view(text.value).substr(2), 16);
    if (hex && *hex <= INT64_MAX) value = static_cast<std::int64_t>(*hex);
  } else {
    value = ParseSigned(text.value);
  }
  if (!value) return Reading<std::int64_t>::Failed("not a number: " + std::string(path));
  return Reading<std::int64_t>::Of(*value);
}

Reading<std::vector<std::string>> RootFiles::List(std::string_view folder) const {
  using Names = std::vector<std::string>;
  Fd fd(Open(folder, O_RDONLY | O_DIRECTORY | O_NONBLOCK));
  if (fd.get() < 0) return FromErrno<Names>(errno, folder);
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(fdopendir(fd.get()), closedir);
  if (!dir) return FromErrno<Names>(errno, folder);
  fd.release();
  Names names;
  while (names.size() < kMaxEntries) {
    errno = 0;
    const dirent* entry = readdir(dir.get());
    if (entry == nullptr) {
      if (errno != 0) return FromErrno<Names>(errno, folder);
      break;
    }
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  std::sort(names.begin(), names.end());
  return Reading<Names>::Of(std::move(names));
}

Reading<std::string> RootFiles::LinkName(std::string_view path) const {
  const Fd fd(Open(path, O_PATH | O_NOFOLLOW));
  if (fd.get() < 0) return FromErrno<std::string>(errno, path);
  std::array<char, 4096> target;
  const ssize_t n = readlinkat(fd.get(), "", target.data(), target.size());
  if (n < 0) return Reading<std::string>::Unknown("not a link: " + std::string(path));
  const std::string_view text(target.data(), static_cast<std::size_t>(n));
  return Reading<std::string>::Of(std::string(text.substr(text.rfind('/') + 1)));
}

bool RootFiles::Exists(std::string_view path) const { return Fd(Open(path, O_PATH)).get() >= 0; }

std::optional<std::uint64_t> ParseUnsigned(std::string_view text, int base) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc{} || end != text.data() + text.size() || text.empty()) return {};
  return value;
}

std::optional<std::int64_t> ParseSigned(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || text.empty()) return {};
  return value;
}

std::string_view Trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n\v\f";
  const auto first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

std::vector<std::string_view> Lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const auto end = text.find('\n');
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back(line);
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return lines;
}

}  // namespace bimetal::agent
