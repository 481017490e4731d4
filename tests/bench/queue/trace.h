#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

// The job lists of the queue benches, from the public traces.
namespace bimetal::bench {

struct TraceJob {
  double arrival = 0;  // seconds
  double work = 0;     // seconds on a class of rate 1
  int devices = 1;
  std::vector<double> rate;  // by class, of the reference; 0: does not fit
  std::string queue;         // virtual cluster
};

// Throughputs of one model at one number of GPUs: K80, P100, V100.
struct Throughput {
  std::string model, batch;
  int devices = 1;
  double k80 = 0, p100 = 0, v100 = 0;
};

// The folder of the traces: $BIMETAL_SHARED/traces, else shared/traces beside the repository.
std::string TraceFolder();

// Both end the program with a message where the file is missing or not what it must be.
std::vector<Throughput> ReadThroughputs(const std::string& folder);
// Jobs of 2017-10-02 .. 2017-10-29 of at least 60 s and at most 32 GPUs, by arrival; class 0 runs
// as traced, class 1 at P100/V100 of a model drawn uniformly from the table with `seed`.
std::vector<TraceJob> ReadPhilly(const std::string& folder, const std::vector<Throughput>& table,
                                 std::uint64_t seed);

// Gavel's generator (simulate, generate_job of its artifact, same random numbers as Python's):
// `count` jobs, classes V100, P100, K80, Poisson arrivals, or all at once where `jobs_per_hour`
// is 0. A job that would run longer than `longest` seconds on its best class is drawn again.
std::vector<TraceJob> GenerateGavel(const std::vector<Throughput>& table, int seed, int count,
                                    double jobs_per_hour, double longest);

}  // namespace bimetal::bench
