// The queue benches: public traces through core/queue/order. See --help.

#include <charconv>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/bench/queue/benches.h"

namespace {

constexpr std::string_view kUsage =
    "usage: bimetal-bench-queue NAME... [--seeds FIRST..LAST]\n"
    "\n"
    "Replays public traces (shared/traces, or $BIMETAL_SHARED/traces) through the order of "
    "queues.\n"
    "Each bench ends with one line: NAME VALUE UNIT bar BAR. Exits 1 where a figure is over its "
    "bar,\n"
    "2 where it could not run. Figures are means over the seeds (0..2); p99 too is a mean of "
    "theirs.\n"
    "\n"
    "  queue-gavel      mean hours to finish, 36 + 36 + 36 devices of three types, Poisson "
    "arrivals\n"
    "  queue-makespan   hours until 300, 500 and 700 jobs that come at once have all finished\n"
    "  queue-philly-2v  a month of Philly on two vendors: mean hours to finish\n"
    "  queue-promise    heads of line that started later than first promised, exact run times\n"
    "  fair-2v          worst finish-time fairness of a virtual cluster, beside the linear "
    "program's\n";

std::optional<bimetal::bench::Seeds> ParseSeeds(std::string_view text) {
  const auto dots = text.find("..");
  if (dots == std::string_view::npos) return std::nullopt;
  const auto number = [](std::string_view part) -> std::optional<int> {
    int value = 0;
    const auto [end, problem] = std::from_chars(part.data(), part.data() + part.size(), value);
    if (problem != std::errc() || end != part.data() + part.size()) return std::nullopt;
    return value;
  };
  const auto first = number(text.substr(0, dots)), last = number(text.substr(dots + 2));
  if (!first || !last || *first < 0 || *last < *first || *last > 1'000'000) return std::nullopt;
  return bimetal::bench::Seeds{*first, *last};
}

}  // namespace

int main(int argc, char** argv) {
  bimetal::bench::Seeds seeds;
  std::vector<bimetal::bench::Bench> benches;
  bool wrong = argc < 2;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--help" || argument == "-h") {
      std::fputs(kUsage.data(), stdout);
      return 0;
    }
    if (argument == "--seeds") {
      const auto parsed = i + 1 < argc ? ParseSeeds(argv[++i]) : std::nullopt;
      if (parsed) seeds = *parsed;
      wrong |= !parsed;
    } else if (const auto bench = bimetal::bench::FindBench(argument)) {
      benches.push_back(bench);
    } else {
      wrong = true;
    }
  }
  if (wrong || benches.empty()) {
    std::fputs(kUsage.data(), stderr);
    return 2;
  }
  bool good = true;
  for (const auto bench : benches) good = bench(seeds) && good;
  return good ? 0 : 1;
}
