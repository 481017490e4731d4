// The operator's loop, with the controllers and the scheduling cycle that run in a cluster, in
// virtual time against a stand-in for the API server: dev/bench p1 p2 p3 p4 p13. See --help.
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>

#include "core/base/log.h"
#include "tests/bench/loop/benches.h"

namespace {

constexpr const char* kUsage =
    "usage: bimetal-bench-loop p1 | p2 | p3 | p4 | p13 [--part N]\n"
    "\n"
    "  p1   15,000 jobs of three classes in 30 queues: CPU seconds of the operator's loop\n"
    "  p2   50,000 jobs in 1,000 queues: the same\n"
    "  p3   15,000 jobs of 2, 4 and 8 pods on 640 nodes in 10 racks: the same\n"
    "  p4   a queue 536 deep on 1,300 nodes: seconds to drain it\n"
    "  p13  53 gangs on 32 nodes of two vendors: average occupancy, beside the stock scheduler's\n"
    "\n"
    "--part N takes one in N of the jobs, for a short look; the bars hold for all of them.\n"
    "The API server is a model: one request after the other, each as long as it was measured to\n"
    "take. The CPU time of the loop passes in virtual time, too.\n";

}  // namespace

int main(int argc, char** argv) {
  using bimetal::bench::P1, bimetal::bench::P13, bimetal::bench::P2, bimetal::bench::P3,
      bimetal::bench::P4;
  bimetal::SetLogLevel(bimetal::LogLevel::kError);
  const std::map<std::string, int (*)(int)> benches = {
      {"p1", P1}, {"p2", P2}, {"p3", P3}, {"p4", P4}, {"p13", P13}};
  const std::string name = argc > 1 ? argv[1] : "";
  if (name == "--help" || name == "-h") return std::fputs(kUsage, stdout), 0;
  const int part = argc == 4 && std::string(argv[2]) == "--part" ? std::atoi(argv[3]) : 1;
  const auto bench = benches.find(name);
  if (bench == benches.end() || part < 1 || (argc != 2 && argc != 4)) {
    return std::fputs(kUsage, stderr), 2;
  }
  setvbuf(stdout, nullptr, _IOLBF, 0);
  return bench->second(part);
}
