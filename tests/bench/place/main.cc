// Replays public traces of pods through the product's choice of nodes. See --help.

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/bench/place/benches.h"

namespace {

using bimetal::place::BenchNames;
using bimetal::place::BenchOptions;

constexpr std::string_view kUsage =
    "usage: bimetal-bench-place [--traces FOLDER] [--seeds A..B] [--arrivals N] [--policy NAME]\n"
    "                           [--random-ties] [--learn] [--lists A,B] NAME...\n"
    "\n"
    "Each bench prints allocation in % by arrived load, mean (deviation) over the seeds, and one\n"
    "last line: NAME VALUE UNIT bar BAR. Exits 1 below a bar, 2 where it could not run. Names:\n"
    "  place-openb place-17 place-spec place-2v place-cpu place-churn place-churn-2v place-ties\n"
    "  place-speed\n"
    "\n"
    "  --traces FOLDER  the trace's files; without it traces/openb in $BIMETAL_SHARED\n"
    "  --seeds A..B     42..51\n"
    "  --arrivals N     of a churn (400000)\n"
    "  --alone          a churn without the rule it is held against\n"
    "  --policy NAME    bimetal, or to check the replay itself: fgd bestfit gpubin firstfit\n"
    "  --random-ties    any of the equally good nodes, instead of the first\n"
    "  --learn          expect what has arrived so far, not the whole list\n"
    "  --lists A,B      of place-17, other lists than its own\n"
    "  --set NAME=N     a weight of the score, to try others: step strand scarce\n";

bool ReadNumber(std::string_view text, auto* out) {
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), *out);
  return problem == std::errc() && end == text.data() + text.size();
}

bool ReadSeeds(std::string_view text, BenchOptions* options) {
  const std::size_t dots = text.find("..");
  if (dots == std::string_view::npos) {
    const bool read = ReadNumber(text, &options->first_seed);
    options->last_seed = options->first_seed;
    return read;
  }
  return ReadNumber(text.substr(0, dots), &options->first_seed) &&
         ReadNumber(text.substr(dots + 2), &options->last_seed) &&
         options->first_seed <= options->last_seed;
}

bool SetWeight(std::string_view text, bimetal::core::placement::ScoreWeights* weights) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos) return false;
  const std::string_view name = text.substr(0, equals), value = text.substr(equals + 1);
  if (name == "step") return ReadNumber(value, &weights->step) && weights->step > 0;
  if (name == "strand") return ReadNumber(value, &weights->strand);
  if (name == "scarce") return ReadNumber(value, &weights->scarce);
  return false;
}

void SplitLists(std::string_view text, std::vector<std::string>* lists) {
  while (true) {
    const std::size_t comma = text.find(',');
    lists->emplace_back(text.substr(0, comma));
    if (comma == std::string_view::npos) return;
    text.remove_prefix(comma + 1);
  }
}

struct Arguments {
  BenchOptions options;
  std::vector<std::string> names;
};

std::optional<Arguments> Parse(int argc, char** argv) {
  Arguments arguments;
  BenchOptions& options = arguments.options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view flag = argv[i];
    if (flag == "--random-ties" || flag == "--learn" || flag == "--alone") {
      (flag == "--learn"   ? options.policy.learn
       : flag == "--alone" ? options.alone
                           : options.policy.random_ties) = true;
      continue;
    }
    if (!flag.starts_with("--")) {
      arguments.names.emplace_back(flag);
      continue;
    }
    if (i + 1 >= argc) return std::nullopt;
    const std::string_view value = argv[++i];
    bool read = true;
    if (flag == "--traces") {
      options.traces = value;
    } else if (flag == "--seeds") {
      read = ReadSeeds(value, &options);
    } else if (flag == "--arrivals") {
      read = ReadNumber(value, &options.arrivals) && options.arrivals > 1;
    } else if (flag == "--policy") {
      options.policy.name = value;
      read = bimetal::place::IsPolicy(options.policy.name);
    } else if (flag == "--lists") {
      SplitLists(value, &options.lists);
    } else if (flag == "--set") {
      read = SetWeight(value, &options.policy.weights);
    } else {
      return std::nullopt;
    }
    if (!read) return std::nullopt;
  }
  const std::vector<std::string> known = BenchNames();
  for (const std::string& name : arguments.names) {
    if (std::find(known.begin(), known.end(), name) == known.end()) return std::nullopt;
  }
  if (arguments.names.empty()) return std::nullopt;
  return arguments;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "--help") {
    std::cout << kUsage;
    return 0;
  }
  auto arguments = Parse(argc, argv);
  if (!arguments) {
    std::cerr << kUsage;
    return 2;
  }
  BenchOptions& options = arguments->options;
  if (options.traces.empty()) {
    // One thread, nobody writes the environment.
    const char* shared = std::getenv("BIMETAL_SHARED");  // NOLINT(concurrency-mt-unsafe)
    options.traces =
        std::filesystem::path(shared == nullptr ? "../shared" : shared) / "traces/openb";
  }
  bool all = true;
  for (const std::string& name : arguments->names) {
    const auto passed = RunBench(name, options);
    if (!passed) {
      std::cerr << name << ": " << passed.error().message << "\n";
      return 2;
    }
    all = all && *passed;
  }
  return all ? 0 : 1;
}
