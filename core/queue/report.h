#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/queue/cycle.h"

namespace bimetal::core::queue {

// What a queue with all below it has of one class.
struct ClassReport {
  std::string device_class;
  std::int64_t reserved = 0;  // by running jobs, and for jobs that will start
  std::int64_t running = 0;
  std::int64_t borrowed = 0;  // of running, beyond what is guaranteed
  std::int64_t lent = 0;      // guaranteed, not used, and held by others
  std::int64_t usable = 0;    // the most it could have now: its limit, or what is open
};

// How a queue stands, for people: a report, never an input.
struct QueueReport {
  QueueName queue;
  std::int64_t used = 0, guaranteed = 0, borrowed = 0;
  std::vector<ClassReport> classes;  // by name
  std::string problem;               // why it takes no part; empty: it does
  std::string mismatch;              // what is guaranteed beyond what is open; empty: nothing
  std::optional<TimePoint>
      oldest_pending;     // when the oldest of its own jobs that waits was created
  std::string head;       // "namespace/name" of the job that stands first
  bool starving = false;  // that one has waited longer than the starvation bound
  // Thousandths of what its siblings and it have had, weights apart; nullopt: fair shares are off.
  std::optional<int> share_milli;
};

// One for each queue, by name. Pure.
std::vector<QueueReport> ReportQueues(const Snapshot& snapshot);

}  // namespace bimetal::core::queue
