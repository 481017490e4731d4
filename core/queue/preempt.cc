#include "core/queue/preempt.h"

#include <algorithm>
#include <tuple>

#include "core/model/saturate.h"

namespace bimetal::core::queue {
namespace {

constexpr Millis kHour = Minutes(60);

}  // namespace

std::int64_t LostBy(const Running& running, TimePoint now) {
  const TimePoint kept = std::max(running.started, running.checkpointed.value_or(running.started));
  const std::int64_t age =
      std::max<std::int64_t>(0, Saturate(static_cast<__int128>(now.ms) - kept.ms));
  return SaturatingMultiply(age, running.devices);
}

std::optional<TimePoint> ExpectedEnd(const Running& running, TimePoint now) {
  if (running.expected_end && *running.expected_end > now) {
    return running.latest_end ? std::min(*running.expected_end, *running.latest_end)
                              : *running.expected_end;
  }
  return LatestEnd(running);
}

std::optional<TimePoint> LatestEnd(const Running& running) { return running.latest_end; }

Preemption::Preemption(Space& space, const Snapshot& snapshot)
    : space_(space), snapshot_(snapshot) {
  for (const PastEviction& past : snapshot.past_evictions) {
    const int queue = space.tree.Find(past.queue);
    if (queue != kNoQueue && past.at + kHour > snapshot.now) ++evictions_[queue];
  }
}

bool Preemption::MayEvict(const Job&, int queue) const {
  const QueuePreemption& policy = space_.tree.At(queue).preemption;
  return policy.within_queue != WithinQueue::kNever || policy.reclaim != Reclaim::kNever;
}

// Who is covered now. The same as long as nobody starts, is told to go, or is waited for.
const Coverage& Preemption::CoverageNow() {
  if (coverage_ && coverage_of_ == space_.changes()) return *coverage_;
  std::vector<Claim> claims;
  claim_of_.clear();
  for (const Tenant& tenant : space_.tenants()) {
    claim_of_.push_back(claims.size());
    if (tenant.leaving || tenant.queue == kNoQueue) continue;
    const Running& r = tenant.running;
    claims.push_back({.rank = {r.priority, r.created, r.job},
                      .queue = tenant.queue,
                      .kind = tenant.kind,
                      .devices = r.devices});
  }
  for (const HeldPlace& held : space_.held()) {
    if (held.job == nullptr || !held.hold.by_eviction) continue;
    claims.push_back({.rank = {held.job->priority, held.job->created, held.job->uid},
                      .queue = held.queue,
                      .kind = held.lane->kind,
                      .devices = held.devices});
  }
  coverage_.emplace(space_.tree, std::move(claims));
  coverage_of_ = space_.changes();
  return *coverage_;
}

bool Preemption::IsVictim(const Tenant& tenant, int covered, const Job& job, int queue,
                          int own) const {
  const Running& running = tenant.running;
  if (tenant.started_now || !running.evictable) return false;
  const QueuePreemption& theirs = space_.tree.At(tenant.queue).preemption;
  if (running.started + theirs.min_runtime > snapshot_.now) return false;
  const QueuePreemption& ours = space_.tree.At(queue).preemption;
  const bool lower = running.priority < job.priority;
  if (tenant.queue == queue) {
    if (ours.within_queue == WithinQueue::kNever || !lower) return false;
    return covered == kUncovered || covered >= own;
  }
  if (ours.reclaim == Reclaim::kNever || own == kUncovered) return false;
  return covered == kUncovered && (ours.reclaim == Reclaim::kAny || lower);
}

std::vector<Tenant*> Preemption::CandidatesFor(const Job& job, int queue, std::size_t kind,
                                               std::int64_t devices) {
  struct Ranked {
    Tenant* tenant = nullptr;
    std::int64_t lost = 0;
  };
  const Coverage& coverage = CoverageNow();
  const int own = coverage.RoundWith({.rank = {job.priority, job.created, job.uid},
                                      .queue = queue,
                                      .kind = kind,
                                      .devices = devices});
  std::vector<Tenant*> leaving;
  std::vector<Ranked> victims;
  auto& tenants = space_.tenants();
  for (std::size_t i = 0; i < tenants.size(); ++i) {
    if (tenants[i].leaving) {
      if (!space_.IsPromised(tenants[i], queue)) leaving.push_back(&tenants[i]);
    } else if (tenants[i].queue != kNoQueue &&
               IsVictim(tenants[i], coverage.rounds()[claim_of_[i]], job, queue, own)) {
      victims.push_back({&tenants[i], LostBy(tenants[i].running, snapshot_.now)});
    }
  }
  std::sort(victims.begin(), victims.end(), [](const Ranked& a, const Ranked& b) {
    const Running& x = a.tenant->running;
    const Running& y = b.tenant->running;
    return std::tuple(!x.yields_first, a.lost, x.priority, y.started, x.job) <
           std::tuple(!y.yields_first, b.lost, y.priority, x.started, y.job);
  });
  std::map<int, std::int64_t> more;  // evictions of a queue's jobs that this may add
  for (const Ranked& victim : victims) {
    const int theirs = victim.tenant->queue;
    const auto& most = space_.tree.At(theirs).preemption.max_evictions_per_hour;
    const auto past = evictions_.find(theirs);
    const std::int64_t already = past == evictions_.end() ? 0 : past->second;
    if (most && already + more[theirs] >= *most) continue;
    ++more[theirs];
    leaving.push_back(victim.tenant);
  }
  return leaving;
}

std::optional<Way> Preemption::FindVictims(const Job& job, std::size_t variant, Lane& lane,
                                           int queue) {
  const std::int64_t need = DevicesNeeded(job, job.variants[variant]);
  const std::vector<Tenant*> candidates = CandidatesFor(job, queue, lane.kind, need);
  if (candidates.empty()) return std::nullopt;
  return FindWay(space_, job, variant, lane, queue, candidates);
}

std::int64_t Preemption::CostOf(const Way& way) const {
  std::int64_t cost = 0;
  for (const Tenant* tenant : way.leavers) {
    if (!tenant->leaving) cost = SaturatingAdd(cost, LostBy(tenant->running, snapshot_.now));
  }
  return cost;
}

void Preemption::Evicted(Tenant& tenant) {
  tenant.leaving = true;
  space_.Changed();
  ++evictions_[tenant.queue];
}

}  // namespace bimetal::core::queue
