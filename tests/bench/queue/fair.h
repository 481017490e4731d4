#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/bench/queue/trace.h"

// Finish-time fairness between virtual clusters: rho of a job is its time in the shared cluster
// over its time in a share of its own.
namespace bimetal::bench {

// Time of each job, in seconds, in a fluid share of its virtual cluster's own: one n-th of the
// devices of every class, n virtual clusters; its jobs share it equally device by device, at the
// mean of a job's rates, and no job is faster than on all its devices.
std::vector<double> ShareTimes(const std::vector<TraceJob>& jobs, double devices_in_all);

struct Fairness {
  double worst = 0, mean = 0;  // over virtual clusters
  std::map<std::string, double> by_queue;
};

// rho of a virtual cluster: the mean rho of its jobs.
Fairness FairnessOf(const std::vector<TraceJob>& jobs, const std::vector<double>& finish,
                    const std::vector<double>& share_times);

// A job as the linear program sees it.
struct Fluid {
  std::size_t job = 0;
  double devices = 1, elapsed = 0, left = 0, share_time = 0;  // seconds; left: work
  double rate[2] = {1, 1};
};

// Gavel's policy for finish-time fairness, two classes: the shares X of time on each class that
// minimise the greatest (elapsed + left / rate(X)) / share_time; then, with those at their limit
// held, that of the others. Knows all run times.
class FairProgram {
 public:
  explicit FairProgram(double devices_of_class) : capacity_(devices_of_class) {}

  // Who runs on which class in the next round: whoever is furthest behind its share X.
  std::vector<std::optional<std::size_t>> Round(const std::vector<Fluid>& jobs);

 private:
  std::vector<std::pair<double, double>> Solve(const std::vector<Fluid>& jobs) const;

  double capacity_;
  std::map<std::size_t, std::pair<double, double>> credit_;  // by job
};

}  // namespace bimetal::bench
