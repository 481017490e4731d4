#include "kernels/program/flags.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <string_view>

namespace bimetal::kernels {
namespace {

constexpr std::uint64_t kMaxSeed = (1ull << 53) - 1;  // exact in every JSON reader
constexpr std::size_t kMaxText = 4096;

using Problem = std::optional<std::string>;

std::vector<std::string> SplitCommas(std::string_view text) {
  std::vector<std::string> parts;
  for (;;) {
    const std::size_t comma = text.find(',');
    parts.emplace_back(text.substr(0, comma));
    if (comma == std::string_view::npos) return parts;
    text.remove_prefix(comma + 1);
  }
}

std::string KnownChecks() {
  std::string known;
  for (const Check& check : AllChecks()) {
    known += (known.empty() ? "" : ", ") + std::string(check.key);
  }
  return known;
}

Problem SetNumber(const std::string& text, std::uint64_t low, std::uint64_t high,
                  std::uint64_t* value) {
  const auto end = std::from_chars(text.data(), text.data() + text.size(), *value);
  if (!text.empty() && end.ec == std::errc() && end.ptr == text.data() + text.size() &&
      *value >= low && *value <= high) {
    return std::nullopt;
  }
  return "must be a whole number from " + std::to_string(low) + " to " + std::to_string(high);
}

Problem SetSeconds(const std::string& text, std::chrono::milliseconds* value) {
  std::uint64_t seconds = 0;
  const Problem problem = SetNumber(text, 1, 3600, &seconds);
  if (!problem) *value = std::chrono::seconds(seconds);
  return problem;
}

Problem SetBackend(const std::string& text, RunOptions* run) {
  run->backend.reset();
  if (text == "auto") return std::nullopt;
  for (const BackendKind kind : {BackendKind::kCuda, BackendKind::kHip, BackendKind::kHost}) {
    if (text == BackendName(kind)) run->backend = kind;
  }
  if (!run->backend) return "must be auto, cuda, hip or host";
  return std::nullopt;
}

Problem SetLevel(const std::string& text, RunOptions* run) {
  if (text != "L0" && text != "L1" && text != "L2") return "must be L0, L1 or L2";
  run->level = text[1] - '0';
  return std::nullopt;
}

// Of a whole run, by level.
constexpr std::array<std::chrono::seconds, 3> kBudgets = {
    std::chrono::seconds(5), std::chrono::seconds(60), std::chrono::seconds(600)};

// What the command line left open.
void Complete(ProgramOptions* options, bool timeout_given) {
  RunOptions& run = options->run;
  if (!timeout_given) run.timeout = kBudgets[static_cast<std::size_t>(run.level)];
  if (run.checks.empty()) {
    for (const Check& check : AllChecks()) {
      if (check.level <= run.level) run.checks.push_back(&check);
    }
  }
}

Problem SetChecks(const std::string& text, RunOptions* run) {
  run->checks.clear();
  for (const std::string& key : SplitCommas(text)) {
    const Check* check = FindCheck(key);
    if (check == nullptr) return "knows no check \"" + key + "\"; there are " + KnownChecks();
    if (std::find(run->checks.begin(), run->checks.end(), check) == run->checks.end()) {
      run->checks.push_back(check);
    }
  }
  return std::nullopt;
}

Problem SetRunId(const std::string& text, RunOptions* run) {
  const bool sound =
      !text.empty() && text.size() <= 128 && std::all_of(text.begin(), text.end(), [](char c) {
        return std::isalnum(static_cast<unsigned char>(c)) ||
               std::string_view("._:-").find(c) != std::string_view::npos;
      });
  if (!sound) return "must be 1 to 128 letters, digits, '.', '_', ':' or '-'";
  run->run_id = text;
  return std::nullopt;
}

Problem SetText(const std::string& text, std::string* value) {
  if (text.empty() || text.size() > kMaxText) return "must be 1 to 4096 bytes";
  *value = text;
  return std::nullopt;
}

using Setter = std::function<Problem(const std::string&, ProgramOptions*)>;

const std::map<std::string, Setter>& Setters() {
  using Options = ProgramOptions;
  static const std::map<std::string, Setter> kSetters = {
      {"--backend", [](const auto& v, Options* o) { return SetBackend(v, &o->run); }},
      {"--level", [](const auto& v, Options* o) { return SetLevel(v, &o->run); }},
      {"--checks", [](const auto& v, Options* o) { return SetChecks(v, &o->run); }},
      {"--run-id", [](const auto& v, Options* o) { return SetRunId(v, &o->run); }},
      {"--fingerprint", [](const auto& v, Options* o) { return SetText(v, &o->run.fingerprint); }},
      {"--machine", [](const auto& v, Options* o) { return SetText(v, &o->run.machine); }},
      {"--seed", [](const auto& v, Options* o) { return SetNumber(v, 0, kMaxSeed, &o->run.seed); }},
      {"--memory-bytes",
       [](const auto& v, Options* o) {
         return SetNumber(v, 64u << 10, 1ull << 50, &o->run.memory_bytes);
       }},
      {"--vendor",
       [](const auto& v, Options* o) -> Problem {
         if (v != "nvidia" && v != "amd") return "must be nvidia or amd";
         o->run.vendor = v;
         return std::nullopt;
       }},
      {"--device",
       [](const auto& v, Options* o) -> Problem {
         o->run.devices.emplace_back();
         return SetText(v, &o->run.devices.back());
       }},
      {"--timeout", [](const auto& v, Options* o) { return SetSeconds(v, &o->run.timeout); }},
      {"--stress", [](const auto& v, Options* o) { return SetSeconds(v, &o->run.stress); }},
      {"--expect-devices",
       [](const auto& v, Options* o) {
         return SetNumber(v, 1, 1024, &o->run.expect_devices.emplace());
       }},
      {"--report-timeout",
       [](const auto& v, Options* o) { return SetSeconds(v, &o->report.timeout); }},
      {"--report",
       [](const auto& v, Options* o) -> Problem {
         const Outcome<std::string> path = ParseReportTarget(v);
         if (!path.ok()) return path.error().message;
         o->report_path = path.value();
         return std::nullopt;
       }},
  };
  return kSetters;
}

std::string RandomRunId() {
  std::random_device random;
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "local-%08x%08x", random(), random());
  return text.data();
}

Problem CheckTogether(const ProgramOptions& options) {
  const RunOptions& run = options.run;
  const bool gpu = run.backend == BackendKind::kCuda || run.backend == BackendKind::kHip;
  if (!run.machine.empty() && gpu) {
    return "--machine describes simulated devices: use it with --backend host or auto";
  }
  if (run.backend == BackendKind::kCuda && run.vendor == "amd") {
    return "--backend cuda cannot run devices of --vendor amd: drop one of the two";
  }
  if (run.backend == BackendKind::kHip && run.vendor == "nvidia") {
    return "--backend hip cannot run devices of --vendor nvidia: drop one of the two";
  }
  return std::nullopt;
}

}  // namespace

std::variant<ProgramOptions, UsageError> ParseFlags(const std::vector<std::string>& arguments) {
  ProgramOptions options;
  bool timeout_given = false;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    std::string flag = arguments[i];
    if (flag == "--help" || flag == "-h") options.action = ProgramOptions::Action::kHelp;
    if (flag == "--version") options.action = ProgramOptions::Action::kVersion;
    if (flag == "--list") options.action = ProgramOptions::Action::kList;
    if (options.action != ProgramOptions::Action::kRun) return options;
    if (flag == kWorkerFlag) {
      options.worker = true;
      continue;
    }
    std::optional<std::string> value;
    if (const auto equals = flag.find('='); equals != std::string::npos) {
      value = flag.substr(equals + 1);
      flag.resize(equals);
    }
    timeout_given = timeout_given || flag == "--timeout";
    const auto setter = Setters().find(flag);
    if (setter == Setters().end()) {
      return UsageError{(flag.starts_with("-") ? "unknown flag " : "unexpected argument ") + flag +
                        ": see --help for the flags"};
    }
    if (!value) {
      if (i + 1 == arguments.size()) return UsageError{flag + " needs a value: see --help"};
      value = arguments[++i];
    }
    if (const Problem problem = setter->second(*value, &options)) {
      return UsageError{flag + " " + *problem};
    }
  }
  if (const Problem problem = CheckTogether(options)) return UsageError{*problem};
  Complete(&options, timeout_given);
  if (options.run.run_id.empty()) options.run.run_id = RandomRunId();
  return options;
}

}  // namespace bimetal::kernels
