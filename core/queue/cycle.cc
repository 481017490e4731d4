#include "core/queue/cycle.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "core/model/saturate.h"
#include "core/placement/shape.h"
#include "core/queue/choice.h"
#include "core/queue/elastic.h"
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
std::vector<const Job*> InOrder(const std::vector<Shared<Job>>& pending) {
  std::vector<const Job*> jobs;
  jobs.reserve(pending.size());
  for (const Job& job : pending) jobs.push_back(&job);
  std::sort(jobs.begin(), jobs.end(), [&](const Job* a, const Job* b) {
    if (a->priority != b->priority) return a->priority > b->priority;
    if (a->created != b->created) return a->created < b->created;
    return a->uid < b->uid;
  });
  // That one comes twice is rare, so it is first asked whether any does.
  std::vector<std::string_view> uids;
  uids.reserve(jobs.size());
  for (const Job* job : jobs) uids.push_back(job->uid.value);
  std::sort(uids.begin(), uids.end());
  if (std::adjacent_find(uids.begin(), uids.end()) == uids.end()) return jobs;
  std::set<std::string_view> seen;
  std::erase_if(jobs, [&](const Job* job) { return !seen.insert(job->uid.value).second; });
  return jobs;
}

// How long the job will hold its devices at most, as far as anybody said.
std::optional<Millis> RunTime(const Job& job) {
  return job.max_duration ? job.max_duration : job.estimated_duration;
}

std::string ShapeOfJob(const Job& job, TimePoint now) {
  std::string shape = std::to_string(static_cast<int>(job.selection)) + "/";
  for (std::size_t i = 0; i < job.variants.size(); ++i) {
    const Variant& variant = job.variants[i];
    shape += placement::ShapeOf(job, variant) + (MayUse(job, i, now) ? "/" : "-") +
             std::to_string(variant.max_nano_per_hour.value_or(-1)) + "/" +
             std::to_string(variant.relative_throughput_milli.value_or(-1)) + "/";
  }
  for (const Role& role : job.roles) {
    shape += std::to_string(role.min_replicas.value_or(-1)) + "/";
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
    bool ordered = false;  // waiting.order is known
    Waiting waiting;
  };

  void Admit();
  void Drain();
  void CarryHolds();
  void GiveTurns();
  void TakeTurn(Turns& turns, const Candidate& candidate);
  const std::vector<std::size_t>& OrderOf(Line& line);
  bool IsOpen(const Line& line, std::size_t variant, const StrictHeads& behind) const;
  bool IsOutpaced(Line& line, std::size_t variant);
  bool TryAssign(Line& line, const StrictHeads& behind);
  bool TrySmaller(Line& line, const StrictHeads& behind);
  bool TryBeforeHolds(Line& line, const StrictHeads& behind, Turns& turns);
  bool TryLane(Line& line, Lane& lane, std::size_t variant, const std::string* remember);
  void Start(Line& line, const Job& gang, std::size_t variant, Lane& lane,
             std::vector<placement::PodPlacement> pods);
  bool TryEvict(Line& line, const StrictHeads& behind);
  bool TryReserve(Line& line);
  void Wait(Line& line, const HeldPlace& held);
  bool CouldEverStart(const Job& job, int queue, std::size_t variant);
  bool Settles(const Job& job) const;
  void BlockStrict(const Line& line);
  StrictHeads Behind(const Line& line) const;
  void WriteRefusals();

  const Snapshot& snapshot_;
  Space space_;
  Choice choice_;
  Shares shares_;
  Preemption preemption_;
  HoldKeeper holds_;
  std::vector<Line> lines_;           // by order
  std::map<int, StrictHeads> heads_;  // of Strict queues
  std::set<int> reserved_;            // queues that have a reservation
  std::set<Vendor> settling_;
  int new_reservations_ = 0;
  Plan plan_;
};

Cycle::Cycle(const Snapshot& snapshot)
    : snapshot_(snapshot),
      space_(snapshot),
      choice_(snapshot),
      shares_(space_.tree, snapshot.past_use, snapshot.now),
      preemption_(space_, snapshot),
      holds_(space_, snapshot),
      settling_(snapshot.settling.begin(), snapshot.settling.end()) {}

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
  const Job* job = choice_.In(lane.pool, *line.job, variant);
  if (job == nullptr) return false;
  const Variant& one = job->variants[variant];
  const std::int64_t need = DevicesNeeded(*job, one);
  if (space_.tree.NeverMore(line.queue, lane.kind, need)) return false;
  if (space_.Shortage(line.queue, lane.kind, need)) return false;
  auto pods = space_.Search(lane, *job, one);
  if (!pods) {
    if (remember != nullptr && job == line.job) lane.refused.insert(*remember);
    return false;
  }
  Start(line, *job, variant, lane, std::move(*pods));
  return true;
}

void Cycle::Start(Line& line, const Job& gang, std::size_t variant, Lane& lane,
                  std::vector<placement::PodPlacement> pods) {
  space_.Start(gang, variant, lane, line.queue, pods, snapshot_.now);
  line.started = true;
  plan_.assignments.push_back(Assignment{.job = gang.uid,
                                         .variant = variant,
                                         .pool = lane.pool,
                                         .devices = DevicesNeeded(gang, gang.variants[variant]),
                                         .pods = std::move(pods)});
}

// The variants that the job may start as, in the order of its policy.
const std::vector<std::size_t>& Cycle::OrderOf(Line& line) {
  if (line.ordered) return line.waiting.order;
  std::vector<bool> possible;
  if (line.job->selection == SelectionPolicy::kLowestCost) {
    for (std::size_t i = 0; i < line.job->variants.size(); ++i) {
      possible.push_back(settling_.contains(line.job->variants[i].vendor) ||
                         CouldEverStart(*line.job, line.queue, i));
    }
  }
  line.waiting.order = choice_.Order(*line.job, possible);
  line.ordered = true;
  return line.waiting.order;
}

bool Cycle::IsOpen(const Line& line, std::size_t variant, const StrictHeads& behind) const {
  return !behind.contains(line.job->variants[variant].vendor) &&
         MayUse(*line.job, variant, snapshot_.now);
}

// EarliestStart: the job would have ended sooner if it waited for a faster variant.
bool Cycle::IsOutpaced(Line& line, std::size_t variant) {
  const Job& job = *line.job;
  if (job.selection != SelectionPolicy::kEarliestStart || !job.estimated_duration) return false;
  const auto candidate = [&](std::size_t i) {
    order::Candidate one;
    one.throughput_milli = job.variants[i].relative_throughput_milli;
    return one;
  };
  for (const std::size_t faster : line.waiting.order) {
    if (faster == variant) break;
    for (Lane* lane : space_.lanes.Of(job.variants[faster].vendor)) {
      const Job* there = choice_.In(lane->pool, job, faster);
      if (there == nullptr) continue;
      const auto way = FindWay(space_, *there, faster, *lane, line.queue, holds_.ByEnd());
      const auto at = way ? holds_.EndOf(way->leavers) : std::nullopt;
      if (at && order::WorthWaiting(candidate(variant), candidate(faster), snapshot_.now, *at,
                                    job.estimated_duration)) {
        line.waiting.outpaced.insert(variant);
        return true;
      }
    }
  }
  return false;
}

bool Cycle::TryAssign(Line& line, const StrictHeads& behind) {
  const Job& job = *line.job;
  for (const std::size_t i : OrderOf(line)) {
    const Vendor vendor = job.variants[i].vendor;
    if (IsOpen(line, i, behind) && !IsOutpaced(line, i)) {
      const std::string shape = placement::ShapeOf(job, job.variants[i]);
      for (Lane* lane : space_.lanes.Of(vendor)) {
        if (!lane->refused.contains(shape) && TryLane(line, *lane, i, &shape)) return true;
      }
    }
    if (settling_.contains(vendor)) return false;  // nodes not heard yet may have room for it
  }
  return false;
}

// The largest gang that fits now of a job that may start with fewer pods than it asks for.
bool Cycle::TrySmaller(Line& line, const StrictHeads& behind) {
  if (!IsElastic(*line.job) || Settles(*line.job)) return false;
  for (const std::size_t i : OrderOf(line)) {
    if (!IsOpen(line, i, behind) || IsOutpaced(line, i)) continue;
    std::optional<Job> best;
    Lane* best_lane = nullptr;
    for (Lane* lane : space_.lanes.Of(line.job->variants[i].vendor)) {
      const Job* job = choice_.In(lane->pool, *line.job, i);
      if (job == nullptr) continue;
      auto gang = LargestThatFits(*job, [&](const Job& smaller) {
        const Variant& variant = smaller.variants[i];
        const std::int64_t need = DevicesNeeded(smaller, variant);
        return !space_.tree.NeverMore(line.queue, lane->kind, need) &&
               !space_.Shortage(line.queue, lane->kind, need) &&
               space_.Search(*lane, smaller, variant).has_value();
      });
      if (!gang || (best && PodCount(*gang) <= PodCount(*best))) continue;
      best = std::move(gang);
      best_lane = lane;
    }
    if (!best) continue;
    auto pods = space_.Search(*best_lane, *best, best->variants[i]);
    Start(line, *best, i, *best_lane, std::move(*pods));
    return true;
  }
  return false;
}

// What is promised to others from a certain time on may be used by whoever is sure to have ended.
bool Cycle::TryBeforeHolds(Line& line, const StrictHeads& behind, Turns& turns) {
  const auto run = RunTime(*line.job);
  if (!run || Settles(*line.job)) return false;
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
  for (const std::size_t i : OrderOf(line)) {
    if (started || !IsOpen(line, i, behind) || IsOutpaced(line, i)) continue;
    for (Lane* lane : space_.lanes.Of(line.job->variants[i].vendor)) {
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
  if (!settling_.empty() || !preemption_.MayEvict(job, line.queue)) return false;
  std::optional<Way> best;
  std::int64_t best_cost = 0;
  for (const std::size_t i : OrderOf(line)) {
    if (!IsOpen(line, i, behind)) continue;
    for (Lane* lane : space_.lanes.Of(job.variants[i].vendor)) {
      const Job* there = choice_.In(lane->pool, job, i);
      if (there == nullptr ||
          space_.tree.NeverMore(line.queue, lane->kind, DevicesNeeded(job, job.variants[i]))) {
        continue;
      }
      auto way = preemption_.FindVictims(*there, i, *lane, line.queue);
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
  if (!settling_.empty() || queue.order == QueueOrder::kBestEffort ||
      reserved_.contains(line.queue) || new_reservations_ >= kMostNewReservations ||
      snapshot_.now < WaitsSince(job) + queue.starvation_bound) {
    return false;
  }
  std::optional<Way> best;
  std::optional<TimePoint> best_at;
  for (const std::size_t i : OrderOf(line)) {
    for (Lane* lane : space_.lanes.Of(job.variants[i].vendor)) {
      const Job* there = choice_.In(lane->pool, job, i);
      if (there == nullptr ||
          space_.tree.NeverMore(line.queue, lane->kind, DevicesNeeded(job, job.variants[i]))) {
        continue;
      }
      auto way = FindWay(space_, *there, i, *lane, line.queue, holds_.ByEnd());
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

bool Cycle::CouldEverStart(const Job& job, int queue, std::size_t variant) {
  const Vendor vendor = job.variants[variant].vendor;
  const auto& lanes = space_.lanes.Of(vendor);
  return std::any_of(lanes.begin(), lanes.end(), [&](Lane* lane) {
    const Job* in = choice_.In(lane->pool, job, variant);
    if (in == nullptr) return false;
    std::optional<Job> made;
    const Job& least = Smallest(*in, &made);
    const Variant& one = least.variants[variant];
    if (space_.tree.NeverMore(queue, lane->kind, DevicesNeeded(least, one))) return false;
    const auto [known, added] = lane->possible.try_emplace(placement::ShapeOf(least, one));
    if (added) known->second = lane->explainer.CouldEverFit(least, one);
    return known->second;
  });
}

// Some node that was open before the operator's start, and has not been heard since, could serve
// the job.
bool Cycle::Settles(const Job& job) const {
  return !settling_.empty() &&
         std::any_of(job.variants.begin(), job.variants.end(),
                     [&](const Variant& v) { return settling_.contains(v.vendor); });
}

void Cycle::BlockStrict(const Line& line) {
  if (space_.tree.At(line.queue).order != QueueOrder::kStrict) return;
  StrictHeads& heads = heads_[line.queue];
  for (std::size_t i = 0; i < line.job->variants.size(); ++i) {
    const Vendor vendor = line.job->variants[i].vendor;
    if (!settling_.contains(vendor) && !CouldEverStart(*line.job, line.queue, i)) continue;
    const auto [head, added] = heads.emplace(vendor, line.job);
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
    if (hold.variant >= line.job->variants.size()) continue;
    const Job* there = choice_.In(hold.pool, *line.job, hold.variant);
    if (there == nullptr) continue;
    HeldPlace* held = holds_.Renew(hold, *there, line.queue);
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
      Start(*line, *line->job, held->hold.variant, *held->lane, held->pods);
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
  if (TryAssign(line, behind) || TryBeforeHolds(line, behind, turns) || TrySmaller(line, behind)) {
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
  RefusalWriter writer(space_, choice_, heads_, snapshot_.now);
  for (Line& line : lines_) {
    if (line.started) continue;
    if (line.waiting.reason.empty()) {
      if (Settles(*line.job)) continue;
      OrderOf(line);
    }
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
