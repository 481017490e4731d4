#include "operator/controllers/pool_prices.h"

#include <cstddef>
#include <vector>

#include "core/cost/price_book.h"
#include "core/cost/rates.h"

namespace bimetal::op {
namespace {

constexpr std::size_t kShown = 3;  // of a list, in a message

std::string Joined(const std::vector<std::string>& texts) {
  std::string out;
  for (std::size_t i = 0; i < texts.size() && i < kShown; ++i) {
    out += (i == 0 ? "" : "; ") + texts[i];
  }
  if (texts.size() > kShown) out += "; and " + std::to_string(texts.size() - kShown) + " more";
  return out;
}

}  // namespace

PoolPricing JudgePricing(const api::GPUPool& pool, core::Vendor vendor,
                         const std::set<std::string>& models,
                         const std::map<std::string, api::PriceBook>& books, TimePoint now) {
  const std::string& name = pool.spec().price_book_name();
  if (name.empty()) {
    return {"False", "NoPriceBook",
            "spec.priceBookName is not set: what runs here is shown without a cost"};
  }
  const auto object = books.find(name);
  if (object == books.end()) {
    return {"False", "PriceBookNotFound",
            "there is no PriceBook \"" + name +
                "\" (spec.priceBookName); create it: kubectl get pricebooks shows which there are"};
  }
  const auto book = core::cost::PriceBookFromApi(object->second);
  if (!book) {
    return {"False", "PriceBookInvalid", "PriceBook " + name + ": " + book.error().message};
  }
  std::vector<std::string> missing;
  for (const auto& model : models) {
    const auto rates = core::cost::RatesAt(
        *book, {.vendor = vendor, .model = model, .pool = pool.metadata().name()}, now);
    if (!rates.missing.empty()) missing.push_back(rates.missing);
  }
  if (!missing.empty()) {
    return {"False", "PriceMissing",
            "PriceBook " + name + ": " + Joined(missing) +
                "; add an entry, what runs there meanwhile is shown without a cost"};
  }
  const auto findings = core::cost::Review(*book);
  if (findings.empty()) return {"True", "Priced", ""};
  std::vector<std::string> texts;
  for (const auto& finding : findings) texts.push_back(finding.message);
  return {"True", findings.front().reason, "PriceBook " + name + ": " + Joined(texts)};
}

}  // namespace bimetal::op
