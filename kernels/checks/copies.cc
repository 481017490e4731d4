#include "kernels/checks/copies.h"

#include <algorithm>
#include <cstring>

#include "kernels/checks/check.h"

namespace bimetal::kernels {
namespace {

constexpr std::size_t kNamedUnits = 8;
// More different answers to one item than this are all simply wrong.
constexpr std::size_t kMaxVariants = 64;

std::uint64_t WordAt(std::span<const std::byte> bytes, std::size_t offset, std::size_t size) {
  std::uint64_t word = 0;
  std::memcpy(&word, bytes.data() + offset, size);
  return word;
}

}  // namespace

void CopyTally::Add(std::uint32_t work, std::uint64_t unit, std::span<const std::byte> result) {
  ++units_[unit];
  std::vector<Variant>& variants = items_[work];
  for (Variant& variant : variants) {
    if (std::memcmp(variant.result.data(), result.data(), result.size()) != 0) continue;
    ++variant.units[unit];
    ++variant.copies;
    return;
  }
  if (variants.size() == kMaxVariants) {
    ++variants.back().units[unit];
    return;
  }
  variants.push_back({{result.begin(), result.end()}, {{unit, 1}}, 1});
}

const CopyTally::Variant* CopyTally::Top(const std::vector<Variant>& variants) {
  return &*std::max_element(variants.begin(), variants.end(),
                            [](const Variant& a, const Variant& b) { return a.copies < b.copies; });
}

const std::vector<std::byte>* CopyTally::Majority(std::uint32_t work) const {
  const auto item = items_.find(work);
  return item == items_.end() ? nullptr : &Top(item->second)->result;
}

std::uint64_t CopyTally::Undecided() const {
  std::uint64_t undecided = 0;
  for (const auto& [work, variants] : items_) {
    std::uint64_t all = 0;
    for (const Variant& variant : variants) all += variant.copies;
    if (Top(variants)->copies * 2 <= all) ++undecided;
  }
  return undecided;
}

std::map<std::uint64_t, CopyTally::Wrong> CopyTally::WrongUnits() const {
  std::map<std::uint64_t, Wrong> wrong_units;
  for (const auto& [work, variants] : items_) {
    const Variant* top = Top(variants);
    for (const Variant& variant : variants) {
      if (&variant == top) continue;
      std::size_t offset = 0;
      while (variant.result[offset] == top->result[offset]) ++offset;
      offset = offset / word_bytes_ * word_bytes_;
      for (const auto& [unit, count] : variant.units) {
        Wrong& wrong = wrong_units[unit];
        if (wrong.count == 0) {
          wrong.work = work;
          wrong.offset = offset;
          wrong.expected = WordAt(top->result, offset, word_bytes_);
          wrong.found = WordAt(variant.result, offset, word_bytes_);
        }
        wrong.count += count;
      }
    }
  }
  return wrong_units;
}

std::string DescribeWrongUnits(const std::map<std::uint64_t, CopyTally::Wrong>& wrong_units,
                               const std::map<std::uint64_t, std::uint64_t>& units,
                               std::string_view item, std::size_t word_bytes) {
  std::string text;
  std::size_t named = 0;
  for (const auto& [unit, wrong] : wrong_units) {
    if (named++ == kNamedUnits) break;
    const auto all = units.find(unit);
    text += (text.empty() ? "" : "; ") + std::string("unit ") + std::to_string(unit) + ": " +
            std::to_string(wrong.count) + " of " +
            std::to_string(all == units.end() ? 0 : all->second) + " results wrong, first " +
            std::string(item) + " " + std::to_string(wrong.work) + ", element " +
            std::to_string(wrong.offset / word_bytes) + ", expected " + Hex(wrong.expected) +
            ", found " + Hex(wrong.found);
  }
  if (wrong_units.size() > kNamedUnits) {
    text += "; " + std::to_string(wrong_units.size() - kNamedUnits) + " more units wrong";
  }
  return text;
}

}  // namespace bimetal::kernels
