#include "workloads/program/progress.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>

namespace bimetal::workloads {

void Progress::Step(std::uint64_t step) {
  if (path_.empty()) return;
  const auto now = std::chrono::duration_cast<std::chrono::milliseconds>(
                       std::chrono::system_clock::now().time_since_epoch())
                       .count();
  const std::string line =
      "{\"time\":" + std::to_string(now) + ",\"step\":" + std::to_string(step) + "}\n";
  // One write a line: the agent may read at any moment and must never see half a number.
  const int fd = open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  const bool written =
      fd >= 0 && write(fd, line.data(), line.size()) == static_cast<ssize_t>(line.size());
  if (!written) {
    std::fprintf(stderr, "progress file %s: %s; no progress is reported\n", path_.c_str(),
                 std::strerror(errno));
    path_.clear();
  }
  if (fd >= 0) close(fd);
}

}  // namespace bimetal::workloads
