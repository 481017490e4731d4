#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/queue/cycle.h"
#include "operator/controllers/nodes.h"
#include "operator/state/store.h"

namespace bimetal::op {

// What is in a queue, counted.
struct QueueCounts {
  int pending = 0, admitted = 0;
  std::map<core::Vendor, std::int64_t> used;  // whole devices
};

// Whoever wants devices for entries of its own (jobs, replicas, pods of others): says what it wants
// and holds, and carries out what was decided. Each entry has a uid of its own. Loop thread only.
class Claimant {
 public:
  virtual ~Claimant() = default;

  // Adds the entries that want a place and what the placed ones hold. Nothing before it has
  // started.
  virtual void AddTo(core::queue::Snapshot* snapshot) const = 0;
  // Pods that were asked for and not seen yet, as they will hold their nodes.
  virtual std::vector<core::Pod> AssumedPods() const = 0;
  // Counts the entries of the queues that are in `counts`; others are left out.
  virtual void Count(std::map<std::string, QueueCounts>* counts) const = 0;

  // Each is true where the entry is this claimant's; the decision has been carried out then.
  virtual bool Assign(const core::queue::Assignment& assignment) = 0;
  virtual bool Refuse(const core::queue::Refusal& refusal) = 0;
  virtual bool Evict(const core::queue::Eviction& eviction) = 0;
};

// One scheduling cycle: a snapshot of the store and of all claimants' wishes, core's decision, and
// its delivery to whom it concerns. Loop thread only.
class SchedulingCycle {
 public:
  // Told of every decision before it is carried out. May be empty.
  using Watcher = std::function<void(const core::queue::Snapshot&, const core::queue::Plan&)>;

  // Borrowed, all of them.
  SchedulingCycle(const Clock& clock, const Store& store, const NodeController& nodes,
                  std::vector<Claimant*> claimants, Watcher decided = {});

  // Everything that the next decision depends on.
  core::queue::Snapshot MakeSnapshot() const;
  // Decides and delivers: "idle" (nobody wants anything), "placed" or "refused".
  std::string_view Run();

  // Of all claimants together.
  std::vector<core::Pod> AssumedPods() const;
  // Of the queues that exist.
  std::map<std::string, QueueCounts> Queues() const;

 private:
  const Clock& clock_;
  const Store& store_;
  const NodeController& nodes_;
  std::vector<Claimant*> claimants_;
  Watcher decided_;
  std::vector<core::queue::Hold> holds_;  // of the last plan
};

}  // namespace bimetal::op
