#include "core/queue/cycle.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "core/model/saturate.h"
#include "core/placement/shape.h"
#include "core/queue/explain.h"
#include "core/queue/gate.h"
#include "core/queue/holds.h"
#include "core/queue/preempt.h"
#include "core/queue/rank.h"
#include "core/queue/share.h"
#include "core/queue/space.h"
#include "core/queue/turns.h"

namespace bimetal::core::queue {
namespace {

// In one cycle; those that are carried on cost little.
constexpr int kMostNewReservations = 16;

Rank RankOf(const Job& job) { return {job.priority, job.created, job.uid}; }

// Jobs in the order of their ranks, each uid once.
std::vector<const Job*> InOrder(const std::vector<Job>& pending) {
  std::vector<const Job*> jobs;
  jobs.reserve(pending.size());
  for (const Job& job : pending) jobs.push_back(&job);
  std::sort(jobs.begin(), jobs.end(), [&](const Job* a, const Job* b) {
    if (a->priority != b->priority) return a->priority > b->priority;
    if (a->created != b->created) return a->created < b->created;
    return a->uid < b->uid;
  });
  std::set<Uid> seen;
  std::erase_if(jobs, [&](const Job* job) { return !seen.insert(job->uid).second; });
  return jobs;
}

// How long the job will hold its devices at most, as far as anybody said.
std::optional<Millis> RunTime(const Job& job) {
  return job.max_duration ? job.max_duration : job.estimated_duration;
}

std::string ShapeOfJob(const Job& job, TimePoint now) {
  std::string shape;
  for (std::size_t i = 0; i < job.variants.size(); ++i) {
    shape += placement::ShapeOf(job, job.variants[i]) + (MayUse(job, i, now) ? "/" : "-");
  }
  const auto run = RunTime(job);
  shape += std::to_string(run ? run->v : -1) + "/" + std::to_string(job.priority);
  return shape;
}

class Cycle {
 public:
  explicit Cycle(const Snapshot& snapshot);
  Plan Run();

 private:
  struct Line {
    const Job* job = nullptr;
    int queue = kNoQueue;
    bool started = false;
    Waiting waiting;
  };

  void Admit();
  void Drain();
  void CarryHolds();
  void GiveTurns();
  void TakeTurn(Turns& turns, const Candidate& candidate);
  bool TryAssign(Line& line, const StrictHeads& behind);
  bool TryBeforeHolds(Line& line, const StrictHeads& behind, Turns& turns);
  bool TryLane(Line& line, Lane& lane, std::size_t variant, const std::string* remember);
  bool TryEvict(Line& line, const StrictHeads& behind);
  bool TryReserve(Line& line);
  void Wait(Line& line, const HeldPlace& held);
  bool CouldEverStart(const Job& job, int queue, const Variant& variant);
  void BlockStrict(const Line& line);
  StrictHeads Behind(const Line& line) const;
  void WriteRefusals();

  const Snapshot& snapshot_;
  Space space_;
  Shares shares_;
  Preemption preemption_;
  HoldKeeper holds_;
  std::vector<Line> lines_;           // by order
  std::map<int, StrictHeads> heads_;  // of Strict queues
  std::set<int> reserved_;            // queues that have a reservation
  int new_reservations_ = 0;
  Plan plan_;
};

Cycle::Cycle(const Snapshot& snapshot)
    : snapshot_(snapshot),
      space_(snapshot),
      shares_(space_.tree, snapshot.past_use, snapshot.now),
      preemption_(space_, snapshot),
      holds_(space_, snapshot) {}

// Who may stand in line at all.
void Cycle::Admit() {
  for (const Job* job : InOrder(snapshot_.pending)) {
    Line line{.job = job, .queue = space_.tree.Find(job->queue), .started = false, .waiting = {}};
    line.waiting.job = job;
    line.waiting.queue = line.queue;
    if (auto refused = RefusedByQueue(*job, line.queue, space_.tree, snapshot_.namespaces)) {
      line.waiting.reason = refused->reason;
      line.waiting.message = refused->message;
      line.waiting.never = refused->never;
    }
    lines_.push_back(std::move(line));
  }
}

// Evicts what runs in queues that are to be empty.
void Cycle::Drain() {
  for (Tenant& tenant : space_.tenants()) {
    if (tenant.queue == kNoQueue || tenant.leaving) continue;
    const int stopped = space_.tree.StoppedBy(tenant.queue);
    if (stopped == kNoQueue) continue;
    const Queue& queue = space_.tree.At(stopped);
    if (queue.stop != StopPolicy::kHoldAndDrain) continue;
    tenant.leaving = true;
    plan_.evictions.push_back({.job = tenant.running.job,
                               .for_job = {},
                               .message = "queue " + queue.name.value +
                                          " is drained; it can start again when its stopPolicy is "
                                          "None"});
  }
}

bool Cycle::TryLane(Line& line, Lane& lane, std::size_t variant, const std::string* remember) {
  const Job& job = *line.job;
  const Variant& one = job.variants[variant];
  const std::int64_t need = DevicesNeeded(job, one);
  if (space_.tree.NeverMore(line.queue, lane.kind, need)) return false;
  if (space_.Shortage(line.queue, lane.kind, need)) return false;
  auto pods = space_.Search(lane, job, one);
  if (!pods) {
    if (remember != nullptr) lane.refused.insert(*remember);
    return false;
  }
  space_.Start(job, variant, lane, line.queue, *pods, snapshot_.now);
  line.started = true;
  plan_.assignments.push_back(Assignment{.job = job.uid,
                                         .variant = variant,
                                         .pool = lane.pool,
                                         .devices = need,
                                         .pods = std::move(*pods)});
  return true;
}

bool Cycle::TryAssign(Line& line, const StrictHeads& behind) {
  const Job& job = *line.job;
  for (std::size_t i = 0; i < job.variants.size(); ++i) {
    if (behind.contains(job.variants[i].vendor) || !MayUse(job, i, snapshot_.now)) continue;
    const std::string shape = placement::ShapeOf(job, job.variants[i]);
    for (Lane* lane : space_.lanes.Of(job.variants[i].vendor)) {
      if (!lane->refused.contains(shape) && TryLane(line, *lane, i, &shape)) return true;
    }
  }
  return false;
}

// What is promised to others from a certain time on may be used by whoever is sure to have ended.
bool Cycle::TryBeforeHolds(Line& line, const StrictHeads& behind, Turns& turns) {
  const auto run = RunTime(*line.job);
  if (!run) return false;
  const TimePoint end = snapshot_.now + *run;
  std::vector<HeldPlace*> later;
  for (HeldPlace& held : space_.held()) {
    if (held.booked && !held.hold.by_eviction && held.hold.at && end <= *held.hold.at) {
      later.push_back(&held);
    }
  }
  if (later.empty()) return false;
  for (HeldPlace* held : later) space_.Unbook(*held);
  bool started = false;
  for (std::size_t i = 0; i < line.job->variants.size() && !started; ++i) {
    const Vendor vendor = line.job->variants[i].vendor;
    if (behind.contains(vendor) || !MayUse(*line.job, i, snapshot_.now)) continue;
    for (Lane* lane : space_.lanes.Of(vendor)) {
      started = started || TryLane(line, *lane, i, nullptr);
    }
  }
  for (HeldPlace* held : later) {
    if (started) space_.AwaitIfNear(*held, space_.tenants().back());
    space_.Book(*held);
    turns.Touch(held->queue);
  }
  return started;
}

void Cycle::Wait(Line& line, const HeldPlace& held) { line.waiting.held = &held; }

// The way that loses least among all variants and places.
bool Cycle::TryEvict(Line& line, const StrictHeads& behind) {
  const Job& job = *line.job;
  if (!preemption_.MayEvict(job, line.queue)) return false;
  std::optional<Way> best;
  std::int64_t best_cost = 0;
  for (std::size_t i = 0; i < job.variants.size(); ++i) {
    if (behind.contains(job.variants[i].vendor) || !MayUse(job, i, snapshot_.now)) continue;
    for (Lane* lane : space_.lanes.Of(job.variants[i].vendor)) {
      if (space_.tree.NeverMore(line.queue, lane->kind, DevicesNeeded(job, job.variants[i]))) {
        continue;
      }
      auto way = preemption_.FindVictims(job, i, *lane, line.queue);
      if (!way) continue;
      const std::int64_t cost = preemption_.CostOf(*way);
      if (best && best_cost <= cost) continue;
      best = std::move(way);
      best_cost = cost;
    }
  }
  if (!best) return false;
  for (Tenant* tenant : best->leavers) {
    if (tenant->leaving) continue;
    preemption_.Evicted(*tenant);
    plan_.evictions.push_back(
        {.job = tenant->running.job,
         .for_job = job.uid,
         .message = EvictionMessage(job, space_.tree.At(line.queue), *tenant)});
  }
  Wait(line, holds_.Add(job, line.queue, *best, true));
  return true;
}

bool Cycle::TryReserve(Line& line) {
  const Job& job = *line.job;
  const Queue& queue = space_.tree.At(line.queue);
  if (queue.order == QueueOrder::kBestEffort || reserved_.contains(line.queue) ||
      new_reservations_ >= kMostNewReservations ||
      snapshot_.now < WaitsSince(job) + queue.starvation_bound) {
    return false;
  }
  std::optional<Way> best;
  std::optional<TimePoint> best_at;
  for (std::size_t i = 0; i < job.variants.size(); ++i) {
    for (Lane* lane : space_.lanes.Of(job.variants[i].vendor)) {
      if (space_.tree.NeverMore(line.queue, lane->kind, DevicesNeeded(job, job.variants[i]))) {
        continue;
      }
      auto way = FindWay(space_, job, i, *lane, line.queue, holds_.ByEnd());
      if (!way) continue;
      const auto at = holds_.EndOf(way->leavers);
      const bool sooner = !best || (at && (!best_at || *at < *best_at));
      if (!sooner) continue;
      best = std::move(way);
      best_at = at;
    }
  }
  if (!best) return false;
  reserved_.insert(line.queue);
  ++new_reservations_;
  Wait(line, holds_.Add(job, line.queue, *best, false));
  return true;
}

bool Cycle::CouldEverStart(const Job& job, int queue, const Variant& variant) {
  const std::int64_t need = DevicesNeeded(job, variant);
  const std::string shape = placement::ShapeOf(job, variant);
  const auto& lanes = space_.lanes.Of(variant.vendor);
  return std::any_of(lanes.begin(), lanes.end(), [&](Lane* lane) {
    if (space_.tree.NeverMore(queue, lane->kind, need)) return false;
    const auto [known, added] = lane->possible.try_emplace(shape);
    if (added) known->second = lane->explainer.CouldEverFit(job, variant);
    return known->second;
  });
}

void Cycle::BlockStrict(const Line& line) {
  if (space_.tree.At(line.queue).order != QueueOrder::kStrict) return;
  StrictHeads& heads = heads_[line.queue];
  for (const Variant& variant : line.job->variants) {
    if (!CouldEverStart(*line.job, line.queue, variant)) continue;
    const auto [head, added] = heads.emplace(variant.vendor, line.job);
    if (!added && RankOf(*line.job) < RankOf(*head->second)) head->second = line.job;
  }
}

// The jobs of its queue that it may not pass.
StrictHeads Cycle::Behind(const Line& line) const {
  StrictHeads behind;
  const auto heads = heads_.find(line.queue);
  if (heads == heads_.end()) return behind;
  for (const auto& [vendor, head] : heads->second) {
    if (RankOf(*head) < RankOf(*line.job)) behind.emplace(vendor, head);
  }
  return behind;
}

// Those for whom something is held come first: they start, or their places are booked.
void Cycle::CarryHolds() {
  std::map<Uid, Line*> by_uid;
  for (Line& line : lines_) {
    if (line.waiting.reason.empty()) by_uid.emplace(line.job->uid, &line);
  }
  std::vector<std::pair<HeldPlace*, Line*>> carried;
  for (const Hold& hold : holds_.Carried()) {
    const auto at = by_uid.find(hold.job);
    if (at == by_uid.end() || at->second->waiting.held != nullptr) continue;
    Line& line = *at->second;
    HeldPlace* held = holds_.Renew(hold, *line.job, line.queue);
    if (held == nullptr) continue;
    Wait(line, *held);
    if (!hold.by_eviction) reserved_.insert(line.queue);
    carried.emplace_back(held, &line);
  }
  for (const auto& [held, line] : carried) {
    space_.Unbook(*held);
    // Whoever had others evicted starts where it had them evicted: there it is covered.
    const bool elsewhere = !held->hold.by_eviction && TryAssign(*line, {});
    const bool started = elsewhere || TryLane(*line, *held->lane, held->hold.variant, nullptr) ||
                         holds_.CanStart(*held);
    if (!line->started && started) {  // exactly where it was promised
      Lane& lane = *held->lane;
      space_.Start(*line->job, held->hold.variant, lane, line->queue, held->pods, snapshot_.now);
      line->started = true;
      plan_.assignments.push_back({.job = line->job->uid,
                                   .variant = held->hold.variant,
                                   .pool = lane.pool,
                                   .devices = held->devices,
                                   .pods = held->pods});
    }
    const bool was_reserved = !held->hold.by_eviction;
    if (started || (was_reserved && TryEvict(*line, {}))) {
      if (was_reserved) reserved_.erase(line->queue);
      space_.Drop(*held);
      continue;
    }
    space_.Book(*held);
  }
  for (const Vendor vendor : kVendors) {
    for (Lane* lane : space_.lanes.Of(vendor)) lane->refused.clear();
  }
}

void Cycle::TakeTurn(Turns& turns, const Candidate& candidate) {
  Line& line = lines_[candidate.order];
  const StrictHeads behind = Behind(line);
  if (TryAssign(line, behind) || TryBeforeHolds(line, behind, turns)) {
    turns.Pass(candidate);
    return;
  }
  if (TryEvict(line, behind) || TryReserve(line)) {
    BlockStrict(line);
    turns.Pass(candidate);
    return;
  }
  BlockStrict(line);
  turns.Close(candidate);
}

void Cycle::GiveTurns() {
  std::vector<Candidate> candidates;
  for (std::size_t i = 0; i < lines_.size(); ++i) {
    const Line& line = lines_[i];
    if (line.started || !line.waiting.reason.empty()) continue;
    if (line.waiting.held != nullptr) {
      BlockStrict(line);
      continue;
    }
    candidates.push_back({.job = line.job,
                          .order = i,
                          .queue = line.queue,
                          .shape = ShapeOfJob(*line.job, snapshot_.now)});
  }
  Turns turns(space_.tree, shares_, candidates);
  while (const Candidate* next = turns.Next()) TakeTurn(turns, *next);
}

// Reasons are told of the state at the end of the cycle, after all that it gave away.
void Cycle::WriteRefusals() {
  std::map<QueueName, int> of, ahead;
  for (const Line& line : lines_) {
    if (!line.started) ++of[line.job->queue];
  }
  RefusalWriter writer(space_, heads_, snapshot_.now);
  for (const Line& line : lines_) {
    if (line.started) continue;
    Refusal refusal = writer.Write(line.waiting);
    refusal.ahead = ahead[line.job->queue]++;
    refusal.of = of[line.job->queue];
    plan_.refusals.push_back(std::move(refusal));
  }
}

Plan Cycle::Run() {
  Admit();
  Drain();
  CarryHolds();
  GiveTurns();
  plan_.holds = holds_.Kept();
  WriteRefusals();
  plan_.evaluations = space_.searches();
  return std::move(plan_);
}

}  // namespace

Plan Decide(const Snapshot& snapshot) { return Cycle(snapshot).Run(); }

}  // namespace bimetal::core::queue
