#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/model/fleet.h"
#include "core/model/job.h"
#include "core/placement/gang.h"

namespace bimetal::core::queue {

// What a job that is placed already holds of its queue's quota.
struct Holding {
  Uid job;
  QueueName queue;
  Vendor vendor = Vendor::kNvidia;
  std::int64_t devices = 0;
};

// Everything a decision depends on. Immutable.
struct Snapshot {
  TimePoint now;
  std::vector<Node> nodes;
  std::vector<Pool> pools;
  std::vector<Queue> queues;
  std::map<std::string, std::map<std::string, std::string>> namespaces;  // name -> labels
  std::vector<Pod> pods;          // live pods and assumed ones
  std::vector<Holding> holdings;  // jobs that are placed
  std::vector<Job> pending;       // jobs that want a place, not suspended, not backing off
};

struct Assignment {
  Uid job;
  std::size_t variant = 0;  // index into Job::variants
  PoolName pool;
  std::int64_t devices = 0;
  std::vector<placement::PodPlacement> pods;
};

// A placed job that must give up its devices for another. The whole gang goes.
struct Eviction {
  Uid job;
  Uid for_job;          // its devices are held for this one
  std::string message;  // for the job that goes: who takes its place, and why
};

struct VariantBlocker {
  std::string variant;
  std::string reason;  // a documented CamelCase reason
  std::int64_t need = 0, free = 0;
  std::string unblocked_by;
};

// Why a job did not start in this cycle.
struct Refusal {
  Uid job;
  std::string reason;                    // the reason of the variant that is closest to starting
  std::string message;                   // one sentence per variant, at most 1024 bytes
  bool never = false;                    // nothing but a change of the job or of the fleet helps
  std::vector<VariantBlocker> blockers;  // in the order of the variants
  int ahead = 0, of = 0;                 // place in the queue, jobs in the queue
};

struct Plan {
  std::vector<Assignment> assignments;  // in the order in which they were decided
  std::vector<Refusal> refusals;        // in queue order
  std::vector<Eviction> evictions;      // in the order in which they were decided
};

// One cycle: jobs in the order priority (high first), created, uid; variants in order; pools of the
// variant's vendor by name; each job either gets its whole gang in one pool or a refusal. A Strict
// queue lets no job overtake another of the same queue that waits (for devices, quota, validation
// or node capacity, not one that can never start) on the vendor on which the other would wait: a
// job behind it may still start on a vendor that the waiting one cannot use. Backfill lets it
// overtake. Pure and independent of the order of its inputs.
//
// Reasons: QueueNotFound, QueueNotAllowed, QueueStopped (of the whole job, without blockers);
// NoMatchingDevice, ExceedsCapacity (never); WaitingForQuota, WaitingForDevices,
// WaitingForValidation, WaitingForNodeCapacity.
Plan Decide(const Snapshot& snapshot);

}  // namespace bimetal::core::queue
