#pragma once

#include <cstddef>
#include <vector>

#include "tests/bench/queue/trace.h"

namespace bimetal::bench {

struct LineSetup {
  int nodes = 40;              // of each of the two classes, 8 devices each
  bool exact = false;          // run times are known; else predicted from jobs that have ended
  bool earliest_start = true;  // selection EarliestStart by the jobs' rates; false: InOrder
};

struct LineResult {
  std::vector<double> start, finish;  // by job, seconds
  int promises = 0;                   // heads of line that had to wait
  int late = 0;                       // heads that started later than first promised
};

// A queue of order Backfill, without preemption: the oldest job that does not fit is promised a
// start (core/queue/order/backfill.h), others overtake it in order of age where they leave the
// promise whole; a job runs to its end where it starts.
LineResult SimulateLine(const std::vector<TraceJob>& jobs, const LineSetup& setup);

}  // namespace bimetal::bench
