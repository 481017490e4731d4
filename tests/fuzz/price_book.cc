// Price books and what is billed by them; amounts of money.
#include "api/fleet.pb.h"
#include "core/cost/cost.h"
#include "core/cost/rates.h"
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
  for (const auto& finding : cost::Review(*book)) Require(!finding.message.empty());
  std::vector<cost::Interval> intervals;
  for (const auto& price : book->prices) {
    // A day around the price's beginning: half of it may be before every price.
    intervals.push_back({price.vendor, price.model, 8, price.from - Minutes(12 * 60),
                         price.from + Minutes(12 * 60), price.pool});
    const cost::DeviceKind kind{price.vendor, price.model, price.pool, price.purchase};
    const auto rates = cost::RatesAt(*book, kind, price.from);
    Require(!rates.until || *rates.until > price.from);
    // Where the purchase is open, prices of several may hold, and then none is taken.
    Require(rates.missing.empty() || !price.energy_zone.empty() || price.purchase.empty());
  }
  const auto bill = cost::PriceIntervals(intervals, &*book);
  Require(bill.unpriced_ms <= bill.device_ms);
  Require(bill.missing.empty() == (bill.unpriced_ms == 0));
  Require(bill.hardware.v >= 0 && bill.energy.v >= 0 && bill.labour.v >= 0);
  Require(bill.Total().v >= bill.hardware.v);
}
