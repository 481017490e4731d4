#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace bimetal::kernels {

// Collects the results of one and the same work done by many units, many times. The hardware is
// deterministic: whoever differs from the majority is wrong, in whatever bit.
class CopyTally {
 public:
  struct Wrong {
    std::uint64_t count = 0;     // of wrong results
    std::uint32_t work = 0;      // of the first one
    std::size_t offset = 0;      // of its first wrong byte
    std::uint64_t expected = 0;  // the word there, `word_bytes` wide
    std::uint64_t found = 0;
  };

  // REQUIRES: word_bytes is 4 or 8.
  explicit CopyTally(std::size_t word_bytes) : word_bytes_(word_bytes) {}

  // One result of the work item `work`, computed by `unit`. Results of one item have one size.
  void Add(std::uint32_t work, std::uint64_t unit, std::span<const std::byte> result);

  // What most copies of an item say; ties go to the one seen first. Null: never computed.
  const std::vector<std::byte>* Majority(std::uint32_t work) const;
  // The units whose results differ from the majority's, with the first difference of each.
  std::map<std::uint64_t, Wrong> WrongUnits() const;
  // Results counted, by unit.
  const std::map<std::uint64_t, std::uint64_t>& units() const { return units_; }
  // Items where no result has more than half of the copies.
  std::uint64_t Undecided() const;

 private:
  struct Variant {
    std::vector<std::byte> result;
    std::map<std::uint64_t, std::uint64_t> units;
    std::uint64_t copies = 0;
  };
  static const Variant* Top(const std::vector<Variant>& variants);

  std::size_t word_bytes_;
  std::map<std::uint32_t, std::vector<Variant>> items_;
  std::map<std::uint64_t, std::uint64_t> units_;
};

// "unit 17: 6 of 6 results wrong, ITEM 3 at 5, expected 0x.., found 0x..; unit .."; at most eight
// units by name.
std::string DescribeWrongUnits(const std::map<std::uint64_t, CopyTally::Wrong>& wrong,
                               const std::map<std::uint64_t, std::uint64_t>& units,
                               std::string_view item, std::size_t word_bytes);

}  // namespace bimetal::kernels
