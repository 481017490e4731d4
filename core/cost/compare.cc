#include "core/cost/compare.h"

#include <algorithm>

#include "core/cost/ratio.h"
#include "core/model/saturate.h"

namespace bimetal::core::cost {
namespace {

using Wide = __int128;

constexpr std::int64_t kMillion = 1'000'000;
// In each tail of the interval, of a thousand.
constexpr std::int64_t kTail = 25;

void Differ(std::vector<std::string>& refusals, const char* what, const std::string& a,
            const std::string& b) {
  if (a == b && !a.empty()) return;
  refusals.push_back(a == b ? std::string(what) + " is not known; record it on both sides"
                            : std::string(what) + " differs (" + a + ", " + b +
                                  "); measure both with the same");
}

void CheckSide(std::vector<std::string>& refusals, const char* name, const Side& side) {
  const auto say = [&](const std::string& what) {
    refusals.push_back(std::string(name) + " side: " + what);
  };
  if (!side.quality_passed) say("quality did not pass; mend it before its cost is compared");
  if (!side.warmup_excluded) say("the warm-up is counted in; leave it out");
  if (side.engine_version.empty()) say("the engine's version is not known; record it");
  if (side.runs.size() < kLeastRuns) {
    say(std::to_string(side.runs.size()) + " runs; measure at least " + std::to_string(kLeastRuns));
  }
  const bool hollow = std::any_of(side.runs.begin(), side.runs.end(), [](const MeasuredRun& run) {
    return run.units <= 0 || run.cost.v <= 0;
  });
  if (hollow) say("a run has no units or no cost; measure it again");
}

std::vector<std::string> Refusals(const Side& first, const Side& second) {
  std::vector<std::string> out;
  const ComparisonKey &a = first.key, &b = second.key;
  Differ(out, "weights digest", a.weights_digest, b.weights_digest);
  Differ(out, "format of weights", a.weight_format, b.weight_format);
  Differ(out, "format of activations", a.activation_format, b.activation_format);
  Differ(out, "format of the cache", a.cache_format, b.cache_format);
  Differ(out, "mix of lengths", a.length_mix, b.length_mix);
  Differ(out, "unit of work", a.unit, b.unit);
  Differ(out, "p99 to the first token", std::to_string(a.first_token_p99_ms) + "ms",
         std::to_string(b.first_token_p99_ms) + "ms");
  Differ(out, "p99 between tokens", std::to_string(a.inter_token_p99_ms) + "ms",
         std::to_string(b.inter_token_p99_ms) + "ms");
  CheckSide(out, "first", first);
  CheckSide(out, "second", second);
  return out;
}

// splitmix64: seeded by the caller, the same numbers on every machine.
class Draws {
 public:
  explicit Draws(std::uint64_t seed) : state_(seed) {}
  std::uint64_t operator()() {
    state_ += 0x9E3779B97F4A7C15U;
    std::uint64_t z = state_;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9U;
    z = (z ^ z >> 27) * 0x94D049BB133111EBU;
    return z ^ z >> 31;
  }

 private:
  std::uint64_t state_;
};

struct Sums {
  std::int64_t cost = 0, units = 0;
  void Add(const MeasuredRun& run) {
    cost = SaturatingAdd(cost, run.cost.v);
    units = SaturatingAdd(units, run.units);
  }
};

// (a.cost / a.units) / (b.cost / b.units) in millionths.
std::int64_t RatioOf(const Sums& a, const Sums& b) {
  Wide numerator = static_cast<Wide>(a.cost) * b.units;
  Wide denominator = static_cast<Wide>(a.units) * b.cost;
  // Both are below 2^126; twenty bits less leave room for the million and cost a part in 2^85.
  while (numerator >> 106 != 0) {
    numerator >>= 1;
    denominator = std::max<Wide>(1, denominator >> 1);
  }
  return Saturate(RoundHalfEven(numerator * kMillion, denominator));
}

Sums Whole(const Side& side) {
  Sums sums;
  for (const auto& run : side.runs) sums.Add(run);
  return sums;
}

// As many runs as there are, each drawn from all. The same on every machine.
Sums Drawn(const Side& side, Draws& draws) {
  Sums sums;
  for (std::size_t i = 0; i < side.runs.size(); ++i) {
    const auto draw = static_cast<unsigned __int128>(draws()) * side.runs.size() >> 64;
    sums.Add(side.runs[static_cast<std::size_t>(draw)]);
  }
  return sums;
}

}  // namespace

Comparison Compare(const Side& first, const Side& second, std::uint64_t seed, int resamples) {
  BIMETAL_CHECK(resamples >= 40);
  Comparison out;
  out.refusals = Refusals(first, second);
  if (!out.refusals.empty()) return out;
  out.ratio = RatioOf(Whole(first), Whole(second));
  Draws draws(seed);
  std::vector<std::int64_t> ratios;
  for (int i = 0; i < resamples; ++i) {
    const Sums a = Drawn(first, draws);
    ratios.push_back(RatioOf(a, Drawn(second, draws)));
  }
  std::sort(ratios.begin(), ratios.end());
  const auto tail = static_cast<std::size_t>(resamples * kTail / 1000);
  out.low = ratios[tail];
  out.high = ratios[ratios.size() - 1 - tail];
  out.verdict = out.high < kMillion  ? Verdict::kCheaper
                : out.low > kMillion ? Verdict::kDearer
                                     : Verdict::kNoDifference;
  return out;
}

}  // namespace bimetal::core::cost
