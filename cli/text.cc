#include "cli/text.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "kube/codec/json.h"

namespace bimetal::cli {
namespace {

struct Character {
  char32_t code = 0;
  std::size_t bytes = 1;
  bool valid = false;
};

// The character at the head of `text`, which is not empty. Long forms and surrogates are not told
// from good UTF-8: widths need no more, and OneLine mends them before.
Character First(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80U) return {lead, 1, true};
  const std::size_t bytes = lead >= 0xF0U ? 4 : lead >= 0xE0U ? 3 : 2;
  if (lead < 0xC2U || lead > 0xF4U || text.size() < bytes) return {};
  char32_t code = lead & (0xFFU >> (bytes + 1));
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xC0U) != 0x80U) return {};
    code = (code << 6U) | (byte(i) & 0x3FU);
  }
  return {code, bytes, true};
}

struct Range {
  char32_t from;
  char32_t to;
};

template <std::size_t N>
bool In(const std::array<Range, N>& ranges, char32_t code) {
  return std::any_of(ranges.begin(), ranges.end(),
                     [&](Range r) { return code >= r.from && code <= r.to; });
}

// The blocks that matter in names and messages, not the whole of Unicode's tables.
constexpr std::array<Range, 9> kWide = {{{0x1100, 0x115F},
                                         {0x2E80, 0xA4CF},
                                         {0xAC00, 0xD7A3},
                                         {0xF900, 0xFAFF},
                                         {0xFE30, 0xFE6F},
                                         {0xFF00, 0xFF60},
                                         {0xFFE0, 0xFFE6},
                                         {0x1F300, 0x1FAFF},
                                         {0x20000, 0x3FFFD}}};
constexpr std::array<Range, 4> kNoWidth = {
    {{0x0300, 0x036F}, {0x200B, 0x200D}, {0xFE00, 0xFE0F}, {0xE0100, 0xE01EF}}};
// Control characters and those that turn the direction of writing.
constexpr std::array<Range, 6> kUnfit = {{{0x00, 0x1F},
                                          {0x7F, 0x9F},
                                          {0x200E, 0x200F},
                                          {0x2028, 0x202E},
                                          {0x2066, 0x2069},
                                          {0xFEFF, 0xFEFF}}};

std::string Number(std::int64_t n) { return std::to_string(n); }

// "5h3m", or "5h" where the second part is 0.
std::string TwoParts(std::int64_t a, const char* a_unit, std::int64_t b, const char* b_unit) {
  return Number(a) + a_unit + (b == 0 ? std::string() : Number(b) + b_unit);
}

}  // namespace

std::string OneLine(std::string_view text) {
  const std::string valid = kube::ReplaceInvalidUtf8(text);
  std::string out;
  out.reserve(valid.size());
  for (std::string_view rest = valid; !rest.empty();) {
    const Character c = First(rest);
    if (c.code == '\n' || c.code == '\r' || c.code == '\t') {
      out += ' ';
    } else if (!c.valid || In(kUnfit, c.code)) {
      out += "\xEF\xBF\xBD";
    } else {
      out += rest.substr(0, c.bytes);
    }
    rest.remove_prefix(c.bytes);
  }
  const std::size_t begin = out.find_first_not_of(' ');
  if (begin == std::string::npos) return {};
  return out.substr(begin, out.find_last_not_of(' ') - begin + 1);
}

std::size_t DisplayWidth(std::string_view text) {
  std::size_t width = 0;
  while (!text.empty()) {
    const Character c = First(text);
    width += In(kNoWidth, c.code) ? 0 : In(kWide, c.code) ? 2 : 1;
    text.remove_prefix(c.bytes);
  }
  return width;
}

// kubectl's steps: two parts where the first is small, one where it says enough.
std::string HumanDuration(Millis d) {
  const std::int64_t s = std::max<std::int64_t>(0, d.v / 1000);
  const std::int64_t m = s / 60;
  const std::int64_t h = m / 60;
  const std::int64_t days = h / 24;
  const std::int64_t years = days / 365;
  if (s < 120) return Number(s) + "s";
  if (m < 10) return TwoParts(m, "m", s % 60, "s");
  if (m < 180) return Number(m) + "m";
  if (h < 8) return TwoParts(h, "h", m % 60, "m");
  if (h < 48) return Number(h) + "h";
  if (days < 8) return TwoParts(days, "d", h % 24, "h");
  if (years < 2) return Number(days) + "d";
  if (years < 8) return TwoParts(years, "y", days % 365, "d");
  return Number(years) + "y";
}

std::string HumanSince(std::string_view since, TimePoint until) {
  const Result<TimePoint> start = ParseTime(since);
  return start ? HumanDuration(until - *start) : std::string();
}

}  // namespace bimetal::cli
