#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace bimetal::bench {

// The numbers of Python's random.Random(seed): MT19937, seeded by array. Loop thread only.
class PythonRandom {
 public:
  explicit PythonRandom(std::uint32_t seed);

  double Random();                          // [0, 1)
  double Uniform(double low, double high);  // as random.uniform
  std::size_t Choice(std::size_t count);    // the index that random.choice takes of `count` > 0

 private:
  std::uint32_t Next();

  std::array<std::uint32_t, 624> state_;
  std::size_t at_ = 624;
};

}  // namespace bimetal::bench
