// Pricing intervals.
#include <algorithm>
#include <set>

#include "core/cost/cost.h"
#include "core/cost/rates.h"
#include "core/cost/ratio.h"
#include "core/model/saturate.h"

namespace bimetal::core::cost {
namespace {

using Wide = __int128;

void Add(NanoCurrency& sum, NanoCurrency per_hour, std::int64_t device_ms) {
  sum.v = SaturatingAdd(sum.v, MultiplyDivide(per_hour.v, device_ms, kMsPerHour));
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
  void Missing(std::int64_t device_ms, const std::string& why);

  const PriceBook* book_;
  Bill bill_;
  std::set<std::string> missing_;
};

void Biller::Charge(const Interval& interval) {
  if (interval.devices <= 0 || interval.end <= interval.begin) return;
  const std::int64_t all = DeviceMs(interval.devices, interval.begin, interval.end);
  bill_.device_ms = SaturatingAdd(bill_.device_ms, all);
  const DeviceKind kind{
      .vendor = interval.vendor, .model = interval.model, .pool = interval.pool, .purchase = {}};
  if (book_ == nullptr) {
    Missing(all, RatesAt({}, kind, interval.begin).missing + ", because no price book applies");
    return;
  }
  TimePoint begin = interval.begin;
  while (begin < interval.end) {
    const Rates rates = RatesAt(*book_, kind, begin);
    const TimePoint end = std::min(interval.end, rates.until.value_or(interval.end));
    const std::int64_t device_ms = DeviceMs(interval.devices, begin, end);
    begin = end;
    if (!rates.missing.empty()) {
      Missing(device_ms, rates.missing);
      continue;
    }
    Add(bill_.hardware, rates.hardware, device_ms);
    Add(bill_.energy, rates.energy, device_ms);
    Add(bill_.labour, rates.labour, device_ms);
  }
}

void Biller::Missing(std::int64_t device_ms, const std::string& why) {
  bill_.unpriced_ms = SaturatingAdd(bill_.unpriced_ms, device_ms);
  missing_.insert(why);
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
