#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/ids.h"

// Whether one vendor's devices do the same work for less than another's (notes: cost model 3.1). A
// ratio is shown with an interval, and only between runs under the same conditions.
namespace bimetal::core::cost {

// What must be equal on both sides, and known: "none" where the work has no such thing. Formats are
// those in effect: two kinds of FP8 are two formats.
struct ComparisonKey {
  std::string weights_digest;
  std::string weight_format, activation_format, cache_format;
  std::string length_mix;               // of inputs and outputs
  std::string unit;                     // output tokens, samples, ...
  std::int64_t first_token_p99_ms = 0;  // the service level; 0: none
  std::int64_t inter_token_p99_ms = 0;
};

struct MeasuredRun {
  NanoCurrency cost;
  std::int64_t units = 0;  // delivered within the service level
};

struct Side {
  ComparisonKey key;
  bool quality_passed = false;  // the work's own quality gate
  bool warmup_excluded = false;
  std::string engine_version;  // recorded; may differ
  std::vector<MeasuredRun> runs;
};

enum class Verdict { kRefused, kNoDifference, kCheaper, kDearer };

// Of the first side over the second, in millionths: 800000 is a fifth cheaper.
struct Comparison {
  Verdict verdict = Verdict::kRefused;
  std::int64_t ratio = 0, low = 0, high = 0;  // low and high hold 95% of the resampled ratios
  std::vector<std::string> refusals;          // each with what to do; empty unless refused
};

inline constexpr std::size_t kLeastRuns = 3;

// The ratio of (cost / units) over all runs of each side, with the interval of its bootstrap:
// `resamples` times, each side's runs are drawn anew with replacement, whole runs at a time. Where
// the interval holds 1 no difference is shown. Same seed, same answer. Refused where the keys
// differ, a side did not pass its quality gate, did not record its engine, has its warm-up in, has
// fewer than three runs or one without cost or units. REQUIRES: resamples >= 40.
Comparison Compare(const Side& first, const Side& second, std::uint64_t seed, int resamples = 2000);

}  // namespace bimetal::core::cost
