#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace bimetal::core::placement {

// The numbers 0 .. n-1 (nodes, or domains), each with a count of free devices, in the order
// (count, number): to find the fullest that has enough. One bit each in a row per count, because
// there are few counts and many changes. Loop thread only.
class FreeIndex {
 public:
  // Number i has free[i], never negative.
  explicit FreeIndex(const std::vector<std::int64_t>& free = {});

  // REQUIRES: `number` has `from`.
  void Move(std::size_t number, std::int64_t from, std::int64_t to);

  // Calls visit(number) for those with at least `least`, in order, until it returns true; true
  // where it did. `visit` must not change the index.
  template <class Visit>
  bool Any(std::int64_t least, Visit&& visit) const {
    for (auto at = rows_.lower_bound(least); at != rows_.end(); ++at) {
      for (std::size_t word = 0; word < words_; ++word) {
        for (std::uint64_t bits = at->second.bits[word]; bits != 0; bits &= bits - 1) {
          if (visit(word * 64 + static_cast<std::size_t>(__builtin_ctzll(bits)))) return true;
        }
      }
    }
    return false;
  }

 private:
  struct Row {
    std::vector<std::uint64_t> bits;
    std::size_t count = 0;
  };
  Row& RowOf(std::int64_t free);

  std::size_t words_ = 0;
  std::map<std::int64_t, Row> rows_;  // by count; none is empty
};

}  // namespace bimetal::core::placement
