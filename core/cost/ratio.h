#pragma once

#include <compare>
#include <cstdint>
#include <vector>

#include "core/base/result.h"

// Exact fractions, and the two ways in which a whole number is made of one: rounding once, half to
// even, and dealing a whole out over parts so that nothing is lost. Every share, price and joule of
// the ledger goes through these; products are taken in 128 bits, no floating point anywhere.
namespace bimetal::core::cost {

// A fraction in lowest terms; the denominator is positive. Immutable.
class Ratio {
 public:
  constexpr Ratio() = default;  // 0
  // REQUIRES: denominator > 0; numerator above the lowest int64.
  static Ratio Of(std::int64_t numerator, std::int64_t denominator);
  static Ratio One() { return Of(1, 1); }

  std::int64_t numerator() const { return numerator_; }
  std::int64_t denominator() const { return denominator_; }

  bool operator==(const Ratio&) const = default;
  std::strong_ordering operator<=>(const Ratio& other) const;

 private:
  std::int64_t numerator_ = 0;
  std::int64_t denominator_ = 1;
};

// Exact. Error kUnsupported where the result in lowest terms does not fit int64, which no layout of
// one device comes near; it is never rounded.
Result<Ratio> Add(Ratio a, Ratio b);
Result<Ratio> Subtract(Ratio a, Ratio b);
Result<Ratio> Multiply(Ratio a, Ratio b);

// numerator / denominator, rounded once, half to even; also for negative numerators (an adjustment
// row is signed). REQUIRES: denominator > 0.
__int128 RoundHalfEven(__int128 numerator, __int128 denominator);

// a * b / denominator, rounded once, half to even; stops at the ends of int64.
// REQUIRES: denominator > 0.
std::int64_t MultiplyDivide(std::int64_t a, std::int64_t b, std::int64_t denominator);

// Deals `total` out by `shares`, whose sum is 1: each part gets its exact amount rounded down, and
// the units left over go one each to the parts that lost most by it, the earlier part first where
// two lost the same. So the parts add up to `total` exactly, each is within one unit of its exact
// amount, none has the other sign, and a share of 0 gets 0. A negative total is the mirror image.
// REQUIRES: shares are not negative and add up to 1.
std::vector<std::int64_t> Apportion(std::int64_t total, const std::vector<Ratio>& shares);

// The same by whole-number weights, as for an overhead over what each job cost. All weights 0: the
// parts are 0 and nothing is dealt out, which the caller sees by their sum.
// REQUIRES: weights are not negative.
std::vector<std::int64_t> ApportionByWeight(std::int64_t total,
                                            const std::vector<std::int64_t>& weights);

}  // namespace bimetal::core::cost
