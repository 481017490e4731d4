#include "core/cost/ratio.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "core/model/saturate.h"

namespace bimetal::core::cost {
namespace {

using Wide = __int128;
using UnsignedWide = unsigned __int128;

Wide Gcd(Wide a, Wide b) {
  while (b != 0) {
    const Wide rest = a % b;
    a = b;
    b = rest;
  }
  return a < 0 ? -a : a;
}

// Terms within 2^126 of a sum of two fractions of int64 terms: the product of the reduced parts.
Result<Ratio> Reduced(Wide numerator, Wide denominator) {
  const Wide divisor = Gcd(numerator, denominator);
  numerator /= divisor;
  denominator /= divisor;
  constexpr Wide kMax = std::numeric_limits<std::int64_t>::max();
  if (numerator > kMax || numerator < -kMax || denominator > kMax) {
    return Fail(ErrorCode::kUnsupported,
                "a fraction needs more than 63 bits; use equal numbers of replicas on a device");
  }
  return Ratio::Of(static_cast<std::int64_t>(numerator), static_cast<std::int64_t>(denominator));
}

// What a part lost by rounding down: rest / denominator, below 1.
struct Lost {
  Wide rest = 0;
  Wide denominator = 1;
};

// Gives the units that rounding down left over to those who lost most.
std::vector<std::int64_t> Deal(std::vector<Wide> floors, const std::vector<Lost>& lost, Wide total,
                               bool negative) {
  std::vector<std::size_t> order(floors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  // The denominators are below 2^63, and so are the rests: the products fit.
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return lost[a].rest * lost[b].denominator > lost[b].rest * lost[a].denominator;
  });
  Wide left = total - std::accumulate(floors.begin(), floors.end(), Wide{0});
  for (const std::size_t i : order) {
    if (left <= 0) break;
    ++floors[i];
    --left;
  }
  std::vector<std::int64_t> parts;
  for (const Wide part : floors) parts.push_back(Saturate(negative ? -part : part));
  return parts;
}

Wide Magnitude(std::int64_t value) { return value < 0 ? -Wide{value} : Wide{value}; }

}  // namespace

Ratio Ratio::Of(std::int64_t numerator, std::int64_t denominator) {
  BIMETAL_CHECK(denominator > 0);
  BIMETAL_CHECK(numerator > std::numeric_limits<std::int64_t>::min());
  const std::int64_t divisor = std::gcd(numerator, denominator);
  Ratio ratio;
  ratio.numerator_ = numerator / divisor;
  ratio.denominator_ = denominator / divisor;
  return ratio;
}

std::strong_ordering Ratio::operator<=>(const Ratio& other) const {
  return static_cast<Wide>(numerator_) * other.denominator_ <=>
         static_cast<Wide>(other.numerator_) * denominator_;
}

Result<Ratio> Add(Ratio a, Ratio b) {
  // Over the least common denominator, so that the sum stays below 2^127.
  const std::int64_t divisor = std::gcd(a.denominator(), b.denominator());
  const Wide left = static_cast<Wide>(a.numerator()) * (b.denominator() / divisor);
  const Wide right = static_cast<Wide>(b.numerator()) * (a.denominator() / divisor);
  return Reduced(left + right, static_cast<Wide>(a.denominator()) * (b.denominator() / divisor));
}

Result<Ratio> Subtract(Ratio a, Ratio b) {
  return Add(a, Ratio::Of(-b.numerator(), b.denominator()));
}

Result<Ratio> Multiply(Ratio a, Ratio b) {
  return Reduced(static_cast<Wide>(a.numerator()) * b.numerator(),
                 static_cast<Wide>(a.denominator()) * b.denominator());
}

__int128 RoundHalfEven(__int128 numerator, __int128 denominator) {
  const bool negative = numerator < 0;
  const UnsignedWide magnitude =
      negative ? -static_cast<UnsignedWide>(numerator) : static_cast<UnsignedWide>(numerator);
  const auto divisor = static_cast<UnsignedWide>(denominator);
  UnsignedWide quotient = magnitude / divisor;
  const UnsignedWide rest = magnitude % divisor;
  const UnsignedWide other = divisor - rest;  // compared in place of 2 * rest, which may not fit
  if (rest > other || (rest == other && quotient % 2 != 0)) ++quotient;
  return negative ? -static_cast<Wide>(quotient) : static_cast<Wide>(quotient);
}

std::int64_t MultiplyDivide(std::int64_t a, std::int64_t b, std::int64_t denominator) {
  return Saturate(RoundHalfEven(static_cast<Wide>(a) * b, denominator));
}

std::vector<std::int64_t> Apportion(std::int64_t total, const std::vector<Ratio>& shares) {
  const Wide magnitude = Magnitude(total);
  std::vector<Wide> floors;
  std::vector<Lost> lost;
  for (const Ratio& share : shares) {
    const Wide product = magnitude * share.numerator();
    floors.push_back(product / share.denominator());
    lost.push_back({product % share.denominator(), share.denominator()});
  }
  return Deal(std::move(floors), lost, magnitude, total < 0);
}

std::vector<std::int64_t> ApportionByWeight(std::int64_t total,
                                            const std::vector<std::int64_t>& weights) {
  const Wide sum = std::accumulate(weights.begin(), weights.end(), Wide{0});
  if (sum == 0) return std::vector<std::int64_t>(weights.size(), 0);
  const Wide magnitude = Magnitude(total);
  std::vector<Wide> floors;
  std::vector<Lost> lost;
  for (const std::int64_t weight : weights) {
    const Wide product = magnitude * weight;
    floors.push_back(product / sum);
    // One denominator for all: the rests compare as they are, however large the sum.
    lost.push_back({product % sum, 1});
  }
  return Deal(std::move(floors), lost, magnitude, total < 0);
}

}  // namespace bimetal::core::cost
