#include "core/base/quantity.h"

#include <limits>

namespace bimetal {
namespace {

using Wide = __int128;

// Keeps every product inside 128 bits: mantissa <= 1e19, scale <= 1e18 times 1e3.
constexpr Wide kMaxMantissa = static_cast<Wide>(1'000'000'000'000'000'000) * 10;

tl::unexpected<Error> Bad(std::string_view text, std::string_view why) {
  return Fail(ErrorCode::kInvalid,
              "quantity \"" + std::string(text.substr(0, 64)) + "\" " + std::string(why));
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Multiplier of a suffix in units of 1e-9 would overflow for Ei; so: value = mantissa * mul / div.
struct Scale {
  Wide mul = 1;
  Wide div = 1;
  bool ok = true;
};

Scale PowerOfTen(int exponent) {
  if (exponent > 18 || exponent < -18) return Scale{1, 1, false};
  Scale s;
  for (int i = 0; i < exponent; ++i) s.mul *= 10;
  for (int i = 0; i > exponent; --i) s.div *= 10;
  return s;
}

Scale SuffixScale(std::string_view suffix) {
  constexpr std::string_view kBinary[] = {"Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
  Wide mul = 1;
  for (const auto name : kBinary) {
    mul *= 1024;
    if (suffix == name) return Scale{mul, 1, true};
  }
  if (suffix.empty()) return Scale{};
  constexpr std::string_view kDecimal = "kMGTPE";
  if (suffix.size() == 1) {
    if (suffix[0] == 'm') return PowerOfTen(-3);
    if (suffix[0] == 'u') return PowerOfTen(-6);
    if (suffix[0] == 'n') return PowerOfTen(-9);
    if (const auto i = kDecimal.find(suffix[0]); i != std::string_view::npos) {
      return PowerOfTen(static_cast<int>(i + 1) * 3);
    }
  }
  if ((suffix[0] == 'e' || suffix[0] == 'E') && suffix.size() >= 2 && suffix.size() <= 5) {
    std::size_t at = 1;
    const bool negative = suffix[at] == '-';
    if (suffix[at] == '-' || suffix[at] == '+') ++at;
    if (at == suffix.size()) return Scale{1, 1, false};
    int exponent = 0;
    for (; at < suffix.size(); ++at) {
      if (!IsDigit(suffix[at])) return Scale{1, 1, false};
      exponent = exponent * 10 + (suffix[at] - '0');
    }
    return PowerOfTen(negative ? -exponent : exponent);
  }
  return Scale{1, 1, false};
}

// The value times `unit` (1 or 1000), rounded away from zero to a whole number.
Result<std::int64_t> Parse(std::string_view text, Wide unit) {
  std::size_t at = 0;
  const bool negative = !text.empty() && text[0] == '-';
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) ++at;
  Wide mantissa = 0, div = 1;
  bool any = false, point = false;
  for (; at < text.size(); ++at) {
    if (text[at] == '.' && !point) {
      point = true;
      continue;
    }
    if (!IsDigit(text[at])) break;
    any = true;
    if (mantissa > kMaxMantissa || div > kMaxMantissa) return Bad(text, "has too many digits");
    mantissa = mantissa * 10 + (text[at] - '0');
    if (point) div *= 10;
  }
  if (!any) return Bad(text, "is not a number with an optional suffix such as m, k, Mi, Gi");
  const Scale scale = SuffixScale(text.substr(at));
  if (!scale.ok) return Bad(text, "has an unknown suffix; use m, k, M, G, T, Ki, Mi, Gi or Ti");
  Wide numerator = 0;
  if (__builtin_mul_overflow(mantissa, scale.mul, &numerator) ||
      __builtin_mul_overflow(numerator, unit, &numerator)) {
    return Bad(text, "is too large");
  }
  if (__builtin_mul_overflow(div, scale.div, &div)) return Bad(text, "has too many digits");
  const Wide value = (numerator + div - 1) / div;
  if (value > std::numeric_limits<std::int64_t>::max()) return Bad(text, "is too large");
  return static_cast<std::int64_t>(negative ? -value : value);
}

}  // namespace

Result<std::int64_t> ParseQuantityMilli(std::string_view text) { return Parse(text, 1000); }

Result<std::int64_t> ParseQuantity(std::string_view text) { return Parse(text, 1); }

std::string FormatQuantityMilli(std::int64_t milli) {
  return milli % 1000 == 0 ? std::to_string(milli / 1000) : std::to_string(milli) + "m";
}

}  // namespace bimetal
