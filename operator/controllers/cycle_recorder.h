#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "core/queue/cycle.h"

namespace bimetal::op {

struct CycleRecorderOptions {
  std::string folder;  // empty: nothing is recorded
  int keep = 20;       // files at most; the oldest go
};

// Writes scheduling cycles into a folder, cycle-NUMBER.json, for `bimetal replay`. The numbers go
// on where those of the files in the folder end. A file has its name only once it is whole. What
// cannot be written is logged once, until one can be written again, and is lost; it stops nobody.
class CycleRecorder {
 public:
  explicit CycleRecorder(CycleRecorderOptions options) : options_(std::move(options)) {}

  void Record(const core::queue::Snapshot& snapshot, const core::queue::Plan& plan);

 private:
  using Files = std::map<std::uint64_t, std::filesystem::path>;  // by number

  Files FilesThere() const;
  void Write(const std::string& text);

  CycleRecorderOptions options_;
  bool failed_ = false;
};

}  // namespace bimetal::op
