#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

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
  Deadline deadline;
};

// What a check found. Texts are empty where they do not apply.
struct CheckResult {
  VerdictKind verdict = VerdictKind::kInconclusive;
  std::string value;  // the measured number
  std::string unit;   // of `value`
  std::string floor;
  std::string floor_source;
  std::string evidence;  // what was seen; for Fail: where, expected and found
};

// One entry of the registry. Immutable.
struct Check {
  std::string_view key;  // "memory-pattern"
  int level;             // runs at this level and deeper ones
  std::string_view description;
  CheckResult (*run)(Device& device, const CheckRequest& request);
};

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
