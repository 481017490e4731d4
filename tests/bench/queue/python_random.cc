#include "tests/bench/queue/python_random.h"

#include <bit>

namespace bimetal::bench {

PythonRandom::PythonRandom(std::uint32_t seed) {
  constexpr std::uint32_t kSize = 624;
  state_[0] = 19650218U;
  for (std::uint32_t i = 1; i < kSize; ++i) {
    state_[i] = 1812433253U * (state_[i - 1] ^ (state_[i - 1] >> 30)) + i;
  }
  std::uint32_t i = 1;
  for (std::uint32_t k = 0; k < kSize; ++k) {
    state_[i] = (state_[i] ^ ((state_[i - 1] ^ (state_[i - 1] >> 30)) * 1664525U)) + seed;
    if (++i >= kSize) {
      state_[0] = state_[kSize - 1];
      i = 1;
    }
  }
  for (std::uint32_t k = 0; k + 1 < kSize; ++k) {
    state_[i] = (state_[i] ^ ((state_[i - 1] ^ (state_[i - 1] >> 30)) * 1566083941U)) - i;
    if (++i >= kSize) {
      state_[0] = state_[kSize - 1];
      i = 1;
    }
  }
  state_[0] = 0x80000000U;
}

std::uint32_t PythonRandom::Next() {
  constexpr std::size_t kSize = 624, kShift = 397;
  if (at_ >= kSize) {
    for (std::size_t i = 0; i < kSize; ++i) {
      const std::uint32_t y = (state_[i] & 0x80000000U) | (state_[(i + 1) % kSize] & 0x7fffffffU);
      state_[i] = state_[(i + kShift) % kSize] ^ (y >> 1) ^ ((y & 1U) != 0 ? 0x9908b0dfU : 0U);
    }
    at_ = 0;
  }
  std::uint32_t y = state_[at_++];
  y ^= y >> 11;
  y ^= (y << 7) & 0x9d2c5680U;
  y ^= (y << 15) & 0xefc60000U;
  return y ^ (y >> 18);
}

double PythonRandom::Random() {
  const std::uint32_t a = Next() >> 5, b = Next() >> 6;
  return (a * 67108864.0 + b) / 9007199254740992.0;
}

double PythonRandom::Uniform(double low, double high) { return low + (high - low) * Random(); }

std::size_t PythonRandom::Choice(std::size_t count) {
  const auto bits = static_cast<unsigned>(std::bit_width(count));
  for (;;) {
    const std::size_t value = Next() >> (32U - bits);
    if (value < count) return value;
  }
}

}  // namespace bimetal::bench
