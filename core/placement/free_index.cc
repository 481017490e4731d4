#include "core/placement/free_index.h"

namespace bimetal::core::placement {

FreeIndex::FreeIndex(const std::vector<std::int64_t>& free) : words_((free.size() + 63) / 64) {
  for (std::size_t i = 0; i < free.size(); ++i) {
    Row& row = RowOf(free[i]);
    row.bits[i / 64] |= std::uint64_t{1} << (i % 64);
    ++row.count;
  }
}

FreeIndex::Row& FreeIndex::RowOf(std::int64_t free) {
  Row& row = rows_[free];
  if (row.bits.empty()) row.bits.resize(words_);
  return row;
}

void FreeIndex::Move(std::size_t number, std::int64_t from, std::int64_t to) {
  const std::uint64_t bit = std::uint64_t{1} << (number % 64);
  Row& target = RowOf(to);
  target.bits[number / 64] |= bit;
  ++target.count;
  const auto source = rows_.find(from);
  source->second.bits[number / 64] &= ~bit;
  if (--source->second.count == 0) rows_.erase(source);
}

}  // namespace bimetal::core::placement
