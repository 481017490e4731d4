#include "core/queue/cycle.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "core/placement/board.h"
#include "core/placement/obstacle.h"
#include "core/placement/shape.h"
#include "core/queue/explain.h"
#include "core/queue/quota.h"

namespace bimetal::core::queue {
namespace {

using placement::Board;
using placement::Explainer;
using placement::GangResult;
using placement::Obstacle;

// One pool during the cycle. Capacity only shrinks meanwhile, so a shape that did not fit once does
// not fit again and is not tried again.
struct PoolState {
  PoolState(PoolName pool_name, std::vector<placement::Room>* rooms,
            const std::vector<std::size_t>& members, Vendor vendor)
      : name(std::move(pool_name)), board(rooms, members, vendor), explainer(&board) {}

  PoolName name;
  Board board;
  Explainer explainer;
  std::set<std::string> refused;                // shapes
  std::map<std::string, bool> possible;         // shape -> CouldEverFit
  std::map<std::string, GangResult> explained;  // shape -> why not, at the end of the cycle
};

// A job that waits, with what kept it back beside capacity.
struct Waiting {
  const Job* job = nullptr;
  const Queue* queue = nullptr;
  // A Strict queue's job ahead of it, by vendor.
  std::map<Vendor, const Job*> behind;
};

// Jobs in the order in which they are decided, each uid once.
std::vector<const Job*> InOrder(const std::vector<Job>& pending) {
  std::vector<const Job*> jobs;
  jobs.reserve(pending.size());
  for (const Job& job : pending) jobs.push_back(&job);
  std::sort(jobs.begin(), jobs.end(), [](const Job* a, const Job* b) {
    return std::tuple(-static_cast<__int128>(a->priority), a->created, a->uid) <
           std::tuple(-static_cast<__int128>(b->priority), b->created, b->uid);
  });
  std::set<Uid> seen;
  std::erase_if(jobs, [&](const Job* job) { return !seen.insert(job->uid).second; });
  return jobs;
}

class Cycle {
 public:
  explicit Cycle(const Snapshot& snapshot);
  Plan Run();

 private:
  struct QueueRefusal {
    std::string_view reason;
    std::string message;
  };

  std::optional<QueueRefusal> RefusedByQueue(const Job& job, const Queue* queue) const;
  bool TryAssign(const Job& job, const Queue& queue, const std::map<Vendor, const Job*>& behind);
  bool TryPool(PoolState& pool, const Job& job, const std::string& shape, std::size_t variant);
  bool CouldEverStart(const Job& job, const Queue& queue, const Variant& variant);
  VariantFinding Explain(const Waiting& waiting, const Variant& variant);
  GangResult ExplainIn(PoolState& pool, const Job& job, const Variant& variant);

  const Snapshot& snapshot_;
  std::vector<placement::Room> rooms_;
  std::map<Vendor, std::vector<std::unique_ptr<PoolState>>> pools_;  // by name
  std::map<QueueName, const Queue*> queues_;
  QuotaUse quota_;
  Plan plan_;
};

Cycle::Cycle(const Snapshot& snapshot)
    : snapshot_(snapshot),
      rooms_(placement::MakeRooms(snapshot.nodes, placement::MakeBooks(snapshot.pods))),
      quota_(snapshot.holdings) {
  std::map<std::pair<Vendor, PoolName>, std::vector<std::size_t>> members;
  for (const Pool& pool : snapshot.pools) members[{pool.vendor, pool.name}];
  for (std::size_t i = 0; i < rooms_.size(); ++i) {
    for (const auto& [vendor, devices] : rooms_[i].node->devices) {
      const auto pool = members.find({vendor, devices.pool});
      if (pool != members.end()) pool->second.push_back(i);
    }
  }
  for (const auto& [key, nodes] : members) {
    pools_[key.first].push_back(std::make_unique<PoolState>(key.second, &rooms_, nodes, key.first));
  }
  for (const Queue& queue : snapshot.queues) queues_.emplace(queue.name, &queue);
}

std::optional<Cycle::QueueRefusal> Cycle::RefusedByQueue(const Job& job, const Queue* queue) const {
  const std::string name = "queue " + job.queue.value;
  if (queue == nullptr) {
    return QueueRefusal{"QueueNotFound",
                        name +
                            " does not exist; it can start when that GPUQueue is created, or "
                            "create the job again with another queueName"};
  }
  if (!queue->namespace_selector.empty()) {
    const auto labels = snapshot_.namespaces.find(job.name_space);
    for (const auto& [key, value] : queue->namespace_selector) {
      if (labels != snapshot_.namespaces.end()) {
        const auto label = labels->second.find(key);
        if (label != labels->second.end() && label->second == value) continue;
      }
      return QueueRefusal{"QueueNotAllowed",
                          name + " is not open to namespace " + job.name_space +
                              "; it can start when the namespace has the label " + key + "=" +
                              value};
    }
  }
  if (queue->hold) {
    return QueueRefusal{"QueueStopped",
                        name + " is on hold; it can start when its stopPolicy is None"};
  }
  return std::nullopt;
}

bool Cycle::TryPool(PoolState& pool, const Job& job, const std::string& shape,
                    std::size_t variant) {
  if (pool.refused.contains(shape)) return false;
  auto pods = pool.board.Find(job, job.variants[variant]);
  if (!pods) {
    pool.refused.insert(shape);
    return false;
  }
  pool.board.Book(job, job.variants[variant], *pods);
  plan_.assignments.push_back(Assignment{.job = job.uid,
                                         .variant = variant,
                                         .pool = pool.name,
                                         .devices = DevicesNeeded(job, job.variants[variant]),
                                         .pods = std::move(*pods)});
  return true;
}

bool Cycle::TryAssign(const Job& job, const Queue& queue,
                      const std::map<Vendor, const Job*>& behind) {
  for (std::size_t i = 0; i < job.variants.size(); ++i) {
    const Variant& variant = job.variants[i];
    const std::int64_t need = DevicesNeeded(job, variant);
    if (behind.contains(variant.vendor)) continue;
    if (const auto left = quota_.Left(queue, variant.vendor); left && *left < need) continue;
    const std::string shape = placement::ShapeOf(job, variant);
    for (const auto& pool : pools_[variant.vendor]) {
      if (!TryPool(*pool, job, shape, i)) continue;
      quota_.Add(queue.name, variant.vendor, need);
      return true;
    }
  }
  return false;
}

bool Cycle::CouldEverStart(const Job& job, const Queue& queue, const Variant& variant) {
  const auto limit = queue.limit.find(variant.vendor);
  if (limit != queue.limit.end() && limit->second < DevicesNeeded(job, variant)) return false;
  const std::string shape = placement::ShapeOf(job, variant);
  const auto& pools = pools_[variant.vendor];
  return std::any_of(pools.begin(), pools.end(), [&](const auto& pool) {
    const auto [known, added] = pool->possible.try_emplace(shape);
    if (added) known->second = pool->explainer.CouldEverFit(job, variant);
    return known->second;
  });
}

GangResult Cycle::ExplainIn(PoolState& pool, const Job& job, const Variant& variant) {
  const std::string shape = placement::ShapeOf(job, variant);
  const auto [known, added] = pool.explained.try_emplace(shape);
  if (!added) return known->second;
  if (pool.refused.contains(shape)) {
    known->second = pool.explainer.Explain(job, variant);
  } else if (auto pods = pool.board.Find(job, variant)) {  // only its queue keeps it back
    known->second.need = DevicesNeeded(job, variant);
    known->second.free = pool.board.FreeFor(variant);
  } else {
    known->second = pool.explainer.Explain(job, variant);
  }
  return known->second;
}

bool IsNever(Obstacle obstacle) {
  return obstacle == Obstacle::kNoMatchingDevice || obstacle == Obstacle::kExceedsCapacity;
}

// The pool that comes closest: waiting before never, then what is missing least.
bool IsCloser(const GangResult& a, const GangResult& b) {
  const auto rank = [](const GangResult& r) {
    return std::tuple(IsNever(r.obstacle), r.obstacle == Obstacle::kNoMatchingDevice,
                      r.obstacle != Obstacle::kNone, -r.free);
  };
  return rank(a) < rank(b);
}

VariantFinding Cycle::Explain(const Waiting& waiting, const Variant& variant) {
  const Job& job = *waiting.job;
  const std::int64_t need = DevicesNeeded(job, variant);
  VariantFinding finding;
  finding.blocker.variant = variant.name;
  finding.blocker.need = need;
  std::optional<GangResult> best;
  for (const auto& pool : pools_[variant.vendor]) {
    GangResult result = ExplainIn(*pool, job, variant);
    if (best && !IsCloser(result, *best)) continue;
    best = std::move(result);
    finding.pool = pool->name;
  }
  if (!best) {
    finding.blocker.reason = "NoMatchingDevice";
    finding.blocker.unblocked_by =
        "a GPUPool of vendor " + std::string(VendorName(variant.vendor)) + " exists";
    finding.never = true;
    return finding;
  }
  finding.blocker.free = best->free;
  finding.blocker.reason = ReasonOf(best->obstacle);
  finding.blocker.unblocked_by = best->unblocked_by;
  finding.never = IsNever(best->obstacle);
  if (finding.never) return finding;

  const std::string queue_name = "queue " + waiting.queue->name.value;
  const std::string devices = std::string(VendorName(variant.vendor)) + " devices";
  const auto limit = waiting.queue->limit.find(variant.vendor);
  const auto left = quota_.Left(*waiting.queue, variant.vendor);
  if (limit != waiting.queue->limit.end() && limit->second < need) {
    finding.blocker.reason = "ExceedsCapacity";
    finding.blocker.free = left.value_or(0);
    finding.blocker.unblocked_by = "the limit of " + queue_name + " for " + devices +
                                   " rises from " + std::to_string(limit->second) + " to " +
                                   std::to_string(need) + ", or the job asks for fewer";
    finding.never = true;
  } else if (left && *left < need) {
    finding.blocker.reason = "WaitingForQuota";
    finding.blocker.free = *left;
    finding.blocker.unblocked_by =
        "jobs of " + queue_name + " release " + std::to_string(need - *left) + " more " + devices;
  } else if (const auto behind = waiting.behind.find(variant.vendor);
             behind != waiting.behind.end()) {
    finding.blocker.reason = "WaitingForDevices";
    finding.blocker.unblocked_by = "job " + behind->second->name_space + "/" +
                                   behind->second->name + ", which is ahead of it in the Strict " +
                                   queue_name + ", has started";
  }
  return finding;
}

Plan Cycle::Run() {
  const std::vector<const Job*> jobs = InOrder(snapshot_.pending);
  std::vector<Waiting> waiting;
  std::map<QueueName, std::map<Vendor, const Job*>> heads;  // of Strict queues
  for (const Job* job : jobs) {
    const auto found = queues_.find(job->queue);
    const Queue* queue = found == queues_.end() ? nullptr : found->second;
    if (RefusedByQueue(*job, queue)) {
      waiting.push_back(Waiting{.job = job, .queue = queue, .behind = {}});
      continue;
    }
    auto& behind = heads[job->queue];
    if (TryAssign(*job, *queue, behind)) continue;
    waiting.push_back(Waiting{.job = job, .queue = queue, .behind = behind});
    if (queue->order != QueueOrder::kStrict) continue;
    for (const Variant& variant : job->variants) {
      if (CouldEverStart(*job, *queue, variant)) behind.emplace(variant.vendor, job);
    }
  }

  // Reasons are told of the state at the end of the cycle, after all that it gave away.
  std::map<QueueName, int> of, ahead;
  for (const Waiting& one : waiting) ++of[one.job->queue];
  for (const Waiting& one : waiting) {
    Refusal refusal;
    refusal.job = one.job->uid;
    refusal.ahead = ahead[one.job->queue]++;
    refusal.of = of[one.job->queue];
    if (const auto by_queue = RefusedByQueue(*one.job, one.queue)) {
      refusal.reason = by_queue->reason;
      refusal.message = Cut(by_queue->message, kMaxMessage);
    } else {
      std::vector<VariantFinding> findings;
      for (const Variant& variant : one.job->variants) findings.push_back(Explain(one, variant));
      Summarise(findings, &refusal);
    }
    plan_.refusals.push_back(std::move(refusal));
  }
  return std::move(plan_);
}

}  // namespace

Plan Decide(const Snapshot& snapshot) { return Cycle(snapshot).Run(); }

}  // namespace bimetal::core::queue
