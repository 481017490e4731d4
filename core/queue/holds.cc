#include "core/queue/holds.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "core/queue/preempt.h"

namespace bimetal::core::queue {

std::vector<Hold> HoldKeeper::Carried() const {
  std::vector<Hold> holds = snapshot_.holds;
  std::sort(holds.begin(), holds.end(), [](const Hold& a, const Hold& b) {
    return std::tie(a.since, a.job, a.variant, a.pool, a.device_class) <
           std::tie(b.since, b.job, b.variant, b.pool, b.device_class);
  });
  std::set<Uid> seen;
  std::erase_if(holds, [&](const Hold& hold) { return !seen.insert(hold.job).second; });
  return holds;
}

HeldPlace* HoldKeeper::Renew(const Hold& hold, const Job& job, int queue) {
  if (hold.variant >= job.variants.size()) return nullptr;
  const Variant& variant = job.variants[hold.variant];
  Lane* lane = space_.lanes.Find(variant.vendor, hold.pool, hold.device_class);
  if (lane == nullptr) return nullptr;
  if (!hold.by_eviction && space_.tree.At(queue).order == QueueOrder::kBestEffort) return nullptr;
  HeldPlace held;
  held.hold = hold;
  held.job = &job;
  held.queue = queue;
  held.lane = lane;
  held.devices = DevicesNeeded(job, variant);
  if (space_.tree.NeverMore(queue, lane->kind, held.devices)) return nullptr;
  for (const Uid& uid : hold.awaits) {
    if (Tenant* tenant = space_.FindTenant(uid)) held.awaits.push_back(tenant);
  }
  for (Tenant* tenant : held.awaits) space_.Release(*tenant);
  const bool whole = static_cast<std::int64_t>(hold.pods.size()) == PodCount(job);
  if (whole && lane->board.CanHold(job, variant, hold.pods)) {
    held.pods = hold.pods;
  } else if (auto pods = space_.Search(*lane, job, variant)) {
    held.pods = std::move(*pods);
  }
  for (Tenant* tenant : held.awaits) space_.Restore(*tenant);
  if (held.pods.empty()) return nullptr;
  held.hold.at = EndOf(held.awaits);
  return &space_.AddHold(std::move(held));
}

HeldPlace& HoldKeeper::Add(const Job& job, int queue, const Way& way, bool by_eviction) {
  HeldPlace held;
  held.job = &job;
  held.queue = queue;
  held.lane = way.lane;
  held.pods = way.pods;
  held.devices = DevicesNeeded(job, job.variants[way.variant]);
  held.awaits = way.leavers;
  held.hold = Hold{.job = job.uid,
                   .variant = way.variant,
                   .pool = way.lane->pool,
                   .device_class = way.lane->device_class,
                   .pods = way.pods,
                   .awaits = {},
                   .by_eviction = by_eviction,
                   .at = EndOf(way.leavers),
                   .since = snapshot_.now};
  return space_.AddHold(std::move(held));
}

bool HoldKeeper::CanStart(const HeldPlace& held) const {
  if (space_.Shortage(held.queue, held.lane->kind, held.devices)) return false;
  return held.lane->board.CanHold(*held.job, held.job->variants[held.hold.variant], held.pods);
}

std::vector<Hold> HoldKeeper::Kept() const {
  std::vector<Hold> holds;
  for (const HeldPlace& held : space_.held()) {
    if (held.job == nullptr) continue;
    Hold hold = held.hold;
    hold.pods = held.pods;
    hold.awaits.clear();
    for (const Tenant* tenant : held.awaits) hold.awaits.push_back(tenant->running.job);
    std::sort(hold.awaits.begin(), hold.awaits.end());
    holds.push_back(std::move(hold));
  }
  std::sort(holds.begin(), holds.end(), [](const Hold& a, const Hold& b) { return a.job < b.job; });
  return holds;
}

std::vector<Tenant*> HoldKeeper::ByEnd() {
  struct Ending {
    Tenant* tenant = nullptr;
    std::optional<TimePoint> end;
  };
  std::vector<Ending> all;
  for (Tenant& tenant : space_.tenants()) {
    all.push_back(
        {&tenant, tenant.leaving ? snapshot_.now : ExpectedEnd(tenant.running, snapshot_.now)});
  }
  std::sort(all.begin(), all.end(), [](const Ending& a, const Ending& b) {
    const auto key = [](const Ending& e) {
      return std::tuple(!e.end.has_value(), e.end.value_or(e.tenant->running.started),
                        e.tenant->running.job);
    };
    return key(a) < key(b);
  });
  std::vector<Tenant*> out;
  for (const Ending& one : all) out.push_back(one.tenant);
  return out;
}

std::optional<TimePoint> HoldKeeper::EndOf(const std::vector<Tenant*>& tenants) const {
  TimePoint end = snapshot_.now;
  for (const Tenant* tenant : tenants) {
    if (tenant->leaving) continue;
    const auto one = ExpectedEnd(tenant->running, snapshot_.now);
    if (!one) return std::nullopt;
    end = std::max(end, *one);
  }
  return end;
}

}  // namespace bimetal::core::queue
