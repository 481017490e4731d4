#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/shared.h"
#include "core/model/fleet.h"
#include "core/model/job.h"
#include "core/placement/gang.h"
#include "core/queue/order/select.h"

namespace bimetal::core::queue {

// What something placed holds of one node, all its pods there together.
struct Place {
  NodeName node;
  std::int64_t devices = 0;  // whole devices
  Resources requests;
};

// Something that has a place: it counts on its queue's quota until its last pod is gone. What it
// holds is in Snapshot::pods as well; `places` says which part of the books would come free.
struct Running {
  Uid job;
  std::string name_space, name;
  QueueName queue;
  std::int64_t priority = 0;
  TimePoint created;  // of the job
  Vendor vendor = Vendor::kNvidia;
  PoolName pool;
  std::int64_t devices = 0;
  std::vector<Place> places;  // of live and assumed pods; a node may come more than once
  TimePoint started;          // of this attempt
  std::optional<TimePoint> checkpointed;  // nullopt: nothing is kept of this attempt
  std::optional<TimePoint> expected_end;  // as estimated
  std::optional<TimePoint> latest_end;    // it is ended then
  bool evictable = true;                  // false: never, whatever the policies say
  bool yields_first = false;              // evicted before all others
  bool ending = false;                    // its pods are on the way out
};

// Devices that come free and go to nobody but `job`: to a successor of those that were evicted for
// it, or to a job that has waited longer than its queue's starvation bound.
struct Hold {
  Uid job;
  std::size_t variant = 0;  // index into Job::variants
  PoolName pool;
  std::string device_class;
  std::vector<placement::PodPlacement> pods;
  std::vector<Uid> awaits;  // running jobs that must end first, sorted
  bool by_eviction = false;
  // The latest time at which all of `awaits` have ended; nullopt: unknown.
  std::optional<TimePoint> at;
  TimePoint since;
};

// What a queue's jobs held in the past, for fair shares. The present attempts are among them.
struct PastUse {
  QueueName queue;
  std::int64_t devices = 0;
  TimePoint from, to;
};

// A job of `queue` was evicted for another, for maxEvictionsPerHour.
struct PastEviction {
  QueueName queue;
  TimePoint at;
};

// What devices cost in a pool now, by its PriceBook.
struct PoolPrices {
  PoolName pool;
  std::vector<order::DevicePrice> prices;  // one for each vendor and model
};

// Everything a decision depends on. Immutable.
struct Snapshot {
  TimePoint now;
  std::vector<Node> nodes;
  std::vector<Pool> pools;
  std::vector<Queue> queues;
  std::map<std::string, std::map<std::string, std::string>> namespaces;  // name -> labels
  std::vector<Pod> pods;         // live pods and assumed ones
  std::vector<Running> running;  // jobs that are placed
  std::vector<Shared<Job>> pending;  // jobs that want a place, not suspended, not backing off
  std::vector<Hold> holds;       // those of the plan before
  std::vector<PastUse> past_use;
  std::vector<PastEviction> past_evictions;
  // Of the pools that have a PriceBook; may be missing where no pending job asks for prices.
  std::vector<PoolPrices> prices;
  // Vendors of which some nodes that were open have not been heard since the operator's start.
  std::vector<Vendor> settling;
};

struct Assignment {
  Uid job;
  std::size_t variant = 0;  // index into Job::variants
  PoolName pool;
  std::int64_t devices = 0;
  std::vector<placement::PodPlacement> pods;
};

// A placed job that must give up its devices. The whole gang goes.
struct Eviction {
  Uid job;
  Uid for_job;          // its devices are held for this one; empty: its queue is drained
  std::string message;  // for the job that goes: who takes its place, and why
};

struct VariantBlocker {
  std::string variant;
  std::string reason;  // a documented CamelCase reason
  std::int64_t need = 0, free = 0;
  std::string unblocked_by;
};

// When a waiting job is expected to start. `latest` is missing where nobody knows.
struct StartEstimate {
  TimePoint earliest;
  std::optional<TimePoint> latest;
};

// Why a job did not start in this cycle.
struct Refusal {
  Uid job;
  std::string reason;                     // the reason of the variant that is closest to starting
  std::string message;                    // one sentence per variant, at most 1024 bytes
  bool never = false;                     // nothing but a change of the job or of the fleet helps
  std::vector<VariantBlocker> blockers;   // in the order of the variants
  int ahead = 0, of = 0;                  // place in the queue, jobs in the queue
  std::optional<StartEstimate> estimate;  // nullopt: unknown
};

struct Plan {
  std::vector<Assignment> assignments;  // in the order in which they were decided
  std::vector<Refusal> refusals;        // in queue order
  std::vector<Eviction> evictions;      // in the order in which they were decided
  std::vector<Hold> holds;              // to be given back with the next snapshot
  std::int64_t evaluations = 0;         // searches for a place, to measure the work by
};

// One cycle. Queues take turns: first those whose next job stays within what is guaranteed to them,
// then by share of what they used (where fair shares are on among the children of one parent), then
// by priority (high first), creation and uid of the next job. Within a queue the order is that of
// priority, creation and uid; variants in the order of the job's selection policy; pools of the
// variant's vendor by name, device classes of a pool by name. Each job gets its whole gang in one
// class of one pool, or a refusal; an elastic job that finds no room for all its pods gets the
// largest gang that fits, down to its minimum. Goes on until nothing fits; jobs of one shape are
// tried once.
//
// A job that may evict others and does not fit does so only where a trial has placed it with the
// victims gone; its place is held for it from then on. A job that has waited longer than its
// queue's starvation bound is promised the place that comes free first; others may use it until
// then only if they are sure to have ended.
//
// Progress: a job is covered where it fits under the guaranteed quota of its queue, or of an
// ancestor (queue/coverage.h). No decision makes a covered job's place worse in the order (covered
// jobs by level and job order, then running jobs by job order): every start, with evictions or
// without, makes this greater, so without events from outside decisions come to an end.
//
// While a vendor settles nothing is decided for good that its unheard nodes could make wrong: no
// job falls back from a variant on it to a later one or to a smaller gang, nobody is evicted,
// nothing is reserved, and jobs that could use it get no refusal, so that what they were told last
// stands.
//
// Pure and independent of the order of its inputs.
//
// Reasons: QueueNotFound, QueueNotAllowed, QueueStopped, QueueInvalid, ExceedsLimit (of the whole
// job, without blockers); NoMatchingDevice, ExceedsCapacity, ExceedsLimit (never); WaitingForQuota,
// WaitingForDevices, WaitingForTopology, WaitingForValidation, WaitingForNodeCapacity,
// WaitingForPreemption, WaitingForPrice, WaitingForCheaperVariant, WaitingForFasterVariant,
// Reserved.
Plan Decide(const Snapshot& snapshot);

}  // namespace bimetal::core::queue
