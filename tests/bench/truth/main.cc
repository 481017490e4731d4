// The fault campaign: does the house tell the truth about devices? See --help.

#include <stdlib.h>
#include <unistd.h>

#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "agent/devices/probe.h"
#include "tests/bench/truth/campaign.h"

namespace {

using bimetal::truth::Campaign;
using bimetal::truth::FaultClass;
using bimetal::truth::Outcome;

constexpr std::string_view kUsage =
    "usage: bimetal-truth [--seeds N] [--healthy N] [--threads N] [--only TEXT] [--list]\n"
    "\n"
    "Puts every class of fault into simulated nodes, N seeds each (25), and looks whether the\n"
    "kernels, the agent's readers and the judges tell the truth of it; then runs N (1000) sound\n"
    "nodes with the rate model's noise. Prints a table and, as its last line, the share of faults\n"
    "that were caught: \"truth 100 %\". Exits 1 on any fault that was not caught, any false\n"
    "quarantine and any false admission; 2 where it could not run.\n"
    "\n"
    "  --only TEXT  classes whose name has TEXT in it; --list names them\n";

struct Arguments {
  int seeds = 25, healthy = 1000;
  int threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  std::string only;
  bool list = false;
};

std::optional<int> Number(std::string_view text, int low, int high) {
  int value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (value < low || value > high) return std::nullopt;
  return value;
}

// Nothing where the command line is wrong.
std::optional<Arguments> Parse(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string_view flag = argv[i];
    if (flag == "--list") {
      arguments.list = true;
      continue;
    }
    if (i + 1 >= argc) return std::nullopt;
    const std::string_view value = argv[++i];
    std::optional<int> number;
    if (flag == "--only") {
      arguments.only = value;
    } else if (flag == "--seeds" && (number = Number(value, 0, 100'000))) {
      arguments.seeds = *number;
    } else if (flag == "--healthy" && (number = Number(value, 0, 1'000'000))) {
      arguments.healthy = *number;
    } else if (flag == "--threads" && (number = Number(value, 1, 256))) {
      arguments.threads = *number;
    } else {
      return std::nullopt;
    }
  }
  return arguments;
}

struct Row {
  std::string name;
  std::string truth;
  int runs = 0, ok = 0, false_quarantines = 0, false_admissions = 0, inconclusive = 0;
  std::string note;
};

void Count(const Outcome& outcome, std::uint64_t seed, Row& row) {
  ++row.runs;
  row.ok += outcome.ok ? 1 : 0;
  row.false_quarantines += outcome.false_quarantine ? 1 : 0;
  row.false_admissions += outcome.false_admission ? 1 : 0;
  row.inconclusive += outcome.inconclusive ? 1 : 0;
  if (!outcome.ok && row.note.empty()) {
    row.note = "seed " + std::to_string(seed) + ": " + outcome.note;
  }
}

// Runs `count` seeds of every row; `one` says what came of (row, seed).
void RunAll(std::vector<Row>& rows, const std::vector<int>& counts, int threads,
            const std::function<Outcome(std::size_t, std::uint64_t)>& one) {
  std::vector<std::pair<std::size_t, std::uint64_t>> cases;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    for (int seed = 1; seed <= counts[row]; ++seed) {
      cases.emplace_back(row, static_cast<std::uint64_t>(seed));
    }
  }
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::vector<std::jthread> workers;
  for (int i = 0; i < threads; ++i) {
    workers.emplace_back([&] {
      for (std::size_t at = next++; at < cases.size(); at = next++) {
        const Outcome outcome = one(cases[at].first, cases[at].second);
        const std::lock_guard lock(mutex);
        Count(outcome, cases[at].second, rows[cases[at].first]);
      }
    });
  }
}

void Print(const Row& row) {
  std::printf("%-56s %-13s %6d %6d %6d %6d %6d\n", row.name.c_str(), row.truth.c_str(), row.runs,
              row.ok, row.false_quarantines, row.false_admissions, row.inconclusive);
  if (!row.note.empty()) std::printf("    %s\n", row.note.c_str());
}

int RunCampaign(const Arguments& arguments, const std::string& folder) {
  Campaign campaign;
  campaign.folder = folder;
  campaign.probe_program = std::filesystem::read_symlink("/proc/self/exe").string();
  campaign.nvml = BIMETAL_NVML;
  campaign.fleet = bimetal::truth::FleetOf(campaign);
  std::vector<FaultClass> classes;
  std::vector<Row> rows;
  std::vector<int> counts;
  for (FaultClass& fault : bimetal::truth::AllClasses()) {
    if (fault.name.find(arguments.only) == std::string::npos) continue;
    rows.push_back(
        {fault.name, std::string(bimetal::truth::TruthName(fault.truth)), 0, 0, 0, 0, 0, ""});
    counts.push_back(arguments.seeds);
    classes.push_back(std::move(fault));
  }
  rows.push_back({"sound nodes, noisy rates", "sound", 0, 0, 0, 0, 0, ""});
  counts.push_back(arguments.healthy);
  const auto start = std::chrono::steady_clock::now();
  RunAll(rows, counts, arguments.threads, [&](std::size_t row, std::uint64_t seed) {
    return row < classes.size() ? bimetal::truth::RunFault(campaign, classes[row], seed)
                                : bimetal::truth::RunHealthy(campaign, seed);
  });
  std::printf("%-56s %-13s %6s %6s %6s %6s %6s\n", "class", "truth", "runs", "right", "false",
              "false", "not");
  std::printf("%-56s %-13s %6s %6s %6s %6s %6s\n", "", "", "", "", "quar.", "adm.", "proven");
  Row all;
  int faults = 0, caught = 0, fault_classes = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Row& row = rows[i];
    Print(row);
    all.runs += row.runs;
    all.ok += row.ok;
    all.false_quarantines += row.false_quarantines;
    all.false_admissions += row.false_admissions;
    all.inconclusive += row.inconclusive;
    if (row.truth == "sound") continue;
    ++fault_classes;
    faults += row.runs;
    caught += row.ok;
  }
  const auto seconds =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - start)
          .count();
  std::printf(
      "%d classes of faults, %d faults, %d caught; %d sound nodes of %d open; "
      "false quarantines %d, false admissions %d, not proven %d; %lld s\n",
      fault_classes, faults, caught, rows.back().ok, rows.back().runs, all.false_quarantines,
      all.false_admissions, all.inconclusive, static_cast<long long>(seconds));
  // Never rounded up to 100.
  const long long share = faults == 0 ? 0 : 10'000LL * caught / faults;
  if (share % 100 == 0) {
    std::printf("truth %lld %%\n", share / 100);
  } else {
    std::printf("truth %lld.%02lld %%\n", share / 100, share % 100);
  }
  return all.ok == all.runs ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (const auto probe = bimetal::agent::MaybeRunProbe(argc, argv)) return *probe;
  if (argc == 2 && std::string_view(argv[1]) == "--help") {
    std::cout << kUsage;
    return 0;
  }
  const auto arguments = Parse(argc, argv);
  if (!arguments) {
    std::cerr << kUsage;
    return 2;
  }
  if (arguments->list) {
    for (const FaultClass& fault : bimetal::truth::AllClasses()) std::cout << fault.name << "\n";
    return 0;
  }
  // Thousands of small trees: in memory where that is there.
  std::error_code none;
  const std::filesystem::path base = std::filesystem::is_directory("/dev/shm", none)
                                         ? std::filesystem::path("/dev/shm")
                                         : std::filesystem::temp_directory_path();
  std::string folder = (base / "bimetal-truth-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) {
    std::cerr << "cannot make a folder for the machines\n";
    return 2;
  }
  const int result = RunCampaign(*arguments, folder);
  std::filesystem::remove_all(folder);
  std::fflush(stdout);
  // A simulated vendor call may still hold a thread.
  std::_Exit(result);
}
