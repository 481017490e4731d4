#include "core/validation/judge.h"

#include <algorithm>
#include <map>
#include <utility>

namespace bimetal::core::validation {
namespace {

// What a measured value may lie above the data sheet's peak: rounding of sheets and clocks. More
// means that the clock or the work was not what it seemed.
constexpr std::int64_t kAbovePeakPercent = 110;
// A latency is the host's matter as much as the device's: judged by the fleet far more loosely.
constexpr std::int64_t kLatencyFactor = 2;

// `value` * `percent` / 100 without overflow; rates stay below 9e18.
std::int64_t Percent(std::int64_t value, std::int64_t percent) {
  return static_cast<std::int64_t>(static_cast<__int128>(value) * percent / 100);
}

std::string Amount(Milli value, std::string_view unit) {
  return FormatMilli(value) + " " + std::string(unit);
}

std::string Joined(const std::string& why, const std::string& seen) {
  return seen.empty() || why.empty() ? why + seen : why + "; " + seen;
}

void Conclude(Judged& judged, Verdict verdict, const std::string& why) {
  judged.verdict = verdict;
  judged.evidence = Joined(why, judged.evidence);
}

std::string_view Percentile(Better better) {
  return better == Better::kHigher ? "5th percentile " : "95th percentile ";
}

// Whether `value` is worse than `bound`.
bool Misses(Milli value, Milli bound, Better better) {
  return better == Better::kHigher ? value < bound : value > bound;
}

// The slowest value that the fleet's median still calls sound.
Milli FleetBound(Milli median, Better better, int percent) {
  if (better == Better::kLower) return Milli{median.v * kLatencyFactor};
  return Milli{Percent(median.v, 100 - std::clamp(percent, 1, 50))};
}

class Judging {
 public:
  Judging(const DeviceFacts& device, const Yardstick& yardstick)
      : device_(device), yardstick_(yardstick) {}

  // Judges the rate of `verdict`, which the program itself neither failed nor gave up.
  void JudgeRate(const api::Verdict& verdict, const RateCheck& check, Judged& judged) const {
    judged.floor = FindFloor(yardstick_.table, yardstick_.overrides, device_, judged.check);
    const bool binds = judged.floor && judged.floor->binding;
    Result<Rate> rate = ReadRate(verdict, check);
    if (!rate && rate.error().code == ErrorCode::kUnsupported && !binds) {
      // Nothing to measure here (a lone device has no peers), and nothing that it would owe.
      Conclude(judged, Verdict::kNoProfile, rate.error().message);
    } else if (!rate) {
      Conclude(judged, Verdict::kInconclusive, rate.error().message);
    } else {
      judged.rate = *rate;
      judged.unit = check.unit;
      Compare(check, judged);
    }
  }

 private:
  void Compare(const RateCheck& check, Judged& judged) const {
    const Milli value = judged.rate->judged;
    const std::string measured = std::string(Percentile(check.better)) + Amount(value, check.unit) +
                                 " of " + std::to_string(judged.rate->samples);
    const bool binds = judged.floor && judged.floor->binding;
    if (IsImpossible(check, judged)) {
      Conclude(judged, Verdict::kInconclusive,
               "median " + Amount(judged.rate->median, check.unit) +
                   " is more than the hardware can reach (" +
                   Amount(*judged.floor->peak, check.unit) + "): the measurement is wrong");
    } else if (binds && Misses(value, judged.floor->value, check.better)) {
      Conclude(judged, Verdict::kFail,
               measured + (check.better == Better::kHigher ? " is below" : " is above") +
                   " the floor " + Amount(judged.floor->value, check.unit) + " (" +
                   judged.floor->source + ")");
    } else if (const std::string slow = SlowerThanFleet(check, judged); !slow.empty()) {
      Conclude(judged, Verdict::kDegraded, measured + slow);
    } else if (judged.verdict == Verdict::kDegraded) {
      Conclude(judged, Verdict::kDegraded, "");
    } else if (!binds) {
      Conclude(judged, Verdict::kNoProfile, measured + WithoutFloor(check, judged));
    } else {
      Conclude(judged, Verdict::kPass, "");
    }
  }

  static bool IsImpossible(const RateCheck& check, const Judged& judged) {
    return check.better == Better::kHigher && judged.floor && judged.floor->peak &&
           judged.rate->median.v > Percent(judged.floor->peak->v, kAbovePeakPercent);
  }

  std::string SlowerThanFleet(const RateCheck& check, const Judged& judged) const {
    FleetKey key = KeyFor(device_, judged.check);
    key.driver = yardstick_.driver;
    const auto found = yardstick_.fleet.find(key);
    if (found == yardstick_.fleet.end()) return "";
    const FleetMedian& fleet = found->second;
    const Milli bound = FleetBound(fleet.value, check.better, yardstick_.degraded_percent);
    if (!Misses(judged.rate->judged, bound, check.better)) return "";
    return (check.better == Better::kHigher ? " is below " : " is above ") +
           Amount(bound, check.unit) + ", the bound of the fleet's median " +
           Amount(fleet.value, check.unit) + " (" + std::to_string(fleet.devices) + " devices on " +
           std::to_string(fleet.nodes) + " nodes)";
  }

  std::string WithoutFloor(const RateCheck& check, const Judged& judged) const {
    if (!judged.floor) {
      return "; no floor is known for " +
             (device_.model.empty() ? std::string("this model") : device_.model) +
             (IsWhole(device_) ? "" : " in mode " + device_.partition);
    }
    return std::string(Misses(judged.rate->judged, judged.floor->value, check.better)
                           ? " misses"
                           : " reaches") +
           " the advisory floor " + Amount(judged.floor->value, check.unit) + " (" +
           judged.floor->source + ")";
  }

  const DeviceFacts& device_;
  const Yardstick& yardstick_;
};

const DeviceFacts* Find(const std::vector<DeviceFacts>& devices, const std::string& id) {
  const auto found = std::find_if(devices.begin(), devices.end(),
                                  [&](const DeviceFacts& device) { return device.id == id; });
  return found == devices.end() ? nullptr : &*found;
}

Judged JudgeOne(const api::Verdict& verdict, const std::vector<DeviceFacts>& devices,
                const Yardstick& yardstick) {
  Judged judged;
  judged.check = verdict.check();
  judged.device = verdict.device();
  judged.evidence = verdict.evidence();
  const auto given = ParseVerdict(verdict.verdict());
  judged.verdict = given.value_or(Verdict::kInconclusive);
  const DeviceFacts* device = Find(devices, verdict.device());
  if (!given) {
    Conclude(judged, Verdict::kInconclusive,
             "the program's verdict \"" + verdict.verdict().substr(0, 32) + "\" is none");
  } else if (device == nullptr) {
    Conclude(judged, Verdict::kInconclusive, "the agent does not report this device");
  } else if (*given != Verdict::kFail && *given != Verdict::kInconclusive) {
    if (const auto check = FindRateCheck(verdict.check())) {
      Judging(*device, yardstick).JudgeRate(verdict, *check, judged);
    }
  }
  if (judged.verdict == Verdict::kPass || judged.verdict == Verdict::kDegraded) {
    judged.capability = verdict.capability();
  }
  return judged;
}

}  // namespace

std::vector<Judged> Judge(const api::ValidationRun& run, const std::vector<DeviceFacts>& devices,
                          const Yardstick& yardstick) {
  std::vector<Judged> all;
  all.reserve(static_cast<std::size_t>(run.verdicts_size()));
  for (const api::Verdict& verdict : run.verdicts()) {
    all.push_back(JudgeOne(verdict, devices, yardstick));
  }
  return all;
}

std::vector<RateSummary> Summarize(const std::vector<Judged>& judged,
                                   const std::vector<DeviceFacts>& devices,
                                   const std::string& driver) {
  std::map<FleetKey, RateSummary> by_key;
  std::map<FleetKey, std::vector<Milli>> values;
  for (const Judged& one : judged) {
    const DeviceFacts* device = Find(devices, one.device);
    if (!one.rate || device == nullptr || one.verdict == Verdict::kInconclusive) continue;
    FleetKey key = KeyFor(*device, one.check);
    key.driver = driver;
    RateSummary& summary = by_key[key];
    summary.key = key;
    summary.unit = one.unit;
    if (one.floor) {
      summary.floor = Amount(one.floor->value, one.unit) + " (" + one.floor->source +
                      (one.floor->binding ? ")" : ", advisory)");
    }
    values[key].push_back(one.rate->judged);
  }
  std::vector<RateSummary> summaries;
  for (auto& [key, summary] : by_key) {
    std::vector<Milli>& of_key = values[key];
    std::sort(of_key.begin(), of_key.end());
    summary.lowest = of_key.front();
    summary.median = of_key[(of_key.size() - 1) / 2];
    summary.devices = static_cast<int>(of_key.size());
    summaries.push_back(std::move(summary));
  }
  return summaries;
}

}  // namespace bimetal::core::validation
