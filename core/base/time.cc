#include "core/base/time.h"

#include <array>
#include <chrono>
#include <cstdio>

namespace bimetal {
namespace {

using std::chrono::days;
using std::chrono::sys_days;

struct Civil {
  int year, hour, minute, second;
  unsigned month, day;
  std::int64_t ms;
};

Civil ToCivil(TimePoint t) {
  std::int64_t day = t.ms / 86'400'000;
  std::int64_t rest = t.ms % 86'400'000;
  if (rest < 0) {
    rest += 86'400'000;
    --day;
  }
  const std::chrono::year_month_day ymd{sys_days{days{day}}};
  return Civil{static_cast<int>(ymd.year()),
               static_cast<int>(rest / 3'600'000),
               static_cast<int>(rest / 60'000 % 60),
               static_cast<int>(rest / 1000 % 60),
               static_cast<unsigned>(ymd.month()),
               static_cast<unsigned>(ymd.day()),
               rest % 1000};
}

bool ReadDigits(std::string_view text, std::size_t at, std::size_t count, int* out) {
  if (at + count > text.size()) return false;
  int value = 0;
  for (std::size_t i = at; i < at + count; ++i) {
    if (text[i] < '0' || text[i] > '9') return false;
    value = value * 10 + (text[i] - '0');
  }
  *out = value;
  return true;
}

tl::unexpected<Error> BadTime(std::string_view text) {
  return Fail(ErrorCode::kInvalid,
              "time \"" + std::string(text.substr(0, 64)) + "\" is not RFC 3339");
}

tl::unexpected<Error> BadDuration(std::string_view text, std::string_view why) {
  return Fail(ErrorCode::kInvalid, "duration \"" + std::string(text.substr(0, 64)) + "\" " +
                                       std::string(why) + "; write it as 30s, 5m or 1h30m");
}

// Nanoseconds of one unit of Go's duration text; 0 for an unknown unit.
std::int64_t UnitNanos(std::string_view unit) {
  if (unit == "ns") return 1;
  if (unit == "us" || unit == "µs") return 1'000;
  if (unit == "ms") return 1'000'000;
  if (unit == "s") return 1'000'000'000;
  if (unit == "m") return 60'000'000'000;
  if (unit == "h") return 3'600'000'000'000;
  return 0;
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

std::string FormatTime(TimePoint t) {
  const Civil c = ToCivil(t);
  std::array<char, 48> out{};
  std::snprintf(out.data(), out.size(), "%04d-%02u-%02uT%02d:%02d:%02dZ", c.year, c.month, c.day,
                c.hour, c.minute, c.second);
  return out.data();
}

std::string FormatMicroTime(TimePoint t) {
  const Civil c = ToCivil(t);
  std::array<char, 64> out{};
  std::snprintf(out.data(), out.size(), "%04d-%02u-%02uT%02d:%02d:%02d.%03d000Z", c.year, c.month,
                c.day, c.hour, c.minute, c.second, static_cast<int>(c.ms));
  return out.data();
}

Result<TimePoint> ParseTime(std::string_view text) {
  int year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0;
  if (text.size() < 20 || !ReadDigits(text, 0, 4, &year) || text[4] != '-' ||
      !ReadDigits(text, 5, 2, &month) || text[7] != '-' || !ReadDigits(text, 8, 2, &day) ||
      (text[10] != 'T' && text[10] != 't') || !ReadDigits(text, 11, 2, &hour) || text[13] != ':' ||
      !ReadDigits(text, 14, 2, &minute) || text[16] != ':' || !ReadDigits(text, 17, 2, &second)) {
    return BadTime(text);
  }
  const std::chrono::year_month_day ymd{std::chrono::year{year},
                                        std::chrono::month{static_cast<unsigned>(month)},
                                        std::chrono::day{static_cast<unsigned>(day)}};
  if (!ymd.ok() || hour > 23 || minute > 59 || second > 60) return BadTime(text);
  std::size_t at = 19;
  std::int64_t ms = 0;
  if (text[at] == '.') {
    std::int64_t scale = 100;
    for (++at; at < text.size() && IsDigit(text[at]); ++at, scale /= 10)
      ms += (text[at] - '0') * scale;
  }
  std::int64_t offset_minutes = 0;
  if (at < text.size() && (text[at] == '+' || text[at] == '-')) {
    int oh = 0, om = 0;
    if (at + 6 != text.size() || !ReadDigits(text, at + 1, 2, &oh) || text[at + 3] != ':' ||
        !ReadDigits(text, at + 4, 2, &om) || oh > 23 || om > 59) {
      return BadTime(text);
    }
    offset_minutes = (text[at] == '-' ? -1 : 1) * (oh * 60 + om);
  } else if (at + 1 != text.size() || (text[at] != 'Z' && text[at] != 'z')) {
    return BadTime(text);
  }
  const std::int64_t day_count = sys_days{ymd}.time_since_epoch().count();
  return TimePoint{day_count * 86'400'000 +
                   ((hour * 60 + minute - offset_minutes) * 60 + second) * 1000 + ms};
}

Result<Millis> ParseDuration(std::string_view text) {
  if (text == "0") return Millis{0};
  if (text.empty()) return BadDuration(text, "is empty");
  if (text[0] == '-') return BadDuration(text, "is negative");
  constexpr __int128 kLimitNanos = __int128{100} * 366 * 86'400 * 1'000'000'000;
  __int128 total = 0;
  std::size_t at = text[0] == '+' ? 1 : 0;
  if (at == text.size()) return BadDuration(text, "has no number");
  while (at < text.size()) {
    const std::size_t number_begin = at;
    std::int64_t whole = 0;
    for (; at < text.size() && IsDigit(text[at]); ++at) {
      if (whole > 1'000'000'000'000'000) return BadDuration(text, "is over 100 years");
      whole = whole * 10 + (text[at] - '0');
    }
    std::int64_t fraction = 0, scale = 1;
    std::size_t digits = at - number_begin;
    if (at < text.size() && text[at] == '.') {
      for (++at; at < text.size() && IsDigit(text[at]); ++at, ++digits) {
        if (scale < 1'000'000'000) {
          fraction = fraction * 10 + (text[at] - '0');
          scale *= 10;
        }
      }
    }
    if (digits == 0) return BadDuration(text, "has no number");
    const std::size_t unit_begin = at;
    while (at < text.size() && !IsDigit(text[at]) && text[at] != '.') ++at;
    const std::int64_t unit = UnitNanos(text.substr(unit_begin, at - unit_begin));
    if (unit == 0) return BadDuration(text, "has no unit that is known");
    total += static_cast<__int128>(whole) * unit + static_cast<__int128>(fraction) * unit / scale;
    if (total > kLimitNanos) return BadDuration(text, "is over 100 years");
  }
  return Millis{static_cast<std::int64_t>(total / 1'000'000)};
}

std::string FormatDuration(Millis d) {
  if (d.v == 0) return "0s";
  std::string out = d.v < 0 ? "-" : "";
  std::uint64_t ms =
      d.v < 0 ? 0 - static_cast<std::uint64_t>(d.v) : static_cast<std::uint64_t>(d.v);
  if (ms < 1000) return out + std::to_string(ms) + "ms";
  if (const auto h = ms / 3'600'000; h > 0) out += std::to_string(h) + "h";
  if (const auto m = ms / 60'000 % 60; m > 0) out += std::to_string(m) + "m";
  if (const auto rest = ms % 60'000; rest > 0) {
    out += std::to_string(rest / 1000);
    if (const auto f = rest % 1000; f > 0) {
      std::string digits = std::to_string(1000 + f).substr(1);
      digits.erase(digits.find_last_not_of('0') + 1);
      out += "." + digits;
    }
    out += "s";
  }
  return out;
}

TimePoint SystemClock::Now() const {
  return TimePoint{std::chrono::duration_cast<std::chrono::milliseconds>(
                       std::chrono::system_clock::now().time_since_epoch())
                       .count()};
}

Millis SystemClock::Monotonic() const {
  return Millis{std::chrono::duration_cast<std::chrono::milliseconds>(
                    std::chrono::steady_clock::now().time_since_epoch())
                    .count()};
}

}  // namespace bimetal
