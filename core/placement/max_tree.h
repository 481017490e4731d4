#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace bimetal::core::placement {

// The greatest of many numbers and the first place that has it, kept up while single numbers
// change: O(log n) a change, O(log n) to find the place. Value type.
class MaxTree {
 public:
  static constexpr std::int32_t kNone = std::numeric_limits<std::int32_t>::min();

  explicit MaxTree(std::size_t size = 0) {
    while (width_ < size) width_ *= 2;
    values_.assign(2 * width_, kNone);
  }

  // REQUIRES: place < size.
  void Set(std::size_t place, std::int32_t value) {
    std::size_t at = width_ + place;
    if (values_[at] == value) return;
    values_[at] = value;
    for (at /= 2; at > 0; at /= 2) {
      const std::int32_t best = std::max(values_[2 * at], values_[2 * at + 1]);
      if (values_[at] == best) return;
      values_[at] = best;
    }
  }

  // Sets all values at once: `value(place)` of each place below `size`.
  template <class Value>
  void Fill(std::size_t size, const Value& value) {
    for (std::size_t place = 0; place < size; ++place) values_[width_ + place] = value(place);
    for (std::size_t at = width_ - 1; at > 0; --at) {
      values_[at] = std::max(values_[2 * at], values_[2 * at + 1]);
    }
  }

  // kNone where no place has a value.
  std::int32_t Max() const { return values_[1]; }

  // The first place with the greatest value. REQUIRES: Max() != kNone.
  std::size_t First() const {
    std::size_t at = 1;
    while (at < width_) at = values_[2 * at] == values_[at] ? 2 * at : 2 * at + 1;
    return at - width_;
  }

 private:
  std::size_t width_ = 1;
  std::vector<std::int32_t> values_;  // [1] is the root, [width_ + i] place i
};

}  // namespace bimetal::core::placement
