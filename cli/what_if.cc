#include "cli/what_if.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "cli/table.h"
#include "core/queue/elastic.h"

namespace bimetal::cli {
namespace {

using core::Job;
using core::Variant;
using core::queue::Snapshot;

// What a cycle gave a job.
struct Outcome {
  std::optional<core::queue::Assignment> assignment;
  std::optional<core::queue::Refusal> refusal;
};

Outcome Try(const Snapshot& snapshot, const Job& job) {
  Snapshot with = snapshot;
  std::erase_if(with.pending, [&](const Job& other) { return other.uid == job.uid; });
  with.pending.push_back(job);
  const auto plan = core::queue::Decide(with);
  Outcome out;
  for (const auto& assignment : plan.assignments) {
    if (assignment.job == job.uid) out.assignment = assignment;
  }
  for (const auto& refusal : plan.refusals) {
    if (refusal.job == job.uid) out.refusal = refusal;
  }
  return out;
}

bool StartsNow(const Snapshot& snapshot, const Job& job) {
  return Try(snapshot, job).assignment.has_value();
}

// The closest of the variants, as the refusal names it.
std::string WhyNot(const core::queue::Refusal& refusal) {
  for (const auto& blocker : refusal.blockers) {
    if (blocker.reason == refusal.reason) return blocker.unblocked_by;
  }
  return refusal.message;
}

Row RowOf(const std::string& what, const Job& job, const Outcome& outcome) {
  const std::string pods = std::to_string(core::PodCount(job));
  if (outcome.assignment) {
    const auto& got = *outcome.assignment;
    const std::string started = std::to_string(got.pods.size());
    return Row{{what, job.variants[got.variant].name, started, std::to_string(got.devices),
                "starts now", "in pool " + got.pool.value}};
  }
  const Variant& first = job.variants.front();
  const std::string name = job.variants.size() == 1 ? first.name : "";
  const std::string need =
      job.variants.size() == 1 ? std::to_string(core::DevicesNeeded(job, first)) : "";
  if (!outcome.refusal) return Row{{what, name, pods, need, "waits", ""}};
  return Row{{what, name, pods, need, outcome.refusal->reason, WhyNot(*outcome.refusal)}};
}

Job Only(const Job& job, const Variant& variant) {
  Job out = job;
  out.variants = {variant};
  out.fallback_after.reset();
  return out;
}

core::Vendor Other(core::Vendor vendor) {
  return vendor == core::Vendor::kNvidia ? core::Vendor::kAmd : core::Vendor::kNvidia;
}

// A variant that the job does not have: the same counts on the other vendor's devices.
std::optional<Job> OnOtherVendor(const Job& job) {
  const core::Vendor vendor = job.variants.front().vendor;
  if (std::any_of(job.variants.begin(), job.variants.end(),
                  [&](const Variant& v) { return v.vendor != vendor; })) {
    return std::nullopt;
  }
  Variant other = job.variants.front();
  other.vendor = Other(vendor);
  other.name = std::string(core::VendorName(other.vendor)) + "?";
  other.models.clear();
  return Only(job, other);
}

// Any gang of at least one pod a role.
Job Shrinkable(const Job& job) {
  Job out = job;
  for (auto& role : out.roles) role.min_replicas = 1;
  return out;
}

}  // namespace

std::string RenderWhatIf(const Snapshot& snapshot, const Job& job) {
  Table table{{"WHAT IF", "VARIANT", "PODS", "DEVICES", "THEN", "WHERE, OR WHAT WOULD HELP"}, {}};
  const Outcome now = Try(snapshot, job);
  table.rows.push_back(RowOf("as it is", job, now));
  if (job.variants.size() > 1) {
    for (const Variant& variant : job.variants) {
      const Job alone = Only(job, variant);
      table.rows.push_back(RowOf("only " + variant.name, alone, Try(snapshot, alone)));
    }
  }
  if (const auto other = OnOtherVendor(job)) {
    table.rows.push_back(RowOf("the other vendor", *other, Try(snapshot, *other)));
  }
  if (!now.assignment) {
    const auto smaller = core::queue::LargestThatFits(
        Shrinkable(job), [&](const Job& gang) { return StartsNow(snapshot, gang); });
    if (smaller) {
      table.rows.push_back(RowOf("a smaller gang", *smaller, Try(snapshot, *smaller)));
    } else if (core::PodCount(job) > static_cast<std::int64_t>(job.roles.size())) {
      table.rows.push_back(Row{{"a smaller gang", "", "", "", "waits", "not even one pod a role"}});
    }
  }
  return "\nWhat if:\n" + RenderTable(table, 2);
}

}  // namespace bimetal::cli
