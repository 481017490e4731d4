// Money and seconds as decimal text.
#include <limits>
#include <string>

#include "core/cost/cost.h"
#include "core/model/check.h"

namespace bimetal::core::cost {
namespace {

constexpr int kDecimals = 9;
constexpr std::int64_t kOne = 1'000'000'000;
// What int64 nano-currency can hold, with room to name it plainly.
constexpr std::int64_t kMaxMoney = 9'200'000'000 * kOne;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// |value| without overflow at the lowest int64.
std::uint64_t Magnitude(std::int64_t value) {
  return value < 0 ? 0 - static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value);
}

std::string Padded(std::uint64_t value, std::size_t width) {
  const std::string digits = std::to_string(value);
  return digits.size() >= width ? digits : std::string(width - digits.size(), '0') + digits;
}

}  // namespace

std::string FormatSeconds(std::int64_t ms) {
  const std::uint64_t magnitude = Magnitude(ms);
  return (ms < 0 ? "-" : "") + std::to_string(magnitude / 1000) + "." + Padded(magnitude % 1000, 3);
}

std::string FormatMoney(NanoCurrency money) {
  const std::uint64_t magnitude = Magnitude(money.v);
  std::string decimals = Padded(magnitude % kOne, kDecimals);
  while (decimals.size() > 2 && decimals.back() == '0') decimals.pop_back();
  return (money.v < 0 ? "-" : "") + std::to_string(magnitude / kOne) + "." + decimals;
}

Result<NanoCurrency> ParseMoney(std::string_view text) {
  const auto bad = [&](const char* why) {
    return Fail(ErrorCode::kInvalid, Quoted(text) + " " + why);
  };
  if (text.starts_with("-")) return bad("is negative; use 0 or more");
  const std::size_t point = text.find('.');
  const std::string_view whole = text.substr(0, point);
  const std::string_view part = point == std::string_view::npos ? "" : text.substr(point + 1);
  if (whole.empty() || (point != std::string_view::npos && part.empty())) {
    return bad("is no decimal number; use digits such as 2.49");
  }
  if (part.size() > kDecimals) return bad("has more than 9 decimals; round it");
  std::int64_t value = 0;
  for (const std::string_view digits : {whole, part}) {
    for (const char c : digits) {
      if (!IsDigit(c)) return bad("is no decimal number; use digits such as 2.49");
      if (value > kMaxMoney / 10) return bad("is over 9200000000; use less");
      value = value * 10 + (c - '0');
    }
  }
  for (std::size_t i = part.size(); i < kDecimals; ++i) {
    if (value > kMaxMoney / 10) return bad("is over 9200000000; use less");
    value *= 10;
  }
  if (value > kMaxMoney) return bad("is over 9200000000; use less");
  return NanoCurrency{value};
}

}  // namespace bimetal::core::cost
