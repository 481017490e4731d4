#include "cli/jobs.h"

#include <algorithm>
#include <tuple>

#include "cli/table.h"
#include "cli/text.h"

namespace bimetal::cli {

std::string CostText(const api::Usage& usage) {
  if (!usage.cost().empty()) return usage.cost();
  return usage.basis() == "PriceMissing" ? usage.basis() : std::string();
}

std::string RenderJobs(std::vector<api::GPUJob> jobs, TimePoint now) {
  std::sort(jobs.begin(), jobs.end(), [](const api::GPUJob& a, const api::GPUJob& b) {
    return std::tie(a.metadata().namespace_(), a.metadata().name()) <
           std::tie(b.metadata().namespace_(), b.metadata().name());
  });
  Table table{{"NAMESPACE", "NAME", "STATE", "REASON", "VARIANT", "POOL", "DEVICES", "READY",
               "DEVICE-SECONDS", "COST", "AGE"},
              {}};
  for (const api::GPUJob& job : jobs) {
    const auto& status = job.status();
    const auto& place = status.assignment();
    table.rows.push_back(
        {{job.metadata().namespace_(), job.metadata().name(),
          status.state().empty() ? "Pending" : status.state(),
          status.reason().empty() ? "PendingEvaluation" : status.reason(), place.variant(),
          place.pool(), place.devices() == 0 ? "" : std::to_string(place.devices()), status.ready(),
          status.usage().device_seconds(), CostText(status.usage()),
          HumanSince(job.metadata().creation_timestamp(), now)}});
  }
  return RenderTable(table);
}

}  // namespace bimetal::cli
