#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/device/device.h"

namespace bimetal::kernels {

enum class VerdictKind {
  kPass,
  kDegraded,      // works, but below a soft floor
  kFail,          // proven wrong on this device
  kInconclusive,  // could not be run or not be judged; says nothing about the device
  kNoProfile,     // ran, but no floor is known for this model
};

// "Pass", "Degraded", "Fail", "Inconclusive", "NoProfile".
std::string_view VerdictName(VerdictKind verdict);

// What a check is asked to do.
struct CheckRequest {
  std::uint64_t seed = 1;
  std::uint64_t memory_bytes = 0;     // to be tested; 0: the device's default, else a share
  std::uint32_t memory_percent = 80;  // of the free memory, where the device has no default
  std::uint32_t rounds = 1;           // 1 at L1; more at deeper levels, each with another seed
  std::chrono::milliseconds stress{20'000};  // of sustained load, on devices that are measured
  // The device's count of uncorrected memory errors when the run opened it, before any load.
  std::optional<std::uint64_t> errors_at_start = std::nullopt;
  Deadline deadline;
};

// How repeated measurements spread, in the unit of the check.
struct Distribution {
  std::uint32_t samples = 0;
  double min = 0, p5 = 0, median = 0, max = 0;
  double p95 = 0;          // of a latency, the judged one; not reported apart
  double clock_mhz = 0;    // beside it; 0: unknown
  double power_watts = 0;  // 0: unknown
};

// Nearest-rank percentiles. REQUIRES: samples is not empty.
Distribution Summarize(std::vector<double> samples);

// What a check found. Texts are empty where they do not apply.
struct CheckResult {
  VerdictKind verdict = VerdictKind::kInconclusive;
  std::string value;  // the measured number
  std::string unit;   // of `value`
  std::string floor;
  std::string floor_source;
  std::string evidence;  // what was seen; for Fail: where, expected and found
  std::optional<Distribution> distribution = std::nullopt;
  std::string capability = "";  // what a Pass proves: "fp8-ocp"; empty: nothing to publish
};

// One device in a check of the whole node. `device` is null where it could not be opened or does
// not answer any more; `error` says why.
struct NodeDevice {
  DeviceInfo info;
  Device* device = nullptr;
  DeviceError error = {};
  bool failed = false;  // in a check of its own: the first to blame for what is wrong between two
};

// One entry of the registry, of a check on each device (`run`) or on all of them together
// (`run_node`, after the others, one result a device in their order). Immutable.
struct Check {
  std::string_view key;  // "memory-pattern"; a literal
  int level;             // runs at this level and deeper ones
  std::string_view description;
  CheckResult (*run)(Device& device, const CheckRequest& request) = nullptr;
  std::vector<CheckResult> (*run_node)(std::span<const NodeDevice> devices,
                                       const CheckRequest& request) = nullptr;
  // False where the check means nothing on such a device: it then gets no verdict. Null: always.
  bool (*applies)(const DeviceInfo& info, std::size_t devices_of_node) = nullptr;
};

// Whether the device, one of `devices` of its node, gets a verdict of the check.
inline bool Applies(const Check& check, const DeviceInfo& info, std::size_t devices) {
  return check.applies == nullptr || check.applies(info, devices);
}

// Every check of this program, in the order in which they run on a device.
std::span<const Check> AllChecks();

// The check of that key, or null.
const Check* FindCheck(std::string_view key);

// A device error as a result: Fail where the driver blames the hardware, else Inconclusive.
CheckResult FromError(const DeviceError& error);

// "0x" and lower-case hex digits.
std::string Hex(std::uint64_t value);

// Writes a check's body as a function of outcomes: errors become FromError.
template <class Body>
CheckResult RunBody(Body body) {
  Outcome<CheckResult> result = body();
  return result.ok() ? std::move(result.value()) : FromError(result.error());
}

}  // namespace bimetal::kernels
