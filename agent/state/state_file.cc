#include "agent/state/state_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include <google/protobuf/util/json_util.h>

namespace bimetal::agent {
namespace {

// NodeState's bound on runs, written as JSON: names of fields, and six bytes for some of one.
constexpr std::size_t kMaxFile = 64UL * 1024UL * 1024UL;

// A file descriptor that is closed at the end.
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

tl::unexpected<Error> SystemFail(const std::string& what, const std::string& path) {
  const ErrorCode code = errno == ENOENT ? ErrorCode::kNotFound : ErrorCode::kUnavailable;
  return Fail(code, what + " " + path + ": " + std::strerror(errno));
}

Status WriteWhole(int fd, std::string_view text, const std::string& path) {
  while (!text.empty()) {
    const ssize_t n = write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return SystemFail("writing", path);
    text.remove_prefix(static_cast<std::size_t>(n));
  }
  return {};
}

}  // namespace

StateFile::StateFile(std::string folder)
    : folder_(std::move(folder)), path_(folder_ + "/agent.json") {}

Result<SavedState> StateFile::Load() const {
  const Descriptor file(open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) return SystemFail("opening", path_);
  struct stat info {};
  if (fstat(file.get(), &info) != 0) return SystemFail("reading", path_);
  if (!S_ISREG(info.st_mode) || static_cast<std::size_t>(info.st_size) > kMaxFile) {
    return Fail(ErrorCode::kData, path_ + ": no regular file of at most 64 MiB");
  }
  std::string text(static_cast<std::size_t>(info.st_size), '\0');
  std::size_t have = 0;
  while (have < text.size()) {
    const ssize_t n = read(file.get(), text.data() + have, text.size() - have);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return SystemFail("reading", path_);
    if (n == 0) break;
    have += static_cast<std::size_t>(n);
  }
  text.resize(have);
  SavedState state;
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;
  const auto parsed = google::protobuf::util::JsonStringToMessage(text, &state, options);
  if (!parsed.ok() || state.boot_id().empty()) {
    return Fail(ErrorCode::kData, path_ + ": not a state that an agent wrote");
  }
  return state;
}

void StateFile::SetAside() const {
  std::error_code ignored;  // where it cannot be moved, Save replaces it
  std::filesystem::rename(path_, path_ + ".bad", ignored);
}

Status StateFile::Save(const SavedState& state) const {
  std::string text;
  if (!google::protobuf::util::MessageToJsonString(state, &text).ok()) {
    return Fail(ErrorCode::kInternal, "state cannot be written as JSON");
  }
  std::error_code failed;
  std::filesystem::create_directories(folder_, failed);
  const std::string fresh = path_ + ".new";
  {
    const Descriptor file(open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    if (file.get() < 0) return SystemFail("opening", fresh);
    BIMETAL_TRY(WriteWhole(file.get(), text, fresh));
    if (fsync(file.get()) != 0) return SystemFail("flushing", fresh);
  }
  if (rename(fresh.c_str(), path_.c_str()) != 0) return SystemFail("renaming to", path_);
  const Descriptor folder(open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() < 0 || fsync(folder.get()) != 0) return SystemFail("flushing", folder_);
  return {};
}

}  // namespace bimetal::agent
