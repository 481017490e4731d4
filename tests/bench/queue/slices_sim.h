#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "tests/bench/queue/trace.h"

namespace bimetal::bench {

// A decision of a round by somebody who knows all: the class of each job (by index into the list)
// that is there; `left` is what each has left of its work.
using RoundRule = std::function<std::vector<std::optional<std::size_t>>(
    double now, const std::vector<std::size_t>& jobs, const std::vector<double>& left)>;

struct SlicesSetup {
  int nodes = 40;            // of each of the two classes, 8 devices each
  double round = 360;        // seconds
  double restart = 60;       // seconds lost by each start of a job but its first
  RoundRule rule = nullptr;  // in place of AssignRound
};

struct SlicesResult {
  std::vector<double> finish;  // by job, seconds
  long restarts = 0;
  double decision_ms = 0;  // mean of a round
};

// Time slices on nodes: who runs is decided anew each round by core/queue/order/rounds.h, which
// knows what a job has done and nothing of what it will do; a job that comes between two rounds
// starts where devices are free.
SlicesResult SimulateSlices(const std::vector<TraceJob>& jobs, const SlicesSetup& setup);

}  // namespace bimetal::bench
