#include "operator/controllers/pod_meter.h"

#include <algorithm>

namespace bimetal::op {
namespace {

std::string OwnerOf(const PodRecord& pod) {
  return pod.queued->owner_uid.empty() ? pod.holds.uid.value : pod.queued->owner_uid;
}

}  // namespace

void PodMeter::See(const PodRecord& pod, TimePoint now, bool witnessed) {
  if (!pod.queued || pod.queued->admitted_to.empty() || !pod.bound) return;
  const std::string& uid = pod.holds.uid.value;
  const auto known = owners_.find(OwnerOf(pod));
  const bool running = known != owners_.end() && known->second.open.contains(uid);
  if (pod.ended) {
    if (running) Close(known->second, uid, witnessed ? now : pod.finished_at.value_or(now));
    return;  // of one that ended before we looked nothing is known that was not counted before
  }
  if (running) return;
  Span span;
  span.begin = witnessed ? now : pod.scheduled_at.value_or(pod.created);
  for (const auto& [vendor, held] : pod.holds.devices)
    span.devices[{vendor, model_of_(pod.holds.node.value, vendor)}] = core::WholeDevices(held);
  if (span.devices.empty()) return;
  Owner& owner = owners_[OwnerOf(pod)];
  owner.name_space = pod.holds.name_space;
  owner.name = pod.queued->owner_uid.empty() ? pod.holds.name : pod.queued->owner_name;
  owner.queue = pod.queued->admitted_to;
  owner.last_end.reset();
  owner.open.emplace(uid, std::move(span));
}

void PodMeter::Gone(const PodRecord& pod, TimePoint now) {
  if (!pod.queued) return;
  const auto owner = owners_.find(OwnerOf(pod));
  if (owner != owners_.end()) Close(owner->second, pod.holds.uid.value, now);
}

void PodMeter::Close(Owner& owner, const std::string& pod_uid, TimePoint end) {
  const auto span = owner.open.find(pod_uid);
  if (span == owner.open.end()) return;
  const std::int64_t ms = std::max<std::int64_t>(0, (end - span->second.begin).v);
  for (const auto& [kind, devices] : span->second.devices) owner.closed[kind] += ms * devices;
  owner.open.erase(span);
  if (owner.open.empty()) owner.last_end = end;
}

std::vector<JobRow> PodMeter::Rows(TimePoint now) const {
  std::vector<JobRow> out;
  for (const auto& [uid, owner] : owners_) {
    auto sums = owner.closed;
    for (const auto& [pod, span] : owner.open) {
      const std::int64_t ms = std::max<std::int64_t>(0, (now - span.begin).v);
      for (const auto& [kind, devices] : span.devices) sums[kind] += ms * devices;
    }
    JobRow row;
    row.name_space = owner.name_space;
    row.name = owner.name;
    row.uid = Uid{uid};
    row.queue = owner.queue;
    row.ended = owner.last_end;
    for (const auto& [kind, ms] : sums) {
      auto& usage = row.usage.emplace_back();
      usage.vendor = kind.first;
      usage.model = kind.second;
      usage.running_ms = ms;
    }
    out.push_back(std::move(row));
  }
  return out;
}

void PodMeter::Prune(TimePoint now) {
  std::erase_if(owners_, [&](const auto& entry) {
    return entry.second.last_end && *entry.second.last_end + kJobRetention <= now;
  });
}

}  // namespace bimetal::op
