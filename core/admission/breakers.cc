#include "core/admission/breakers.h"

#include <algorithm>
#include <utility>

namespace bimetal::core::admission {
namespace {

constexpr std::string_view kWayBack =
    "; revalidate a node (bimetal validate NODE) to run it all the same, or change the profile's "
    "breakers";

std::string Count(int n, std::string_view what) {
  return std::to_string(n) + " " + std::string(what) + (n == 1 ? "" : "s");
}

std::string Describe(const SameFailure& failure) {
  return Count(failure.nodes, "node") + " failed check " + failure.check + " under driver " +
         (failure.driver_version.empty() ? "unknown" : failure.driver_version);
}

// True where `part` of `whole` is more than `percent`. Counts are far from overflow.
bool MoreThan(int part, int whole, int percent) {
  return std::int64_t{part} * 100 > std::int64_t{whole} * percent;
}

std::string Share(int part, int whole, std::string_view what, int percent) {
  return std::to_string(part) + " of " + Count(whole, "node") + " of the pool are " +
         std::string(what) + ", more than the " + std::to_string(percent) + " % of the profile";
}

}  // namespace

BreakerState Assess(const std::map<NodeName, NodeStanding>& nodes, const BreakerLimits& limits) {
  BreakerState out;
  std::map<std::pair<std::string, std::string>, int> failures;
  for (const auto& [name, node] : nodes) {
    ++out.nodes;
    out.running += node.running ? 1 : 0;
    out.shut += node.open ? 0 : 1;
    out.troubled += node.troubled ? 1 : 0;
    for (const auto& check : node.failed_checks) ++failures[{node.driver_version, check}];
  }
  out.free_slots = std::max(0, limits.max_runs - out.running);
  out.shut_share = MoreThan(out.shut, out.nodes, limits.max_shut_percent);
  // A few bad nodes of a small pool are no pattern.
  out.troubled_share = out.troubled >= limits.max_same_failures &&
                       MoreThan(out.troubled, out.nodes, limits.max_shut_percent);
  for (const auto& [key, count] : failures) {
    if (count >= limits.max_same_failures) out.tripped.push_back({key.first, key.second, count});
  }
  return out;
}

std::string BreakerState::NoSlot(const BreakerLimits& limits) const {
  if (free_slots > 0) return "";
  return Count(running, "validation run") + " under way in the pool, the profile allows " +
         std::to_string(limits.max_runs) + " at once";
}

std::string BreakerState::Held(const std::string& driver_version,
                               const BreakerLimits& limits) const {
  for (const SameFailure& failure : tripped) {
    if (failure.driver_version == driver_version) {
      return Describe(failure) + std::string(kWayBack);
    }
  }
  if (troubled_share) {
    return Share(troubled, nodes, "in trouble", limits.max_shut_percent) + std::string(kWayBack);
  }
  return "";
}

std::string BreakerState::HeldPlanned(const std::string& driver_version,
                                      const BreakerLimits& limits) const {
  std::string text = Held(driver_version, limits);
  if (text.empty() && shut_share) {
    text = Share(shut, nodes, "shut", limits.max_shut_percent) + std::string(kWayBack);
  }
  return text;
}

std::string BreakerState::Text(const BreakerLimits& limits) const {
  std::string text;
  for (const SameFailure& failure : tripped) {
    text += (text.empty() ? "" : "; ") + Describe(failure) +
            ", so no node that passed before is run again under it";
  }
  if (troubled_share) {
    text += (text.empty() ? "" : "; ") +
            Share(troubled, nodes, "in trouble", limits.max_shut_percent) +
            ", so no node that passed before is run again";
  }
  return text.empty() ? "" : text + std::string(kWayBack);
}

}  // namespace bimetal::core::admission
