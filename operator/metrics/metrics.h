#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/ids.h"
#include "core/base/result.h"
#include "core/base/time.h"
#include "core/model/vendor.h"

namespace bimetal::op {

// What a device is doing; each device is in exactly one.
enum class DeviceState {
  kAllocated,
  kIdle,  // open and free
  kReserved,
  kFragmented,
  kDraining,
  kShut,  // not (yet) validated
  kUnhealthy,
  kOffline,
};
inline constexpr std::array<DeviceState, 8> kDeviceStates = {
    DeviceState::kAllocated, DeviceState::kIdle, DeviceState::kReserved,  DeviceState::kFragmented,
    DeviceState::kDraining,  DeviceState::kShut, DeviceState::kUnhealthy, DeviceState::kOffline,
};
// "allocated", "idle", ...
std::string_view DeviceStateName(DeviceState state);

// The results of an agent's call, as labels.
inline constexpr std::array<std::string_view, 10> kAgentReportResults = {
    "accepted",   "unauthenticated", "permission_denied", "invalid",  "resource_exhausted",
    "not_leader", "unavailable",     "deadline",          "canceled", "internal",
};

struct DeviceRow {
  std::string node, uuid, parent_uuid;
  core::Vendor vendor = core::Vendor::kNvidia;
  std::string model, architecture, partition, driver_version, runtime_version, pci_address;
  std::int32_t index = 0;
  std::string pool;  // empty: in none
  DeviceState state = DeviceState::kShut;
};

struct NodeCount {
  std::string phase;
  std::int64_t count = 0;
};

// One row per queue and constraint: what waits and what runs of it. Jobs of several variants that
// span vendors count under "any".
struct QueueRow {
  std::string queue;
  std::optional<core::Vendor> constraint;  // nullopt: any
  std::int64_t pending_jobs = 0, pending_gpus = 0;
  std::int64_t admitted_jobs = 0, admitted_gpus = 0;
};

struct JobCount {
  std::string state;
  std::int64_t count = 0;
};

// What one job has used of one device model so far. Values never decrease.
struct JobUsage {
  core::Vendor vendor = core::Vendor::kNvidia;
  std::string model;
  std::int64_t startup_ms = 0, running_ms = 0, teardown_ms = 0;  // device milliseconds
  std::map<std::string, std::int64_t> lost_ms;  // failure | preemption | node_lost -> device ms
  std::string currency;                         // empty: no price known, no cost series
  NanoCurrency hardware, energy, labour, shared;
};

struct JobRow {
  std::string name_space, name;
  Uid uid;
  std::string queue, variant;  // variant: the one of the last attempt, may be empty
  std::vector<JobUsage> usage;
  // Set once the job has ended: its series are withdrawn kJobRetention later.
  std::optional<TimePoint> ended;
};
inline constexpr Millis kJobRetention = Minutes(15);

// What an agent found on its node, now.
struct FindingRow {
  std::string node, code, severity;
  std::int64_t count = 0;  // of devices, or 1 where the node is meant
};

struct BreakerRow {
  std::string pool;
  bool open = false;
};

// The state of the fleet at one instant, made by the loop. Rows in any order.
struct FleetSample {
  TimePoint now;
  bool leader = false;
  std::vector<DeviceRow> devices;
  std::vector<NodeCount> nodes;  // phases that are not listed here are exported as 0
  std::vector<FindingRow> findings;
  std::vector<BreakerRow> breakers;
  std::vector<QueueRow> queues;
  std::vector<JobCount> jobs;  // states that are not listed here are exported as 0
  std::vector<JobRow> job_rows;
  std::int64_t jobs_without_price = 0;
  std::int64_t books_difference_milli = 0;  // recount against books, thousandths of a device
  std::int64_t event_queue_depth = 0;
};

// The operator's metrics (docs/reference/metrics.md lists all). Thread-safe: events are counted
// from any thread, the loop sets the fleet, HTTP threads read.
class Metrics {
 public:
  // `max_series`: rows of one family beyond it are dropped and counted.
  explicit Metrics(std::string_view version, std::size_t max_series = 100'000);
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  // Replaces what is known of the fleet. Cheap (a swap); at most once a second is plenty.
  void Update(FleetSample sample);

  // How long an event waited for the loop thread, in microseconds.
  void ObserveLoopLag(std::int64_t microseconds);
  // One cycle of the queue, in microseconds. result: "placed" | "refused" | "idle" | "stale".
  void ObserveCycle(std::string_view result, std::int64_t microseconds);
  // A job's time from its creation to its placement.
  void ObserveQueueWait(std::string_view queue, Millis wait);
  // resource: plural, such as "pods". reason: "gone" | "closed" | "error".
  void CountWatchRestart(std::string_view resource, std::string_view reason);
  // verb: "create" | "update" | "patch" | "delete". nullopt: done. The label is the error's code.
  void CountApiWrite(std::string_view verb, std::string_view resource,
                     std::optional<ErrorCode> error);
  // One of kAgentReportResults.
  void CountAgentReport(std::string_view result);
  // A finished validation run. result: "pass" | "fail" | "degraded" | "inconclusive".
  void CountValidationRun(std::string_view level, core::Vendor vendor, std::string_view result);

  // Everything in the Prometheus text format 0.0.4; families and series in a fixed order.
  std::string Expose() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The content type of Expose().
inline constexpr std::string_view kMetricsContentType = "text/plain; version=0.0.4; charset=utf-8";

}  // namespace bimetal::op
