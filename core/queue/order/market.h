#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

// Who gets which devices when everybody is worth something different everywhere: prices at which no
// class is asked for more than it has, and the assignment that they lead to.
namespace bimetal::core::queue::order {

// Worths and prices are fixed point without a unit; only their ratios matter.
struct Bidder {
  std::int64_t devices = 1;         // > 0
  std::vector<std::int64_t> worth;  // by class, of all its devices together, 0 .. kMaxWorth; 0:
                                    // cannot be there
};

inline constexpr std::int64_t kMaxWorth = std::int64_t{1} << 52;

// Prices of one device of each class: the lowest, found by raising them from 0 in turn, at which
// the bidders who ask for a class because it leaves them most (worth less devices times price) fit
// into it, but for what does not divide evenly. Pure; ties go to the lower index of bidder.
std::vector<std::int64_t> Prices(const std::vector<Bidder>& bidders,
                                 const std::vector<std::int64_t>& devices);

// The class of each bidder. Bidders are served by what the prices leave them per device; each goes
// to the class that leaves it most, among those with room. Nothing is left free that a bidder
// without a class could use. Pure; ties go to the cheaper class (whoever set a price by losing
// there is at home elsewhere), then to the lower index of class and of bidder.
std::vector<std::optional<std::size_t>> Assign(const std::vector<Bidder>& bidders,
                                               const std::vector<std::int64_t>& devices);

}  // namespace bimetal::core::queue::order
