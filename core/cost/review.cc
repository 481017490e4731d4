// What is lawful in a price book and yet asks for a person.
#include <algorithm>
#include <bit>
#include <set>
#include <string>

#include "core/cost/cost.h"
#include "core/cost/rates.h"
#include "core/model/saturate.h"

namespace bimetal::core::cost {
namespace {

constexpr std::int64_t kJump = 10;

std::string Name(const Price& price) {
  std::string name = "the price of " + std::string(VendorName(price.vendor)) + " " + price.model;
  if (!price.pool.empty()) name += " in pool " + price.pool;
  if (!price.purchase.empty()) name += " (" + price.purchase + ")";
  return name + " from " + FormatTime(price.from);
}

// The next of the same series, or nullptr.
const Price* NextOf(const PriceBook& book, const Price& price) {
  const Price* next = nullptr;
  for (const Price& other : book.prices) {
    const bool same = other.vendor == price.vendor && other.model == price.model &&
                      other.pool == price.pool && other.purchase == price.purchase;
    if (same && other.from > price.from && (next == nullptr || other.from < next->from)) {
      next = &other;
    }
  }
  return next;
}

class Reviewer {
 public:
  explicit Reviewer(const PriceBook& book) : book_(book) {}

  void Look(const Price& price) {
    const Price* next = NextOf(book_, price);
    if (price.to && (next == nullptr || *price.to < next->from)) {
      Say("PriceGap", Name(price) + " ends at " + FormatTime(*price.to) +
                          (next == nullptr ? " and none follows"
                                           : ", the next begins at " + FormatTime(next->from)) +
                          "; what runs then is shown as unpriced: close the gap");
    }
    if (price.hardware.v == 0) {
      Say("PriceIsZero", Name(price) + " is 0; write what the device costs");
    }
    if (next != nullptr && IsJump(price.hardware.v, next->hardware.v)) {
      Say("PriceJump", Name(*next) +
                           " differs more than tenfold from the one before; check the decimal "
                           "point and whether it is for one device");
    }
    if (!price.energy_told) {
      Say("EnergyNotPriced", Name(price) +
                                 " has no electricity; set energyZone or energyPerHour (0 where "
                                 "it is included)");
    }
    if (!price.labour_told && !HasPlatformLabour(price)) {
      Say("LabourNotSet", Name(price) +
                              " has no labour, which counts as 0; set platformLabour or "
                              "labourPerHour");
    }
    LookAtEnergy(price);
  }

  void LookAtExample() {
    if (!book_.example) return;
    Say("ExampleFigures",
        "the figures are an example, not your price; write yours and remove example");
  }

  std::vector<Finding> Result() { return {findings_.begin(), findings_.end()}; }

 private:
  void Say(std::string reason, std::string message) {
    findings_.insert({std::move(reason), std::move(message)});
  }

  static bool IsJump(std::int64_t a, std::int64_t b) {
    const auto [low, high] = std::minmax(a, b);
    return low > 0 && high / kJump >= low;
  }

  bool HasPlatformLabour(const Price& price) const {
    return std::any_of(book_.platform_labour.begin(), book_.platform_labour.end(),
                       [&](const PlatformLabour& one) {
                         return one.vendor == price.vendor &&
                                (one.pool.empty() || one.pool == price.pool || price.pool.empty());
                       });
  }

  // The zone of a price: tariffs for every hour while the price holds, and no odd ones.
  void LookAtEnergy(const Price& price) {
    if (price.energy_zone.empty()) return;
    std::set<TimePoint> edges = {price.from};
    for (const Tariff& tariff : book_.tariffs) {
      if (tariff.zone != price.energy_zone) continue;
      edges.insert(tariff.from);
      if (tariff.to) edges.insert(*tariff.to);
      // A kilowatt hour at the device for what the device costs in an hour: most draw less.
      if (EnergyCost(kMsPerHour * 1000, tariff.pue_milli, tariff.per_kilowatt_hour) >
              price.hardware &&
          price.hardware.v > 0) {
        Say("EnergyAboveHardware", "a kilowatt hour of zone " + tariff.zone + " from " +
                                       FormatTime(tariff.from) + " costs more than an hour of " +
                                       std::string(VendorName(price.vendor)) + " " + price.model +
                                       "; check perKilowattHour, which is not per megawatt hour");
      }
    }
    for (const TimePoint at : edges) {
      if (at < price.from || (price.to && at >= *price.to)) continue;
      const std::uint32_t covered = CoveredAt(price.energy_zone, at);
      if (covered == kWholeDay) continue;
      Say("TariffGap", "zone " + price.energy_zone + " has no tariff from " + FormatTime(at) +
                           " on for hour " + std::to_string(std::countr_one(covered)) +
                           " UTC; what runs then is shown as unpriced: add one");
    }
  }

  std::uint32_t CoveredAt(const std::string& zone, TimePoint at) const {
    std::uint32_t covered = 0;
    for (const Tariff& tariff : book_.tariffs) {
      if (tariff.zone == zone && tariff.from <= at && (!tariff.to || at < *tariff.to)) {
        covered |= tariff.hours;
      }
    }
    return covered;
  }

  const PriceBook& book_;
  std::set<Finding> findings_;
};

}  // namespace

std::vector<Finding> Review(const PriceBook& book) {
  Reviewer reviewer(book);
  for (const Price& price : book.prices) reviewer.Look(price);
  reviewer.LookAtExample();
  return reviewer.Result();
}

}  // namespace bimetal::core::cost
