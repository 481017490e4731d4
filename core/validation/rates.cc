#include "core/validation/rates.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace bimetal::core::validation {
namespace {

constexpr std::int64_t kMaxMilli = 9'000'000'000'000'000'000;
constexpr std::string_view kBytes = "GB/s";
constexpr std::string_view kFlops = "TFLOPS";
constexpr std::string_view kTime = "us";

struct KnownCheck {
  std::string_view key;
  RateCheck check;
};
constexpr std::array<KnownCheck, 10> kChecks = {{{"hbm-copy", {kBytes, Better::kHigher}},
                                                 {"hbm-scale", {kBytes, Better::kHigher}},
                                                 {"hbm-add", {kBytes, Better::kHigher}},
                                                 {"hbm-triad", {kBytes, Better::kHigher}},
                                                 {"hbm-dot", {kBytes, Better::kHigher}},
                                                 {"host-to-device", {kBytes, Better::kHigher}},
                                                 {"device-to-host", {kBytes, Better::kHigher}},
                                                 {"peer-to-peer", {kBytes, Better::kHigher}},
                                                 {"collective", {kBytes, Better::kHigher}},
                                                 {"launch-latency", {kTime, Better::kLower}}}};
constexpr std::string_view kGemmRate = "gemm-rate-";

// Other spellings of a unit, and how many thousandths of the canonical one it is worth.
struct Unit {
  std::string_view name;
  std::string_view canonical;
  std::int64_t milli;
};
constexpr std::array<Unit, 9> kUnits = {{{"GB/s", kBytes, 1000},
                                         {"MB/s", kBytes, 1},
                                         {"TFLOPS", kFlops, 1000},
                                         {"TFLOP/s", kFlops, 1000},
                                         {"TOPS", kFlops, 1000},
                                         {"GFLOPS", kFlops, 1},
                                         {"us", kTime, 1000},
                                         {"ms", kTime, 1'000'000},
                                         {"ns", kTime, 1}}};

tl::unexpected<Error> Unreadable(std::string what) {
  return Fail(ErrorCode::kInvalid, std::move(what));
}

// The one place where a floating number becomes an integer.
Result<Milli> Round(std::string_view name, double value, std::int64_t factor) {
  if (!std::isfinite(value)) return Unreadable(std::string(name) + " is not a finite number");
  if (value < 0) return Unreadable(std::string(name) + " is negative");
  const double scaled = value * static_cast<double>(factor);
  // Far above what any device can do, and far below where the conversion would be undefined.
  if (!(scaled <= 9e15)) return Unreadable(std::string(name) + " is out of range");
  return Milli{std::llround(scaled)};
}

Result<std::int64_t> FactorOf(std::string_view unit, const RateCheck& check) {
  for (const Unit& known : kUnits) {
    if (known.name == unit && known.canonical == check.unit) return known.milli;
  }
  return Unreadable("its unit is \"" + std::string(unit.substr(0, 32)) + "\", not " +
                    std::string(check.unit));
}

// The judged value of a latency: the verdict's own, its 95th percentile.
Result<Milli> HighPercentile(const api::Verdict& verdict, const Rate& rate, std::int64_t factor) {
  auto value = ParseMilli(verdict.value());
  if (!value) return Unreadable("its value \"" + verdict.value().substr(0, 32) + "\" is no number");
  if (value->v > kMaxMilli / factor) return Unreadable("its value is out of range");
  // `value` is in thousandths of the verdict's unit, `factor` thousandths of the canonical one.
  const Milli judged{(value->v * factor + 500) / 1000};
  // The text may carry fewer digits than the distribution.
  const std::int64_t slack = rate.max.v / 100 + 1;
  if (judged.v < rate.median.v - slack || judged.v > rate.max.v + slack) {
    return Unreadable("its value " + FormatMilli(judged) +
                      " does not lie between median and greatest");
  }
  return judged;
}

}  // namespace

std::optional<RateCheck> FindRateCheck(std::string_view check) {
  if (check.starts_with(kGemmRate) && check.size() > kGemmRate.size()) {
    return RateCheck{kFlops, Better::kHigher};
  }
  const auto* found = std::find_if(kChecks.begin(), kChecks.end(),
                                   [&](const KnownCheck& known) { return known.key == check; });
  if (found == kChecks.end()) return std::nullopt;
  return found->check;
}

Result<Rate> ReadRate(const api::Verdict& verdict, const RateCheck& check) {
  if (!verdict.has_distribution()) {
    if (verdict.value().empty()) return Fail(ErrorCode::kUnsupported, "nothing was measured");
    return Unreadable("it has a value without a distribution");
  }
  const api::Distribution& spread = verdict.distribution();
  if (spread.samples() < kMinSamples) {
    return Unreadable("it was measured " + std::to_string(spread.samples()) + " times, not " +
                      std::to_string(kMinSamples));
  }
  BIMETAL_TRY_ASSIGN(const std::int64_t factor, FactorOf(verdict.unit(), check));
  Rate rate;
  rate.samples = spread.samples();
  BIMETAL_TRY_ASSIGN(rate.min, Round("the least value", spread.min(), factor));
  BIMETAL_TRY_ASSIGN(rate.p5, Round("the 5th percentile", spread.p5(), factor));
  BIMETAL_TRY_ASSIGN(rate.median, Round("the median", spread.median(), factor));
  BIMETAL_TRY_ASSIGN(rate.max, Round("the greatest value", spread.max(), factor));
  if (rate.min > rate.p5 || rate.p5 > rate.median || rate.median > rate.max) {
    return Unreadable("its least value, 5th percentile, median and greatest are out of order");
  }
  rate.judged = rate.p5;
  if (check.better == Better::kLower) {
    BIMETAL_TRY_ASSIGN(rate.judged, HighPercentile(verdict, rate, factor));
  }
  return rate;
}

Result<Milli> ParseMilli(std::string_view text) {
  const auto bad = [&] {
    return Fail(ErrorCode::kInvalid,
                "\"" + std::string(text.substr(0, 32)) + "\" is no number from 0 to 9e15");
  };
  constexpr std::int64_t kMax = 9'000'000'000'000'000;
  std::int64_t whole = 0, fraction = 0, digits = 0, place = 100;
  bool point = false, up = false;
  std::size_t behind = 0;
  for (const char c : text) {
    if (c == '.' && !point) {
      point = true;
    } else if (c < '0' || c > '9') {
      return bad();
    } else if (!point) {
      whole = whole * 10 + (c - '0');
      if (whole > kMax) return bad();
      ++digits;
    } else {
      ++behind;
      ++digits;
      if (behind == 4) up = c >= '5';
      fraction += (c - '0') * place;
      place /= 10;
    }
  }
  if (digits == 0 || text.starts_with('.') || text.ends_with('.')) return bad();
  const std::int64_t milli = whole * 1000 + fraction + (up ? 1 : 0);
  if (milli > kMax * 1000) return bad();
  return Milli{milli};
}

std::string FormatMilli(Milli value) {
  if (value.v < 0) return "-" + FormatMilli(Milli{value.v == INT64_MIN ? INT64_MAX : -value.v});
  std::string text = std::to_string(value.v / 1000);
  const std::int64_t rest = value.v % 1000;
  if (rest == 0) return text;
  std::string digits = std::to_string(1000 + rest).substr(1);
  while (digits.back() == '0') digits.pop_back();
  return text + "." + digits;
}

}  // namespace bimetal::core::validation
