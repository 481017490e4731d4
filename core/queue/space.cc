#include "core/queue/space.h"

#include <algorithm>
#include <set>
#include <utility>

#include "core/model/saturate.h"

namespace bimetal::core::queue {
namespace {

// Above every real amount and far below the end of the numbers, so that what is taken away was
// really there: too little comes free rather than too much.
constexpr std::int64_t kMaxDevices = 1'000'000'000, kMaxAmount = 1'000'000'000'000'000;

std::int64_t Bounded(std::int64_t amount, std::int64_t max) {
  return std::clamp<std::int64_t>(amount, 0, max);
}

Resources Bounded(const Resources& amount) {
  return Resources{.cpu_milli = Bounded(amount.cpu_milli, kMaxAmount),
                   .memory_bytes = Bounded(amount.memory_bytes, kMaxAmount),
                   .pods = Bounded(amount.pods, kMaxAmount)};
}

}  // namespace

Resources operator-(const Resources& a, const Resources& b) {
  const auto less = [](std::int64_t x, std::int64_t y) {
    return Saturate(static_cast<__int128>(x) - y);
  };
  return Resources{.cpu_milli = less(a.cpu_milli, b.cpu_milli),
                   .memory_bytes = less(a.memory_bytes, b.memory_bytes),
                   .pods = less(a.pods, b.pods)};
}

Resources Least(const Resources& a, const Resources& b) {
  return Resources{.cpu_milli = std::min(a.cpu_milli, b.cpu_milli),
                   .memory_bytes = std::min(a.memory_bytes, b.memory_bytes),
                   .pods = std::min(a.pods, b.pods)};
}

Space::Space(const Snapshot& snapshot) : lanes(snapshot), tree(snapshot.queues, lanes.kinds()) {
  std::map<std::pair<Uid, Vendor>, const Running*> sorted;  // a pod may hold devices of both
  for (const Running& running : snapshot.running) {
    sorted.emplace(std::pair(running.job, running.vendor), &running);
  }
  for (const auto& [key, running] : sorted) AddTenant(*running, false);
}

// `books`: its devices are not in the boards yet.
void Space::AddTenant(Running running, bool books) {
  Tenant tenant;
  tenant.queue = tree.Find(running.queue);
  tenant.kind = lanes.KindOf(running.vendor);
  tenant.leaving = running.ending;
  running.devices = Bounded(running.devices, kMaxDevices);
  std::map<NodeName, Place> by_node;
  for (const Place& place : running.places) {
    Place& sum = by_node[place.node];
    sum.node = place.node;
    sum.devices = Bounded(SaturatingAdd(sum.devices, place.devices), kMaxDevices);
    sum.requests = Bounded(sum.requests + place.requests);
  }
  for (auto& [node, place] : by_node) {
    Lane* lane = lanes.On(running.vendor, node);
    if (lane == nullptr) continue;
    if (tenant.spots.empty()) tenant.kind = lane->kind;
    tenant.spots.push_back(
        Tenant::Spot{.lane = lane, .place = place, .promised_devices = 0, .promised = {}});
  }
  Changed();
  tenant.running = std::move(running);
  tenants_.push_back(std::move(tenant));
  Tenant& made = tenants_.back();
  by_uid_.emplace(made.running.job, &made);
  if (books) {
    ShiftTenant(made, 1);
  } else if (made.queue != kNoQueue) {
    tree.Use(made.queue, made.kind, made.running.devices, 1);
  }
}

Tenant* Space::FindTenant(const Uid& job) {
  const auto at = by_uid_.find(job);
  return at == by_uid_.end() ? nullptr : at->second;
}

std::optional<std::vector<placement::PodPlacement>> Space::Search(Lane& lane, const Job& job,
                                                                  const Variant& variant) {
  ++searches_;
  return lane.board.Find(job, variant);
}

std::optional<QuotaShortage> Space::Shortage(int queue, std::size_t kind, std::int64_t devices,
                                             std::int64_t more_free) const {
  FreeByKind free;
  if (tree.asks_for_free()) {
    free = lanes.Free();
    free[kind] = SaturatingAdd(free[kind], more_free);
  }
  return tree.ShortageOf(queue, kind, devices, free);
}

Tenant& Space::Start(const Job& job, std::size_t variant, Lane& lane, int queue,
                     const std::vector<placement::PodPlacement>& pods, TimePoint now) {
  Running running;
  running.job = job.uid;
  running.name_space = job.name_space;
  running.name = job.name;
  running.queue = tree.At(queue).name;
  running.priority = job.priority;
  running.created = job.created;
  running.vendor = job.variants[variant].vendor;
  running.pool = lane.pool;
  running.devices = DevicesNeeded(job, job.variants[variant]);
  running.started = now;
  if (job.max_duration) running.latest_end = now + *job.max_duration;
  if (job.estimated_duration) running.expected_end = now + *job.estimated_duration;
  for (const placement::PodPlacement& pod : pods) {
    running.places.push_back(Place{.node = pod.node,
                                   .devices = job.variants[variant].devices_per_pod,
                                   .requests = job.roles[pod.role].requests});
  }
  AddTenant(std::move(running), true);
  tenants_.back().started_now = true;
  return tenants_.back();
}

void Space::ShiftTenant(const Tenant& tenant, int sign) {
  for (const Tenant::Spot& spot : tenant.spots) {
    spot.lane->board.Shift(spot.place.node, sign * spot.place.devices,
                           sign > 0 ? spot.place.requests : Resources{} - spot.place.requests);
  }
  if (tenant.queue != kNoQueue) {
    tree.Use(tenant.queue, tenant.kind, sign * tenant.running.devices, sign);
  }
}

// Holds that await the tenant are booked anew, because what they can count on has changed.
void Space::SetReleased(Tenant& tenant, bool released) {
  if (tenant.released == released) return;
  std::vector<HeldPlace*> again;
  for (HeldPlace* held : tenant.awaited_by) {
    if (!held->booked) continue;
    Unbook(*held);
    again.push_back(held);
  }
  tenant.released = released;
  ShiftTenant(tenant, released ? -1 : 1);
  for (HeldPlace* held : again) Book(*held);
}

void Space::Release(Tenant& tenant) { SetReleased(tenant, true); }

void Space::Restore(Tenant& tenant) { SetReleased(tenant, false); }

bool Space::IsPromised(const Tenant& tenant, int queue) const {
  for (const Tenant::Spot& spot : tenant.spots) {
    if (spot.promised_devices < spot.place.devices) return false;
  }
  for (int at = queue; at != kNoQueue; at = tree.Parent(at)) {
    if (!IsAbove(at, tenant.queue)) continue;
    const auto promised = tenant.promised_quota.find(at);
    if (promised == tenant.promised_quota.end() ||
        promised->second.devices < tenant.running.devices ||
        (tree.At(at).max_running_jobs && promised->second.jobs < 1)) {
      return false;
    }
  }
  return true;
}

HeldPlace& Space::AddHold(HeldPlace added) {
  Changed();
  held_.push_back(std::move(added));
  HeldPlace& held = held_.back();
  for (Tenant* tenant : held.awaits) tenant->awaited_by.push_back(&held);
  Book(held);
  return held;
}

// The queue itself counts.
bool Space::IsAbove(int above, int queue) const {
  for (int at = queue; at != kNoQueue; at = tree.Parent(at)) {
    if (at == above) return true;
  }
  return false;
}

void Space::AwaitIfNear(HeldPlace& held, Tenant& tenant) {
  const bool same_node =
      std::any_of(tenant.spots.begin(), tenant.spots.end(), [&](const Tenant::Spot& spot) {
        return std::any_of(held.pods.begin(), held.pods.end(),
                           [&](const auto& pod) { return pod.node == spot.place.node; });
      });
  bool same_queue = false;
  for (int at = held.queue; at != kNoQueue; at = tree.Parent(at)) {
    same_queue = same_queue || IsAbove(at, tenant.queue);
  }
  if (!same_node && !same_queue) return;
  held.awaits.push_back(&tenant);
  tenant.awaited_by.push_back(&held);
}

void Space::Drop(HeldPlace& held) {
  Changed();
  if (held.booked) Unbook(held);
  for (Tenant* tenant : held.awaits) std::erase(tenant->awaited_by, &held);
  held.awaits.clear();
  held.job = nullptr;
}

void Space::Book(HeldPlace& held) {
  held.booked = true;
  const Variant& variant = held.job->variants[held.hold.variant];
  std::map<NodeName, HeldPlace::Shift> needs;
  for (const placement::PodPlacement& pod : held.pods) {
    HeldPlace::Shift& need = needs[pod.node];
    need.node = pod.node;
    need.devices = SaturatingAdd(need.devices, variant.devices_per_pod);
    need.requests = need.requests + held.job->roles[pod.role].requests;
  }
  for (Tenant* tenant : held.awaits) {
    if (tenant->released) continue;
    for (std::size_t i = 0; i < tenant->spots.size(); ++i) {
      Tenant::Spot& spot = tenant->spots[i];
      const auto need = needs.find(spot.place.node);
      if (need == needs.end()) continue;
      HeldPlace::Promise promise{.tenant = tenant, .spot = i, .devices = 0, .requests = {}};
      if (spot.lane == held.lane) {
        promise.devices =
            std::min(need->second.devices, spot.place.devices - spot.promised_devices);
      }
      promise.requests = Least(need->second.requests, spot.place.requests - spot.promised);
      need->second.devices -= promise.devices;
      need->second.requests = need->second.requests - promise.requests;
      spot.promised_devices += promise.devices;
      spot.promised = spot.promised + promise.requests;
      held.promises.push_back(promise);
    }
  }
  for (const auto& [node, need] : needs) {
    held.lane->board.Shift(node, need.devices, need.requests);
    held.shifts.push_back(need);
  }
  for (int at = held.queue; at != kNoQueue; at = tree.Parent(at)) {
    HeldPlace::QuotaShift need{.queue = at, .devices = held.devices, .jobs = 1};
    for (Tenant* tenant : held.awaits) {
      if (tenant->released || tenant->queue == kNoQueue) continue;
      if (!IsAbove(at, tenant->queue) ||
          tree.LineFor(at, tenant->kind) != tree.LineFor(at, held.lane->kind))
        continue;
      Tenant::Quota& promised = tenant->promised_quota[at];
      const Tenant::Quota amount{
          .devices = std::min(need.devices, tenant->running.devices - promised.devices),
          .jobs = std::min(need.jobs, 1 - promised.jobs)};
      need.devices -= amount.devices;
      need.jobs -= amount.jobs;
      promised.devices += amount.devices;
      promised.jobs += amount.jobs;
      held.quota_promises.push_back({.tenant = tenant, .queue = at, .amount = amount});
    }
    tree.UseHere(at, held.lane->kind, need.devices, need.jobs);
    held.quota_shifts.push_back(need);
  }
}

void Space::Unbook(HeldPlace& held) {
  held.booked = false;
  for (const auto& shift : held.shifts) {
    held.lane->board.Shift(shift.node, -shift.devices, Resources{} - shift.requests);
  }
  for (const auto& shift : held.quota_shifts) {
    tree.UseHere(shift.queue, held.lane->kind, -shift.devices, -shift.jobs);
  }
  for (const auto& promise : held.promises) {
    Tenant::Spot& spot = promise.tenant->spots[promise.spot];
    spot.promised_devices -= promise.devices;
    spot.promised = spot.promised - promise.requests;
  }
  for (const auto& promise : held.quota_promises) {
    Tenant::Quota& promised = promise.tenant->promised_quota[promise.queue];
    promised.devices -= promise.amount.devices;
    promised.jobs -= promise.amount.jobs;
  }
  held.shifts.clear();
  held.quota_shifts.clear();
  held.promises.clear();
  held.quota_promises.clear();
}

}  // namespace bimetal::core::queue
