// Reading a PriceBook.
#include <algorithm>
#include <string>
#include <tuple>

#include "core/cost/cost.h"
#include "core/model/check.h"

namespace bimetal::core::cost {
namespace {

constexpr int kMaxPrices = 256;

// A component that is left out costs nothing; one that is there must be a number.
Result<NanoCurrency> ReadMoney(const std::string& text, const std::string& field) {
  if (text.empty()) return NanoCurrency{0};
  const auto money = ParseMoney(text);
  if (!money) return tl::unexpected(WithContext(money.error(), field));
  return *money;
}

Result<Price> ReadPrice(const api::Price& from, const std::string& path) {
  Price price;
  const auto vendor = ParseVendor(from.vendor());
  if (!vendor) return tl::unexpected(WithContext(vendor.error(), path + ".vendor"));
  price.vendor = *vendor;
  BIMETAL_TRY(CheckText(path + ".model", from.model(), 256));
  price.model = from.model();
  BIMETAL_TRY(CheckText(path + ".from", from.from(), 64));
  const auto begin = ParseTime(from.from());
  if (!begin) return tl::unexpected(WithContext(begin.error(), path + ".from"));
  price.from = *begin;
  BIMETAL_TRY(CheckText(path + ".hardwarePerHour", from.hardware_per_hour(), 64));
  BIMETAL_TRY_ASSIGN(price.hardware,
                     ReadMoney(from.hardware_per_hour(), path + ".hardwarePerHour"));
  BIMETAL_TRY_ASSIGN(price.energy, ReadMoney(from.energy_per_hour(), path + ".energyPerHour"));
  BIMETAL_TRY_ASSIGN(price.labour, ReadMoney(from.labour_per_hour(), path + ".labourPerHour"));
  return price;
}

auto Key(const Price& price) { return std::tie(price.vendor, price.model, price.from); }

}  // namespace

Result<PriceBook> PriceBookFromApi(const api::PriceBook& from) {
  const auto& spec = from.spec();
  PriceBook book;
  book.currency = spec.currency();
  const bool iso =
      book.currency.size() == 3 && std::all_of(book.currency.begin(), book.currency.end(),
                                               [](char c) { return c >= 'A' && c <= 'Z'; });
  if (!iso) {
    return FieldError("spec.currency", Quoted(book.currency) +
                                           " is no ISO 4217 code; use three capital letters such "
                                           "as USD");
  }
  BIMETAL_TRY(CheckCount("spec.prices", spec.prices_size(), 1, kMaxPrices));
  for (int i = 0; i < spec.prices_size(); ++i) {
    const std::string path = At("spec.prices", i);
    BIMETAL_TRY_ASSIGN(const Price price, ReadPrice(spec.prices(i), path));
    const bool twice = std::any_of(book.prices.begin(), book.prices.end(),
                                   [&](const Price& other) { return Key(other) == Key(price); });
    if (twice) {
      return FieldError(path, "vendor " + std::string(VendorName(price.vendor)) + ", model " +
                                  Quoted(price.model) + " and from " + FormatTime(price.from) +
                                  " are there twice; remove one");
    }
    book.prices.push_back(price);
  }
  std::sort(book.prices.begin(), book.prices.end(),
            [](const Price& a, const Price& b) { return Key(a) < Key(b); });
  return book;
}

}  // namespace bimetal::core::cost
