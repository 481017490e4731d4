#include "operator/metrics/metrics.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "operator/metrics/exposition.h"
#include "operator/metrics/families.h"
#include "operator/metrics/fleet_series.h"

namespace bimetal::op {
namespace {

const std::vector<double> kLagBounds = {0.001, 0.005, 0.01, 0.05, 0.1, 0.25,
                                        0.5,   1,     2.5,  5,    10,  30};
const std::vector<double> kCycleBounds = {0.0001, 0.0005, 0.001, 0.005, 0.01, 0.025,
                                          0.05,   0.1,    0.25,  0.5,   1,    5};
const std::vector<double> kWaitBounds = {0.1, 0.5, 1, 5, 15, 60, 300, 900, 3600, 14400, 86400};

constexpr std::array<std::string_view, 4> kCycleResults = {"placed", "refused", "idle", "stale"};
constexpr std::array<std::string_view, 3> kWatchReasons = {"gone", "closed", "error"};
constexpr std::array<std::string_view, 4> kVerbs = {"create", "update", "patch", "delete"};
constexpr std::array<std::string_view, 4> kRunResults = {"pass", "degraded", "fail",
                                                         "inconclusive"};
constexpr std::array<std::string_view, 3> kLevels = {"L0", "L1", "L2"};
constexpr std::string_view kOther = "other";
constexpr std::string_view kDone = "Ok";

// A value of a closed list, or "other": a label must not grow with what somebody sends.
template <std::size_t N>
std::string Closed(std::string_view value, const std::array<std::string_view, N>& allowed) {
  const bool known = std::find(allowed.begin(), allowed.end(), value) != allowed.end();
  return std::string(known ? value : kOther);
}

double Seconds(std::int64_t microseconds) { return static_cast<double>(microseconds) / 1e6; }

}  // namespace

std::string_view DeviceStateName(DeviceState state) {
  switch (state) {
    case DeviceState::kAllocated:
      return "allocated";
    case DeviceState::kIdle:
      return "idle";
    case DeviceState::kReserved:
      return "reserved";
    case DeviceState::kFragmented:
      return "fragmented";
    case DeviceState::kDraining:
      return "draining";
    case DeviceState::kShut:
      return "shut";
    case DeviceState::kUnhealthy:
      return "unhealthy";
    case DeviceState::kOffline:
      return "offline";
  }
  return "offline";
}

struct Metrics::Impl {
  using Counters = std::map<LabelValues, std::uint64_t>;
  using Distributions = std::map<LabelValues, Distribution>;

  std::string version;
  std::size_t max_series;

  std::mutex mutex;  // guards everything below
  std::shared_ptr<const FleetSample> fleet;
  Counters watch_restarts, api_writes, agent_reports, validation_runs;
  Distributions queue_wait, cycles;
  Distribution lag{kLagBounds};
  std::map<std::string, std::uint64_t> dropped;

  void Count(Counters& counters, LabelValues labels) {
    // The exposition cuts at the same number; beyond it a counter would only take memory.
    const auto found = counters.find(labels);
    if (found != counters.end()) {
      ++found->second;
    } else if (counters.size() < max_series) {
      counters.emplace(std::move(labels), 1);
    }
  }

  void Observe(Distributions& all, LabelValues labels, const std::vector<double>& bounds,
               double seconds) {
    auto found = all.find(labels);
    if (found == all.end()) {
      if (all.size() >= max_series) return;
      found = all.emplace(std::move(labels), Distribution(bounds)).first;
    }
    found->second.Observe(std::max(seconds, 0.0));
  }

  static void AddCounters(const Family& family, const Counters& counters, Exposition& out) {
    for (const auto& [labels, value] : counters) {
      out.Add(family, labels, static_cast<double>(value));
    }
    out.End(family);
  }

  static void AddDistributions(const Family& family, const Distributions& all, Exposition& out) {
    for (const auto& [labels, distribution] : all) out.Add(family, labels, distribution);
    out.End(family);
  }
};

Metrics::Metrics(std::string_view version, std::size_t max_series)
    : impl_(std::make_unique<Impl>()) {
  impl_->version = version;
  impl_->max_series = max_series;
  // A counter that is first seen at 1 has lost its first event for Prometheus: begin at 0 wherever
  // the labels are known.
  for (const auto result : kAgentReportResults) {
    impl_->agent_reports[{std::string(result)}] = 0;
  }
  for (const auto vendor : core::kVendors) {
    for (const auto result : kRunResults) {
      impl_->validation_runs[{"L1", vendor == core::Vendor::kAmd ? "amd" : "nvidia",
                              std::string(result)}] = 0;
    }
  }
  for (const char* resource : {"gpujobs", "gpunodes", "gpupools", "gpuqueues", "nodes", "pods",
                               "pricebooks", "validationprofiles", "namespaces"}) {
    for (const auto reason : kWatchReasons) {
      impl_->watch_restarts[{resource, std::string(reason)}] = 0;
    }
  }
  for (const auto& [verb, resource] :
       std::initializer_list<std::pair<const char*, const char*>>{{"create", "pods"},
                                                                  {"delete", "pods"},
                                                                  {"create", "services"},
                                                                  {"delete", "services"},
                                                                  {"create", "gpunodes"},
                                                                  {"patch", "gpunodes"},
                                                                  {"patch", "gpujobs"},
                                                                  {"patch", "nodes"},
                                                                  {"create", "events"}}) {
    impl_->api_writes[{verb, resource, std::string(kDone)}] = 0;
  }
}

Metrics::~Metrics() = default;

void Metrics::Update(FleetSample sample) {
  auto fresh = std::make_shared<const FleetSample>(std::move(sample));
  const std::lock_guard lock(impl_->mutex);
  impl_->fleet.swap(fresh);
}

void Metrics::ObserveLoopLag(std::int64_t microseconds) {
  const std::lock_guard lock(impl_->mutex);
  impl_->lag.Observe(std::max(Seconds(microseconds), 0.0));
}

void Metrics::ObserveCycle(std::string_view result, std::int64_t microseconds) {
  const std::lock_guard lock(impl_->mutex);
  impl_->Observe(impl_->cycles, {Closed(result, kCycleResults)}, kCycleBounds,
                 Seconds(microseconds));
}

void Metrics::ObserveQueueWait(std::string_view queue, Millis wait) {
  const std::lock_guard lock(impl_->mutex);
  impl_->Observe(impl_->queue_wait, {std::string(queue)}, kWaitBounds,
                 static_cast<double>(wait.v) / 1e3);
}

void Metrics::CountWatchRestart(std::string_view resource, std::string_view reason) {
  const std::lock_guard lock(impl_->mutex);
  impl_->Count(impl_->watch_restarts, {std::string(resource), Closed(reason, kWatchReasons)});
}

void Metrics::CountApiWrite(std::string_view verb, std::string_view resource,
                            std::optional<ErrorCode> error) {
  const std::lock_guard lock(impl_->mutex);
  impl_->Count(impl_->api_writes, {Closed(verb, kVerbs), std::string(resource),
                                   std::string(error ? ErrorCodeName(*error) : kDone)});
}

void Metrics::CountAgentReport(std::string_view result) {
  const std::lock_guard lock(impl_->mutex);
  impl_->Count(impl_->agent_reports, {Closed(result, kAgentReportResults)});
}

void Metrics::CountValidationRun(std::string_view level, core::Vendor vendor,
                                 std::string_view result) {
  const std::lock_guard lock(impl_->mutex);
  impl_->Count(impl_->validation_runs,
               {Closed(level, kLevels), vendor == core::Vendor::kAmd ? "amd" : "nvidia",
                Closed(result, kRunResults)});
}

std::string Metrics::Expose() const {
  std::map<std::string, std::uint64_t> dropped;
  Exposition out(impl_->max_series, &dropped);
  std::shared_ptr<const FleetSample> fleet;
  {
    const std::lock_guard lock(impl_->mutex);
    fleet = impl_->fleet;
  }
  out.Add(family::kBuildInfo, {impl_->version}, 1);
  out.End(family::kBuildInfo);
  out.Add(family::kLeader, {}, fleet && fleet->leader ? 1 : 0);
  out.End(family::kLeader);
  // Before the first sample the fleet is unknown, which is not the same as empty.
  if (fleet) AddFleet(*fleet, out);

  const std::lock_guard lock(impl_->mutex);
  Impl::AddDistributions(family::kQueueWait, impl_->queue_wait, out);
  Impl::AddDistributions(family::kPlacementDuration, impl_->cycles, out);
  out.Add(family::kLoopLag, {}, impl_->lag);
  out.End(family::kLoopLag);
  Impl::AddCounters(family::kWatchRestarts, impl_->watch_restarts, out);
  Impl::AddCounters(family::kApiWrites, impl_->api_writes, out);
  Impl::AddCounters(family::kAgentReports, impl_->agent_reports, out);
  Impl::AddCounters(family::kValidationRuns, impl_->validation_runs, out);

  for (const auto& [name, count] : dropped) impl_->dropped[name] += count;
  for (const auto* declared : family::kAll) {
    const auto found = impl_->dropped.find(std::string(declared->name));
    out.Add(family::kSeriesDropped, {std::string(declared->name)},
            found == impl_->dropped.end() ? 0 : static_cast<double>(found->second));
  }
  out.End(family::kSeriesDropped);
  return out.Text();
}

}  // namespace bimetal::op
