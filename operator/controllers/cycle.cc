#include "operator/controllers/cycle.h"

#include <algorithm>
#include <utility>

#include "core/cost/cost.h"
#include "core/queue/choice.h"

namespace bimetal::op {

namespace {

// The prices of the pools whose PriceBook can be read. What is wrong with a book is told by whoever
// bills by it.
std::vector<core::queue::PoolPrices> PricesOf(const Store& store, TimePoint now) {
  std::vector<core::queue::PoolPrices> out;
  for (const auto& [name, pool] : store.pools) {
    const auto object = store.price_books.find(pool.spec().price_book_name());
    if (object == store.price_books.end()) continue;
    const auto book = core::cost::PriceBookFromApi(object->second);
    if (!book) continue;
    out.push_back({.pool = PoolName{name},
                   .prices = core::queue::order::PricesAt(*book, now, PoolName{name})});
  }
  return out;
}

}  // namespace

SchedulingCycle::SchedulingCycle(const Clock& clock, const Store& store,
                                 const NodeController& nodes, std::vector<Claimant*> claimants,
                                 Watcher decided)
    : clock_(clock),
      store_(store),
      nodes_(nodes),
      claimants_(std::move(claimants)),
      decided_(std::move(decided)) {}

std::vector<core::Pod> SchedulingCycle::AssumedPods() const {
  std::vector<core::Pod> out;
  for (const Claimant* claimant : claimants_) {
    for (auto& pod : claimant->AssumedPods()) out.push_back(std::move(pod));
  }
  return out;
}

std::map<std::string, QueueCounts> SchedulingCycle::Queues() const {
  std::map<std::string, QueueCounts> out;
  for (const auto& [name, queue] : store_.queues) out[name];
  for (const Claimant* claimant : claimants_) claimant->Count(&out);
  return out;
}

core::queue::Snapshot SchedulingCycle::MakeSnapshot() const {
  core::queue::Snapshot out;
  out.now = clock_.Now();
  out.pools = PoolsOf(store_);
  out.queues = QueuesOf(store_);
  out.namespaces = store_.namespaces;
  for (const auto& [name, record] : store_.nodes) {
    core::Node node = record.node;
    node.devices = nodes_.DevicesOf(name);
    node.cordoned = node.cordoned || nodes_.OnHold(name);
    out.nodes.push_back(std::move(node));
  }
  for (const auto& [key, pod] : store_.pods) {
    if (!pod.ended) out.pods.push_back(pod.holds);
  }
  for (auto& pod : AssumedPods()) out.pods.push_back(std::move(pod));
  for (const Claimant* claimant : claimants_) claimant->AddTo(&out);
  out.holds = holds_;
  if (std::any_of(out.pending.begin(), out.pending.end(), core::queue::AsksForPrices)) {
    out.prices = PricesOf(store_, out.now);
  }
  out.settling = nodes_.Settling();
  return out;
}

std::string_view SchedulingCycle::Run() {
  const auto snapshot = MakeSnapshot();
  const bool draining = std::any_of(snapshot.queues.begin(), snapshot.queues.end(), [](auto& q) {
    return q.stop == core::StopPolicy::kHoldAndDrain;
  });
  if (snapshot.pending.empty() && !(draining && !snapshot.running.empty())) {
    holds_.clear();
    return "idle";
  }
  const auto plan = core::queue::Decide(snapshot);
  holds_ = plan.holds;
  if (decided_) decided_(snapshot, plan);
  const auto deliver = [this](auto&& take) {
    return std::any_of(claimants_.begin(), claimants_.end(), take);
  };
  for (const auto& one : plan.evictions) deliver([&](Claimant* c) { return c->Evict(one); });
  for (const auto& one : plan.assignments) deliver([&](Claimant* c) { return c->Assign(one); });
  for (const auto& one : plan.refusals) deliver([&](Claimant* c) { return c->Refuse(one); });
  return plan.assignments.empty() ? "refused" : "placed";
}

}  // namespace bimetal::op
