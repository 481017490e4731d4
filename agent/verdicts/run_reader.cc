#include "agent/verdicts/run_reader.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <google/protobuf/util/json_util.h>

#include "agent/inventory/clean_text.h"

namespace bimetal::agent {
namespace {

// The operator's own bounds: it would refuse a whole report for one field.
constexpr std::size_t kMaxName = 128;
constexpr std::size_t kMaxId = 253;
constexpr std::size_t kMaxSentence = 1024;
// It becomes a part of a label's name.
constexpr std::size_t kMaxCapability = 63;
constexpr std::array<std::string_view, 5> kVerdicts = {"Pass", "Degraded", "Fail", "Inconclusive",
                                                       "NoProfile"};
// "none": the program found no way to any device; told to the operator, which knows three, as the
// back end that it looked for.
constexpr std::array<std::string_view, 4> kBackends = {"cuda", "hip", "host", "none"};

template <std::size_t N>
bool IsOneOf(const std::array<std::string_view, N>& allowed, const std::string& text) {
  return std::find(allowed.begin(), allowed.end(), text) != allowed.end();
}

tl::unexpected<Error> Bad(const std::string& what) { return Fail(ErrorCode::kInvalid, what); }

// A spread that could have been measured. The operator judges it; what is no spread at all never
// gets there.
bool IsSpread(const api::Distribution& spread) {
  const std::array<double, 6> values = {spread.min(), spread.p5(),        spread.median(),
                                        spread.max(), spread.clock_mhz(), spread.power_watts()};
  const bool sound = std::all_of(values.begin(), values.end(),
                                 [](double value) { return std::isfinite(value) && value >= 0; });
  return sound && spread.samples() > 0 && spread.min() <= spread.p5() &&
         spread.p5() <= spread.median() && spread.median() <= spread.max();
}

bool IsToken(const std::string& text, std::size_t limit) {
  return !text.empty() && CleanToken(text, limit) == text;
}

}  // namespace

Status RunReader::AddLine(std::string_view text) {
  ++lines_;
  const std::string at = "line " + std::to_string(lines_) + ": ";
  if (lines_ > kMaxLines) return Bad(at + "more than " + std::to_string(kMaxLines) + " lines");
  if (text.size() > kMaxLine) return Bad(at + "longer than 65536 bytes");
  if (done_) return Bad(at + "comes after done");
  api::Line line;
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;
  const google::protobuf::StringPiece piece(text.data(), text.size());
  if (!google::protobuf::util::JsonStringToMessage(piece, &line, options).ok()) {
    return Bad(at + "is no JSON object of the protocol");
  }
  Status result;
  if (line.type() == "run") {
    result = AddRun(line);
  } else if (!started_) {
    result = Bad("the first line must be of type run");
  } else if (!line.run().empty() && line.run() != received_.run.run()) {
    result = Bad("run: is not the run of the first line");
  } else if (line.type() == "verdict") {
    result = AddVerdict(line);
  } else if (line.type() == "done") {
    result = AddDone(line);
  } else {
    result = Bad("type: must be run, verdict or done");
  }
  if (!result) return Bad(at + result.error().message);
  return {};
}

Status RunReader::AddRun(const api::Line& line) {
  if (started_) return Bad("a second line of type run");
  if (!IsToken(line.run(), kMaxId)) return Bad("run: must be the uid of the validation pod");
  if (line.vendor() != "nvidia" && line.vendor() != "amd") {
    return Bad("vendor: must be nvidia or amd");
  }
  if (!IsOneOf(kBackends, line.backend())) return Bad("backend: must be cuda, hip, host or none");
  if (!IsToken(line.level(), kMaxName)) return Bad("level: must be given");
  api::ValidationRun& run = received_.run;
  run.set_run(line.run());
  run.set_vendor(line.vendor());
  const std::string natural = line.vendor() == "amd" ? "hip" : "cuda";
  run.set_backend(line.backend() == "none" ? natural : line.backend());
  run.set_simulated(line.simulated());
  run.set_level(line.level());
  received_.fingerprint = line.fingerprint();
  started_ = true;
  return {};
}

Status RunReader::AddVerdict(const api::Line& line) {
  if (!IsToken(line.check(), kMaxName)) return Bad("check: must be given");
  // Empty where no device could be had.
  if (!line.device().empty() && !IsToken(line.device(), kMaxId))
    return Bad("device: is no device id");
  if (!IsOneOf(kVerdicts, line.verdict())) {
    return Bad("verdict: must be Pass, Degraded, Fail, Inconclusive or NoProfile");
  }
  if (line.has_distribution() && !IsSpread(line.distribution())) {
    return Bad("distribution: must have samples and 0 <= min <= p5 <= median <= max");
  }
  if (!line.capability().empty() &&
      (line.verdict() != "Pass" || !IsToken(line.capability(), kMaxCapability))) {
    return Bad("capability: must be a short word, of a Pass");
  }
  if (line.duration_ms() < 0) return Bad("durationMs: must not be negative");
  api::Verdict* verdict = received_.run.add_verdicts();
  verdict->set_check(line.check());
  verdict->set_device(line.device());
  verdict->set_level(line.level().empty() ? received_.run.level()
                                          : CleanToken(line.level(), kMaxName));
  verdict->set_verdict(line.verdict());
  verdict->set_value(CleanText(line.value(), kMaxName));
  verdict->set_unit(CleanText(line.unit(), kMaxName));
  verdict->set_floor(CleanText(line.floor(), kMaxName));
  verdict->set_floor_source(CleanText(line.floor_source(), kMaxName));
  verdict->set_seed(line.seed());
  verdict->set_duration_ms(line.duration_ms());
  verdict->set_evidence(CleanText(line.evidence(), kMaxSentence));
  if (line.has_distribution()) *verdict->mutable_distribution() = line.distribution();
  verdict->set_capability(line.capability());
  bytes_ += verdict->ByteSizeLong();
  if (bytes_ > kMaxRunBytes) return Bad("the run is larger than 3 MiB");
  return {};
}

Status RunReader::AddDone(const api::Line& line) {
  const auto& verdicts = received_.run.verdicts();
  const auto count = [&](std::string_view kind) {
    return std::count_if(verdicts.begin(), verdicts.end(),
                         [&](const api::Verdict& verdict) { return verdict.verdict() == kind; });
  };
  const auto failed = count("Fail");
  const auto inconclusive = count("Inconclusive");
  if (line.failed() != failed || line.inconclusive() != inconclusive ||
      line.passed() != verdicts.size() - failed - inconclusive) {
    return Bad("the counts are not those of the verdicts that came");
  }
  done_ = true;
  return {};
}

}  // namespace bimetal::agent
