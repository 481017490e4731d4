#pragma once

#include <array>
#include <string_view>

namespace bimetal::op {

enum class FamilyType { kGauge, kCounter, kHistogram };

// One metric family: what docs/reference/metrics.md says of it, too.
struct Family {
  std::string_view name;
  FamilyType type;
  std::string_view labels;  // separated by spaces, in the order in which they are given
  std::string_view help;
};

// Every family that the operator serves. Names of per-device and per-job families are shared with
// the agent and with later releases: extend them by labels and families, never rename.
namespace family {

using enum FamilyType;

inline constexpr Family kBuildInfo{"bimetal_build_info", kGauge, "version",
                                   "The version of this program; always 1."};
inline constexpr Family kLeader{"bimetal_leader", kGauge, "",
                                "1 while this replica holds the lease and decides, else 0."};

inline constexpr Family kDevices{"bimetal_devices", kGauge, "vendor device_model pool state",
                                 "Devices by state; the states of a device sum to 1."};
inline constexpr Family kDeviceInfo{
    "bimetal_device_info", kGauge,
    "node uuid parent_uuid vendor device_model arch partition_profile driver_version "
    "runtime_version pci_bus_id index pool",
    "Facts of a device as its agent last reported them; always 1."};
inline constexpr Family kDeviceState{"bimetal_device_state", kGauge,
                                     "node uuid vendor device_model state",
                                     "1 for the state that the device is in, 0 for all others."};
inline constexpr Family kNodes{"bimetal_nodes", kGauge, "phase",
                               "Nodes with GPUs by the phase of their admission."};

inline constexpr Family kNodeFindings{"bimetal_node_findings", kGauge, "node code severity",
                                      "What the node's agent finds wrong now."};
inline constexpr Family kBreakerOpen{
    "bimetal_breaker_open", kGauge, "pool",
    "1 while validation of the pool has stopped by itself and asks for a person, else 0."};

inline constexpr Family kQueuePendingJobs{"bimetal_queue_pending_jobs", kGauge,
                                          "queue vendor_constraint",
                                          "Jobs that wait, by the vendors they can run on."};
inline constexpr Family kQueuePendingGpus{"bimetal_queue_pending_gpus", kGauge,
                                          "queue vendor_constraint",
                                          "Devices that the waiting jobs ask for."};
inline constexpr Family kQueueAdmittedJobs{"bimetal_queue_admitted_jobs", kGauge,
                                           "queue vendor_constraint",
                                           "Jobs that are placed, by the vendors they can run on."};
inline constexpr Family kQueueAdmittedGpus{"bimetal_queue_admitted_gpus", kGauge,
                                           "queue vendor_constraint",
                                           "Devices that the placed jobs hold."};
inline constexpr Family kQueueWait{"bimetal_queue_wait_seconds", kHistogram, "queue",
                                   "Time from a job's creation to its placement."};
inline constexpr Family kPlacementDuration{
    "bimetal_placement_duration_seconds", kHistogram, "result",
    "Duration of a cycle of the queue: snapshot, decision, plan."};

inline constexpr Family kJobs{"bimetal_jobs", kGauge, "state", "GPUJobs by state."};
inline constexpr Family kJobInfo{"bimetal_job_info", kGauge,
                                 "namespace job_name job_id queue variant",
                                 "Facts of a job; always 1. Withdrawn 15 minutes after its end."};
inline constexpr Family kJobGpuSeconds{
    "bimetal_job_gpu_seconds_total", kCounter,
    "namespace job_name job_id vendor device_model phase",
    "Device time that a job held. Withdrawn 15 minutes after its end; its status keeps the sum."};
inline constexpr Family kJobLostGpuSeconds{
    "bimetal_job_lost_gpu_seconds_total", kCounter,
    "namespace job_name job_id vendor device_model reason",
    "Part of the running device time whose work was lost with a failed attempt."};
inline constexpr Family kJobCost{
    "bimetal_job_cost_total", kCounter,
    "namespace job_name job_id vendor device_model component currency",
    "Cost of a job in whole units of the currency. Absent while no price is known."};
inline constexpr Family kJobsWithoutPrice{
    "bimetal_jobs_without_price", kGauge, "",
    "Jobs with device time for which the price book has no price."};

inline constexpr Family kBooksDifference{
    "bimetal_books_difference_devices", kGauge, "",
    "Devices by which the books differ from a recount; anything but 0 is a defect."};
inline constexpr Family kLoopLag{"bimetal_loop_lag_seconds", kHistogram, "",
                                 "Time that an event waited for the decision loop."};
inline constexpr Family kEventQueueDepth{"bimetal_event_queue_depth", kGauge, "",
                                         "Events that wait for the decision loop."};
inline constexpr Family kWatchRestarts{"bimetal_watch_restarts_total", kCounter, "resource reason",
                                       "Watches of the API server that had to begin again."};
inline constexpr Family kApiWrites{"bimetal_api_writes_total", kCounter, "verb resource result",
                                   "Writes to the API server by what became of them."};
inline constexpr Family kAgentReports{"bimetal_agent_reports_total", kCounter, "result",
                                      "Calls of the agents by what became of them."};
inline constexpr Family kValidationRuns{"bimetal_validation_runs_total", kCounter,
                                        "level vendor result", "Finished validation runs."};
inline constexpr Family kSeriesDropped{
    "bimetal_series_dropped_total", kCounter, "family",
    "Series that were left out of an exposition because their family was at its limit."};

inline constexpr std::array kAll = {
    &kBuildInfo,
    &kLeader,
    &kDevices,
    &kDeviceInfo,
    &kDeviceState,
    &kNodes,
    &kNodeFindings,
    &kBreakerOpen,
    &kQueuePendingJobs,
    &kQueuePendingGpus,
    &kQueueAdmittedJobs,
    &kQueueAdmittedGpus,
    &kQueueWait,
    &kPlacementDuration,
    &kJobs,
    &kJobInfo,
    &kJobGpuSeconds,
    &kJobLostGpuSeconds,
    &kJobCost,
    &kJobsWithoutPrice,
    &kBooksDifference,
    &kLoopLag,
    &kEventQueueDepth,
    &kWatchRestarts,
    &kApiWrites,
    &kAgentReports,
    &kValidationRuns,
    &kSeriesDropped,
};

}  // namespace family
}  // namespace bimetal::op
