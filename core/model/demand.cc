#include "core/model/demand.h"

#include <algorithm>
#include <string_view>

#include "core/base/quantity.h"
#include "core/model/saturate.h"

namespace bimetal::core {
namespace {

// Quantities by resource name: "cpu" in thousandths, everything else in whole units.
using Amounts = std::map<std::string, std::int64_t>;

void Add(Amounts& to, const Amounts& from) {
  for (const auto& [name, amount] : from) to[name] = SaturatingAdd(to[name], amount);
}

void Raise(Amounts& to, const Amounts& from) {
  for (const auto& [name, amount] : from) to[name] = std::max(to[name], amount);
}

Result<Amounts> Read(const QuantityMap& quantities, const std::string& path) {
  Amounts amounts;
  for (const auto& [name, text] : quantities) {
    const auto amount = name == "cpu" ? ParseQuantityMilli(text) : ParseQuantity(text);
    const std::string field = path + "[\"" + name + "\"]";
    if (!amount) return tl::unexpected(WithContext(amount.error(), field));
    if (*amount < 0) {
      return Fail(ErrorCode::kInvalid, field + ": \"" + text + "\" is negative; use 0 or more");
    }
    amounts[name] = *amount;
  }
  return amounts;
}

Result<Amounts> RequestsOf(const api::Container& container, const std::string& path) {
  const std::string at = path + ".resources";
  BIMETAL_TRY_ASSIGN(Amounts requests, Read(container.resources().requests(), at + ".requests"));
  BIMETAL_TRY_ASSIGN(const Amounts limits, Read(container.resources().limits(), at + ".limits"));
  for (const auto& [name, limit] : limits) {
    const auto [request, absent] = requests.emplace(name, limit);
    if (!absent && request->second > limit) {
      return Fail(ErrorCode::kInvalid, at + ".requests[\"" + name +
                                           "\"]: is more than the limit; lower it or raise the "
                                           "limit");
    }
  }
  return requests;
}

// The API has no typed field for it, so the container's JSON text is asked. As a key the word is
// only ever a container's own; inside a string its quotes are escaped.
bool IsSidecar(const api::Container& container) {
  constexpr std::string_view kKey = "\"restartPolicy\"", kBlank = " \t\r\n";
  const std::string_view raw = container.raw();
  for (auto at = raw.find(kKey); at != std::string_view::npos; at = raw.find(kKey, at + 1)) {
    if (at > 0 && raw[at - 1] == '\\') continue;
    auto next = raw.find_first_not_of(kBlank, at + kKey.size());
    if (next == std::string_view::npos || raw[next] != ':') continue;
    next = raw.find_first_not_of(kBlank, next + 1);
    if (next != std::string_view::npos && raw.substr(next).starts_with("\"Always\"")) return true;
  }
  return false;
}

std::int64_t Take(Amounts& from, const std::string& name) {
  const auto found = from.find(name);
  if (found == from.end()) return 0;
  const std::int64_t amount = found->second;
  from.erase(found);
  return amount;
}

}  // namespace

Result<PodDemand> DemandOfPod(const ContainerList& containers, const ContainerList& init_containers,
                              const QuantityMap& overhead, const std::string& path) {
  Amounts total, sidecars, peak;
  for (int i = 0; i < containers.size(); ++i) {
    const std::string at = path + ".containers[" + std::to_string(i) + "]";
    BIMETAL_TRY_ASSIGN(const Amounts requests, RequestsOf(containers[i], at));
    Add(total, requests);
  }
  for (int i = 0; i < init_containers.size(); ++i) {
    const std::string at = path + ".initContainers[" + std::to_string(i) + "]";
    BIMETAL_TRY_ASSIGN(Amounts moment, RequestsOf(init_containers[i], at));
    if (IsSidecar(init_containers[i])) {
      Add(sidecars, moment);
      Raise(peak, sidecars);
    } else {
      Add(moment, sidecars);
      Raise(peak, moment);
    }
  }
  Add(total, sidecars);
  Raise(total, peak);
  BIMETAL_TRY_ASSIGN(const Amounts extra, Read(overhead, path + ".overhead"));
  Add(total, extra);

  PodDemand demand;
  demand.requests.cpu_milli = Take(total, "cpu");
  demand.requests.memory_bytes = Take(total, "memory");
  demand.requests.pods = 1;
  demand.extended = std::move(total);
  return demand;
}

}  // namespace bimetal::core
