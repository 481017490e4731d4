#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/checks/check.h"
#include "kernels/run/run.h"

namespace bimetal::kernels {

// Where the run's threads put what they find. Once closed it takes nothing more, so that a thread
// that comes back late from a vendor call cannot add to a finished run. Thread-safe.
class Board {
 public:
  Board(const RunOptions& options, std::function<void(const std::string&)> on_line);

  // The first thing said: which back end and devices take part. `ids` are the devices that owe one
  // verdict a check; without any, one nameless device owes them.
  void Announce(std::string_view backend, std::string_view vendor, std::vector<std::string> ids);
  void Post(const std::string& device, const Check& check, const CheckResult& result,
            std::chrono::milliseconds duration);
  // Gives every verdict that is still owed as Inconclusive with `reason`.
  void Forgo(const std::string& reason);
  // Nothing more will come: every thread has returned.
  void Finish();

  // False where the deadline passed before Finish().
  bool WaitUntilFinished(Deadline deadline);
  // Says `done` and closes.
  RunSummary Close();

 private:
  void PostLocked(const std::string& device, const Check& check, const CheckResult& result,
                  std::chrono::milliseconds duration);
  void AnnounceLocked(std::string_view backend, std::string_view vendor,
                      std::vector<std::string> ids);
  void Say(const std::string& line);

  const RunOptions options_;
  const std::function<void(const std::string&)> on_line_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool announced_ = false;
  bool finished_ = false;
  bool closed_ = false;
  std::string backend_ = "none";
  std::set<std::pair<std::string, std::string>> owed_;  // device, check
  RunSummary summary_;
};

}  // namespace bimetal::kernels
