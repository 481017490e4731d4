#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/queue/order/rounds.h"
#include "tests/bench/queue/trace.h"

namespace bimetal::bench {

// How much the scheduler knows of run times.
enum class Known { kNothing, kExactly };

struct RoundsSetup {
  std::vector<std::int64_t> devices = {36, 36, 36};
  double round = 360;  // seconds
  core::queue::order::Objective objective = core::queue::order::Objective::kMeanFinish;
  Known known = Known::kNothing;
  std::size_t first = 0,
              until = 0;  // the run ends when the jobs [first, until) have finished; 0: all
};

struct RoundsResult {
  std::vector<double> finish;  // by job, seconds; 0 where it has not finished
  double makespan = 0;
  long rounds = 0;
  double decision_ms = 0;  // mean of a round
};

// Gavel's protocol: who runs is decided anew each round; a job that ends within a round leaves its
// devices idle until the next; stopping and starting costs nothing.
RoundsResult SimulateRounds(const std::vector<TraceJob>& jobs, const RoundsSetup& setup);

// No schedule of jobs that come at once is shorter, in seconds: the longest of them alone on its
// best class, and what the work costs at prices of the classes (the dual of the linear program,
// over a grid of prices). Three classes.
double LeastMakespan(const std::vector<TraceJob>& jobs, const std::vector<double>& devices);

}  // namespace bimetal::bench
