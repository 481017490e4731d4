#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "api/agent.pb.h"
#include "core/base/result.h"

namespace bimetal::agent {

// A complete run as a validation program told it.
struct ReceivedRun {
  api::ValidationRun run;   // without fingerprint and times
  std::string fingerprint;  // that the program says it was started for; may be empty
};

// Puts the lines of a validation program together to a run: one `run` line, `verdict` lines, one
// `done` line whose counts agree. Pure. One owner thread.
class RunReader {
 public:
  static constexpr std::size_t kMaxLine = 64UL * 1024UL;
  static constexpr int kMaxLines = 4096;
  // Of a whole run, as it goes to the operator: 64 devices with every check and the longest
  // evidence, and a quarter of the operator's 4 MiB a message left for the devices themselves.
  static constexpr std::size_t kMaxRunBytes = 3UL * 1024UL * 1024UL;

  // Takes one line, without its end. Error kInvalid names the line's number and what is wrong; the
  // reader is of no use afterwards.
  Status AddLine(std::string_view line);

  bool started() const { return started_; }
  bool done() const { return done_; }
  // What came so far; complete where done().
  const ReceivedRun& received() const { return received_; }

 private:
  Status AddRun(const api::Line& line);
  Status AddVerdict(const api::Line& line);
  Status AddDone(const api::Line& line);

  ReceivedRun received_;
  std::size_t bytes_ = 0;
  int lines_ = 0;
  bool started_ = false;
  bool done_ = false;
};

}  // namespace bimetal::agent
