#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/agent.pb.h"
#include "core/validation/fleet.h"
#include "core/validation/floors.h"
#include "core/validation/rates.h"
#include "core/validation/verdict.h"

namespace bimetal::core::validation {

// What a run's rates are held against. Refers to its parts; the caller keeps them alive.
struct Yardstick {
  const FloorTable& table;
  const std::vector<FloorOverride>& overrides;
  const FleetMedians& fleet;
  // A device slower than the fleet's median by more than this is Degraded.
  int degraded_percent = 5;
  // Fleet medians of one driver only; empty: of all.
  std::string driver;
};

// One verdict of a run after judging.
struct Judged {
  std::string check;
  std::string device;
  Verdict verdict = Verdict::kInconclusive;
  std::string evidence;      // why, then what the program saw
  std::optional<Rate> rate;  // of a rate that could be read
  std::string unit;          // canonical, with `rate`
  std::optional<Floor> floor;
  std::string capability;  // what it proves: with Pass, Degraded and NoProfile only
};

// The verdicts of a run, in its order and number: what the program could not know (floors, the
// fleet) is decided here. Fail and Inconclusive of the program stand. A rate is judged by its 5th
// percentile (a latency by its 95th): below a binding floor Fail; slower than the fleet's median by
// more than degraded_percent Degraded; without a binding floor NoProfile; else Pass. A rate that
// cannot be read (see ReadRate), that is faster than the hardware can be, or that is missing where
// a floor binds is Inconclusive, as are an unknown verdict and a device that is not in `devices`.
std::vector<Judged> Judge(const api::ValidationRun& run, const std::vector<DeviceFacts>& devices,
                          const Yardstick& yardstick);

// One check's rates over the devices of a node, for GPUNode status (RateStatus) and MediansOf.
struct RateSummary {
  FleetKey key;
  std::string unit;
  Milli lowest, median;
  int devices = 0;
  std::string floor;  // "2512.5 GB/s (source)"; empty where none is known
};
// Sorted by key; devices of different models or partitions are told apart.
std::vector<RateSummary> Summarize(const std::vector<Judged>& judged,
                                   const std::vector<DeviceFacts>& devices,
                                   const std::string& driver);

}  // namespace bimetal::core::validation
