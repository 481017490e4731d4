#include "operator/metrics/fleet_series.h"

#include <algorithm>
#include <array>
#include <string>

#include "operator/metrics/families.h"

namespace bimetal::op {
namespace {

constexpr std::array<const char*, 6> kPhases = {"Discovered",  "Validating",   "Admitted",
                                                "Quarantined", "Inconclusive", "Lost"};
constexpr std::array<const char*, 7> kJobStates = {
    "Pending", "Starting", "Running", "Suspended", "Restarting", "Completed", "Failed"};
constexpr std::array<const char*, 3> kLostReasons = {"failure", "preemption", "node_lost"};

// double is exact for every count and every millisecond that a fleet will see; the ledger's
// integers stay in the status of the job.
double Number(std::int64_t value) { return static_cast<double>(value); }
double FromMillis(std::int64_t ms) { return Number(ms) / 1e3; }
double FromNano(NanoCurrency money) { return Number(money.v) / 1e9; }

std::string Name(core::Vendor vendor) { return vendor == core::Vendor::kAmd ? "amd" : "nvidia"; }

std::string Constraint(const std::optional<core::Vendor>& vendor) {
  return vendor ? Name(*vendor) : "any";
}

void AddDevices(const FleetSample& sample, Exposition& out) {
  for (const auto& d : sample.devices) {
    for (const DeviceState state : kDeviceStates) {
      out.Add(family::kDevices,
              {Name(d.vendor), d.model, d.pool, std::string(DeviceStateName(state))},
              state == d.state ? 1 : 0);
    }
  }
  out.End(family::kDevices);
  for (const auto& d : sample.devices) {
    out.Add(family::kDeviceInfo,
            {d.node, d.uuid, d.parent_uuid, Name(d.vendor), d.model, d.architecture, d.partition,
             d.driver_version, d.runtime_version, d.pci_address, std::to_string(d.index), d.pool},
            1);
  }
  out.End(family::kDeviceInfo, Exposition::Merge::kFirst);
  for (const auto& d : sample.devices) {
    for (const DeviceState state : kDeviceStates) {
      out.Add(family::kDeviceState,
              {d.node, d.uuid, Name(d.vendor), d.model, std::string(DeviceStateName(state))},
              state == d.state ? 1 : 0);
    }
  }
  out.End(family::kDeviceState, Exposition::Merge::kFirst);
}

void AddQueues(const FleetSample& sample, Exposition& out) {
  const auto add = [&](const Family& family, std::int64_t QueueRow::*value) {
    for (const auto& row : sample.queues) {
      out.Add(family, {row.queue, Constraint(row.constraint)}, Number(row.*value));
    }
    out.End(family);
  };
  add(family::kQueuePendingJobs, &QueueRow::pending_jobs);
  add(family::kQueuePendingGpus, &QueueRow::pending_gpus);
  add(family::kQueueAdmittedJobs, &QueueRow::admitted_jobs);
  add(family::kQueueAdmittedGpus, &QueueRow::admitted_gpus);
}

// Every usage of every job that still has series.
template <class F>
void ForEachUsage(const FleetSample& sample, F&& add) {
  for (const auto& job : sample.job_rows) {
    if (job.ended && sample.now >= *job.ended + kJobRetention) continue;
    for (const auto& usage : job.usage) {
      add(LabelValues{job.name_space, job.name, job.uid.value, Name(usage.vendor), usage.model},
          usage);
    }
  }
}

LabelValues With(LabelValues labels, std::initializer_list<std::string> more) {
  labels.insert(labels.end(), more);
  return labels;
}

void AddGpuSeconds(const FleetSample& sample, Exposition& out) {
  ForEachUsage(sample, [&](const LabelValues& labels, const JobUsage& usage) {
    const auto add = [&](const char* phase, std::int64_t ms) {
      out.Add(family::kJobGpuSeconds, With(labels, {phase}), FromMillis(ms));
    };
    add("startup", usage.startup_ms);
    add("running", usage.running_ms);
    add("teardown", usage.teardown_ms);
  });
  out.End(family::kJobGpuSeconds);
  ForEachUsage(sample, [&](const LabelValues& labels, const JobUsage& usage) {
    for (const char* reason : kLostReasons) {
      const auto found = usage.lost_ms.find(reason);
      out.Add(family::kJobLostGpuSeconds, With(labels, {reason}),
              found == usage.lost_ms.end() ? 0 : FromMillis(found->second));
    }
  });
  out.End(family::kJobLostGpuSeconds);
}

void AddCost(const FleetSample& sample, Exposition& out) {
  ForEachUsage(sample, [&](const LabelValues& labels, const JobUsage& usage) {
    if (usage.currency.empty()) return;
    const auto add = [&](const char* component, NanoCurrency money) {
      out.Add(family::kJobCost, With(labels, {component, usage.currency}), FromNano(money));
    };
    add("hardware", usage.hardware);
    add("energy", usage.energy);
    add("labour", usage.labour);
    add("shared", usage.shared);
  });
  out.End(family::kJobCost);
}

void AddJobs(const FleetSample& sample, Exposition& out) {
  for (const char* state : kJobStates) out.Add(family::kJobs, {state}, 0);
  for (const auto& row : sample.jobs) out.Add(family::kJobs, {row.state}, Number(row.count));
  out.End(family::kJobs);
  for (const auto& job : sample.job_rows) {
    if (job.ended && sample.now >= *job.ended + kJobRetention) continue;
    out.Add(family::kJobInfo, {job.name_space, job.name, job.uid.value, job.queue, job.variant}, 1);
  }
  out.End(family::kJobInfo, Exposition::Merge::kFirst);
  AddGpuSeconds(sample, out);
  AddCost(sample, out);
  out.Add(family::kJobsWithoutPrice, {}, Number(sample.jobs_without_price));
  out.End(family::kJobsWithoutPrice);
}

}  // namespace

void AddFleet(const FleetSample& sample, Exposition& out) {
  AddDevices(sample, out);
  for (const char* phase : kPhases) out.Add(family::kNodes, {phase}, 0);
  for (const auto& row : sample.nodes) out.Add(family::kNodes, {row.phase}, Number(row.count));
  out.End(family::kNodes);
  for (const auto& row : sample.findings) {
    out.Add(family::kNodeFindings, {row.node, row.code, row.severity}, Number(row.count));
  }
  out.End(family::kNodeFindings);
  for (const auto& row : sample.breakers) {
    out.Add(family::kBreakerOpen, {row.pool}, row.open ? 1 : 0);
  }
  out.End(family::kBreakerOpen);
  AddQueues(sample, out);
  AddJobs(sample, out);
  out.Add(family::kBooksDifference, {}, Number(sample.books_difference_milli) / 1e3);
  out.End(family::kBooksDifference);
  out.Add(family::kEventQueueDepth, {}, Number(sample.event_queue_depth));
  out.End(family::kEventQueueDepth);
}

}  // namespace bimetal::op
