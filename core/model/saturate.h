#pragma once

#include <cstdint>
#include <limits>

// Arithmetic that stops at the ends of int64: an absurd request must stay absurd, never wrap into a
// small one.
namespace bimetal::core {

constexpr std::int64_t Saturate(__int128 value) {
  constexpr auto kMax = std::numeric_limits<std::int64_t>::max();
  constexpr auto kMin = std::numeric_limits<std::int64_t>::min();
  return value > kMax ? kMax : value < kMin ? kMin : static_cast<std::int64_t>(value);
}

constexpr std::int64_t SaturatingAdd(std::int64_t a, std::int64_t b) {
  return Saturate(static_cast<__int128>(a) + b);
}

constexpr std::int64_t SaturatingMultiply(std::int64_t a, std::int64_t b) {
  return Saturate(static_cast<__int128>(a) * b);
}

}  // namespace bimetal::core
