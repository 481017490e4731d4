#pragma once

#include <cstdint>
#include <string>

namespace bimetal::workloads {

// Appends cumulative {"time":ms,"step":n} lines for the agent. One thread at a time.
class Progress {
 public:
  // `path` empty: nothing is written. A file that cannot be written is said once on stderr and then
  // left alone: progress is a report, not the work.
  explicit Progress(std::string path) : path_(std::move(path)) {}
  void Step(std::uint64_t step);

 private:
  std::string path_;
};

}  // namespace bimetal::workloads
