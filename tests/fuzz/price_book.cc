// Price books and what is billed by them; amounts of money.
#include "api/fleet.pb.h"
#include "core/cost/cost.h"
#include "tests/fuzz/round_trip.h"

BIMETAL_FUZZ(text) {
  namespace cost = core::cost;
  if (const auto money = cost::ParseMoney(text)) {
    const auto back = cost::ParseMoney(cost::FormatMoney(*money));
    Require(back && *back == *money);
  }
  api::PriceBook object;
  if (!ReadObject(text, &object)) return;
  const auto book = cost::PriceBookFromApi(object);
  if (!book) return Require(!book.error().message.empty());
  std::vector<cost::Interval> intervals;
  for (const auto& price : book->prices) {
    // A day around the price's beginning: half of it is billed at least.
    intervals.push_back({price.vendor, price.model, 8, price.from - Minutes(12 * 60),
                         price.from + Minutes(12 * 60)});
  }
  const auto bill = cost::PriceIntervals(intervals, &*book);
  Require(bill.unpriced_ms * 2 <= bill.device_ms);
  Require(bill.hardware.v >= 0 && bill.energy.v >= 0 && bill.labour.v >= 0);
  Require(bill.Total().v >= bill.hardware.v);
}
