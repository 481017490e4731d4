// The part of JobController that tells the scheduling cycle what its jobs hold and have held.
#include <algorithm>

#include "operator/controllers/jobs.h"
#include "operator/state/time_of.h"

namespace bimetal::op {
namespace {

core::queue::Place PlaceOf(const core::Pod& pod, core::Vendor vendor) {
  core::queue::Place place{.node = pod.node, .devices = 0, .requests = pod.requests};
  const auto held = pod.devices.find(vendor);
  if (held != pod.devices.end()) place.devices = core::WholeDevices(held->second);
  return place;
}

const api::Attempt* RowOf(const api::GPUJobStatus& status) {
  for (const auto& row : status.attempts()) {
    if (row.number() == status.attempt()) return &row;
  }
  return nullptr;
}

}  // namespace

core::queue::Running JobController::RunningOf(const Record& record, core::Vendor vendor) const {
  const core::Job& job = *record.job;
  core::queue::Running out;
  out.job = job.uid;
  out.name_space = job.name_space;
  out.name = job.name;
  out.queue = job.queue;
  out.priority = job.priority;
  out.created = job.created;
  out.vendor = vendor;
  out.pool = PoolName{record.status.assignment().pool()};
  out.devices = record.status.assignment().devices();
  out.started = clock_.Now();
  if (const auto* row = RowOf(record.status)) {
    out.started = TimeOf(row->start_time()).value_or(out.started);
  }
  if (record.status.has_checkpoint()) {
    out.checkpointed = TimeOf(record.status.checkpoint().time());
  }
  if (job.estimated_duration) out.expected_end = out.started + *job.estimated_duration;
  if (job.max_duration) out.latest_end = out.started + *job.max_duration;
  out.evictable = job.preemption != core::Preemption::kNever;
  out.ending = !Active(record);
  for (const PodRecord* pod : PodsOf(record, false)) {
    if (!pod->ended && !pod->holds.node.value.empty()) {
      out.places.push_back(PlaceOf(pod->holds, vendor));
    }
  }
  for (const auto& [name, pod] : record.assumed) out.places.push_back(PlaceOf(pod, vendor));
  return out;
}

// From the attempts that the status remembers; a job that was deleted has no past any more.
void JobController::AddPast(const Record& record, core::queue::Snapshot* snapshot) const {
  const core::Job& job = *record.job;
  for (const auto& row : record.status.attempts()) {
    const auto from = TimeOf(row.start_time());
    if (!from) continue;
    const bool over = !row.end_time().empty();
    const TimePoint to = TimeOf(row.end_time()).value_or(clock_.Now());
    const auto variant = std::find_if(job.variants.begin(), job.variants.end(),
                                      [&](const auto& v) { return v.name == row.variant(); });
    if (variant == job.variants.end()) continue;
    snapshot->past_use.push_back({.queue = job.queue,
                                  .devices = core::DevicesNeeded(job, *variant),
                                  .from = *from,
                                  .to = to});
    if (over && row.class_() == "Preempted") {
      snapshot->past_evictions.push_back({.queue = job.queue, .at = to});
    }
  }
}

}  // namespace bimetal::op
