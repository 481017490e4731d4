// Pricing intervals.
#include <algorithm>
#include <iterator>
#include <set>

#include "core/cost/cost.h"
#include "core/model/saturate.h"

namespace bimetal::core::cost {
namespace {

using Wide = __int128;

constexpr Wide kMsPerHour = 3'600'000;

// price * device_ms / hour, rounded once, half to even.
std::int64_t Amount(NanoCurrency per_hour, std::int64_t device_ms) {
  const Wide product = static_cast<Wide>(per_hour.v) * device_ms;
  Wide amount = product / kMsPerHour;
  const Wide twice_rest = product % kMsPerHour * 2;
  if (twice_rest > kMsPerHour || (twice_rest == kMsPerHour && amount % 2 != 0)) ++amount;
  return Saturate(amount);
}

void Add(NanoCurrency& sum, NanoCurrency per_hour, std::int64_t device_ms) {
  sum.v = SaturatingAdd(sum.v, Amount(per_hour, device_ms));
}

std::int64_t DeviceMs(std::int64_t devices, TimePoint begin, TimePoint end) {
  return SaturatingMultiply(devices, Saturate(static_cast<Wide>(end.ms) - begin.ms));
}

// One bill in the making.
class Biller {
 public:
  explicit Biller(const PriceBook* book) : book_(book) {}
  void Charge(const Interval& interval);
  Bill Result();

 private:
  void Missing(const Interval& interval, std::int64_t device_ms, const std::string& why);

  const PriceBook* book_;
  Bill bill_;
  std::set<std::string> missing_;
};

void Biller::Missing(const Interval& interval, std::int64_t device_ms, const std::string& why) {
  bill_.unpriced_ms = SaturatingAdd(bill_.unpriced_ms, device_ms);
  missing_.insert("no price for " + std::string(VendorName(interval.vendor)) + " " +
                  (interval.model.empty() ? "devices of unknown model" : interval.model) + why);
}

void Biller::Charge(const Interval& interval) {
  if (interval.devices <= 0 || interval.end <= interval.begin) return;
  const std::int64_t all = DeviceMs(interval.devices, interval.begin, interval.end);
  bill_.device_ms = SaturatingAdd(bill_.device_ms, all);
  if (book_ == nullptr) {
    Missing(interval, all, ", because no price book applies");
    return;
  }
  std::vector<const Price*> prices;  // in the book's order, by `from`
  for (const Price& price : book_->prices) {
    if (price.vendor == interval.vendor && price.model == interval.model) prices.push_back(&price);
  }
  if (prices.empty()) {
    Missing(interval, all, "");
    return;
  }
  const TimePoint first = std::min(interval.end, prices.front()->from);
  if (interval.begin < first) {
    Missing(interval, DeviceMs(interval.devices, interval.begin, first),
            " before " + FormatTime(prices.front()->from));
  }
  for (auto at = prices.begin(); at != prices.end(); ++at) {
    const auto next = std::next(at);
    const TimePoint begin = std::max(interval.begin, (*at)->from);
    const TimePoint end =
        next == prices.end() ? interval.end : std::min(interval.end, (*next)->from);
    if (end <= begin) continue;
    const std::int64_t device_ms = DeviceMs(interval.devices, begin, end);
    Add(bill_.hardware, (*at)->hardware, device_ms);
    Add(bill_.energy, (*at)->energy, device_ms);
    Add(bill_.labour, (*at)->labour, device_ms);
  }
}

Bill Biller::Result() {
  bill_.missing.assign(missing_.begin(), missing_.end());
  return std::move(bill_);
}

}  // namespace

NanoCurrency Bill::Total() const {
  return NanoCurrency{SaturatingAdd(SaturatingAdd(hardware.v, energy.v), labour.v)};
}

Bill PriceIntervals(const std::vector<Interval>& intervals, const PriceBook* book) {
  Biller biller(book);
  for (const Interval& interval : intervals) biller.Charge(interval);
  return biller.Result();
}

}  // namespace bimetal::core::cost
