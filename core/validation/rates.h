#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/agent.pb.h"
#include "core/base/result.h"

namespace bimetal::core::validation {

// Thousandths of a rate's canonical unit: MB/s where that is GB/s, GFLOPS where it is TFLOPS, ns
// where it is us. The protocol's floating numbers become these once, where they enter.
struct Milli {
  std::int64_t v = 0;
  auto operator<=>(const Milli&) const = default;
};

// Fewer repetitions say nothing about a low percentile.
inline constexpr int kMinSamples = 20;

enum class Better { kHigher, kLower };

// What is known of a check that measures a rate.
struct RateCheck {
  std::string_view unit;  // canonical: GB/s, TFLOPS, us
  Better better = Better::kHigher;
};

// The rate checks by key: hbm-{copy,scale,add,triad,dot}, host-to-device, device-to-host,
// peer-to-peer, collective, launch-latency, gemm-rate-<precision>. Nothing for any other check.
std::optional<RateCheck> FindRateCheck(std::string_view check);

// A rate of one device, as it was measured.
struct Rate {
  int samples = 0;
  Milli min, p5, median, max;
  Milli judged;  // p5, or for a latency the 95th percentile
  auto operator<=>(const Rate&) const = default;
};

// Reads a verdict's distribution. Error kUnsupported: it has neither value nor distribution;
// kInvalid, with the reason: fewer than kMinSamples, not finite, negative, out of order, out of
// range, or in a unit that the check does not have. A latency is judged by `value` (its 95th
// percentile), which must lie between median and max.
Result<Rate> ReadRate(const api::Verdict& verdict, const RateCheck& check);

// Decimal text to thousandths and back: "3885.5" is 3885500; rounded half up beyond three digits.
// Error kInvalid for what is no plain decimal number, is negative, or is over 9e15.
Result<Milli> ParseMilli(std::string_view text);
std::string FormatMilli(Milli value);

}  // namespace bimetal::core::validation
