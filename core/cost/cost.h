#pragma once

#include <string>
#include <vector>

#include "core/base/ids.h"
#include "core/base/result.h"
#include "core/base/time.h"
#include "core/cost/price_book.h"
#include "core/model/vendor.h"

namespace bimetal::core::cost {

// A time during which a pod held `devices` whole devices of one model. [begin, end).
struct Interval {
  Vendor vendor = Vendor::kNvidia;
  std::string model;
  std::int64_t devices = 0;
  TimePoint begin, end;
  std::string pool = {};  // whose prices hold; "": those of every pool
};

struct Bill {
  std::int64_t device_ms = 0;    // all intervals, priced or not
  std::int64_t unpriced_ms = 0;  // device time for which the book has no price
  NanoCurrency hardware, energy, labour;
  std::vector<std::string>
      missing;  // "no price for nvidia X before 2026-01-01T00:00:00Z"; sorted, unique
  NanoCurrency Total() const;
};

// Prices intervals against `book`; a price change inside an interval splits it. Each component of
// each split row is rounded once, half to even (notes: cost model 3.4). Products are taken in 128
// bits. Intervals whose end is not after their begin count as nothing. Without a book everything is
// unpriced. Energy is the flat figure, or that of the assumed power: joules are not seen here.
Bill PriceIntervals(const std::vector<Interval>& intervals, const PriceBook* book);

// "12.345" from milliseconds.
std::string FormatSeconds(std::int64_t ms);
// "0.012345678" with trailing zeros cut to at least two decimals: "1.20", "0.0123".
std::string FormatMoney(NanoCurrency money);
// Parses a decimal of at most 9 decimals. Error kInvalid for signs, more decimals or over 9.2e9.
Result<NanoCurrency> ParseMoney(std::string_view text);

}  // namespace bimetal::core::cost
