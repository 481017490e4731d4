#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/checks/check.h"
#include "kernels/json/json.h"
#include "kernels/run/run.h"

namespace bimetal::kernels {

// Where the run's threads put what they find. Once closed it takes nothing more, so that a thread
// that comes back late from a vendor call cannot add to a finished run. Thread-safe.
class Board {
 public:
  Board(const RunOptions& options, std::function<void(const std::string&)> on_line);

  // A verdict that is to be given: of a device (empty: of the node), by a check.
  using Owed = std::vector<std::pair<std::string, const Check*>>;

  // The first thing said: which back end and how many devices take part, and what will be said.
  void Announce(std::string_view backend, std::string_view vendor, std::size_t devices,
                const Owed& owed);
  // A check begins on a device.
  void Begin(const std::string& device, const Check& check);
  void Post(const std::string& device, const Check& check, const CheckResult& result,
            std::chrono::milliseconds duration);
  // Why a device owes verdicts; `step` is the check that last began on it, empty: none. Called with
  // the Board locked: it must not come back to it.
  using Reason = std::function<std::string(const std::string& device, const std::string& step)>;
  // Gives every verdict that is still owed as Inconclusive with the reason for its device.
  void Forgo(const Reason& reason);
  void Forgo(const std::string& reason);
  // As Forgo, of one device.
  void ForgoDevice(const std::string& device, const std::string& reason);
  // Takes one line or event that a Board of another process said, and says it if it is a line. The
  // other's `done` is dropped: this Board says its own.
  void Relay(const std::string& line);
  // Whether the line is the last of a run.
  static bool IsDone(const std::string& line);
  // The check that last began on a device (by Begin, or relayed); empty: none.
  std::string LastStep(const std::string& device);
  // Nothing more will come: every thread has returned.
  void Finish();

  // False where the deadline passed before Finish().
  bool WaitUntilFinished(Deadline deadline);
  // Says `done` and closes.
  RunSummary Close();

 private:
  void PostLocked(const std::string& device, const Check& check, const CheckResult& result,
                  std::chrono::milliseconds duration);
  void AnnounceLocked(std::string_view backend, std::string_view vendor, std::size_t devices,
                      const Owed& owed);
  void ForgoLocked(const std::optional<std::string>& device, const Reason& reason);
  void Count(std::string_view verdict);
  void RelayEvent(const JsonValue& event);
  void Say(const std::string& line);
  void Tell(const JsonLine& event);

  const RunOptions options_;
  const std::function<void(const std::string&)> on_line_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool announced_ = false;
  bool finished_ = false;
  bool closed_ = false;
  std::string backend_ = "none";
  std::set<std::pair<std::string, std::string>> owed_;  // device, check
  std::map<std::string, std::string> steps_;            // device -> check
  RunSummary summary_;
};

}  // namespace bimetal::kernels
