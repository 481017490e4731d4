#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/cost/cost.h"
#include "core/model/job.h"
#include "operator/state/store.h"

namespace bimetal::op {

struct AttemptOptions {
  Millis unschedulable_after = Seconds(5);
  Millis image_pull_grace = Minutes(2);     // of an image that cannot be pulled
  Millis image_pull_timeout = Minutes(30);  // of one that is being pulled, or of volumes
  Millis node_lost_after = Seconds(60);  // a node that is not ready for this long has lost its pods
};

struct RoleCount {
  int ready = 0, succeeded = 0, failed = 0;
};

enum class AttemptEnd {
  kNone,          // it goes on
  kCompleted,     // every pod succeeded
  kFailed,        // its own program failed
  kDisrupted,     // a pod was lost, evicted or deleted: the gang restarts as one
  kNotScheduled,  // the stock scheduler would not place a member
};

// Where a running attempt stands.
struct AttemptView {
  AttemptEnd end = AttemptEnd::kNone;
  // What ended it, for the job's retry rules; nullopt where it goes on, completed, or never got its
  // place.
  std::optional<core::FailureClass> failure;
  std::set<std::string> nodes;  // on which it failed
  std::string state;            // Starting | Running, while it goes on
  std::string reason, message;
  std::vector<RoleCount> roles;      // as in the job
  std::optional<TimePoint> recheck;  // when the answer may change by time alone
};

struct AttemptFacts {
  const core::Job* job = nullptr;
  std::vector<std::int64_t> gang;      // pods of each role in this attempt; empty: all of the job
  std::vector<const PodRecord*> pods;  // of this attempt
  std::set<std::string> requested;     // names of pods asked for that the watch has not shown yet
  int finished_and_gone = 0;           // pods that succeeded and were deleted since: not missing
  const std::map<std::string, NodeRecord>* nodes = nullptr;
  // By pod name: the finding that closed a device under it.
  std::map<std::string, std::string> faults;
};

// Judges an attempt from its pods. Pure.
AttemptView JudgeAttempt(const AttemptFacts& facts, const AttemptOptions& options, TimePoint now);

// When each pod of an attempt held its devices, from pod events; what the bill is made of.
class Timeline {
 public:
  // A pod as it is now. Allocation begins when it is bound to its node and ends with its last
  // container: for what was `witnessed`, at the time of receipt in milliseconds, so that a figure
  // never goes down; for what happened while nobody watched, at the API's own whole seconds.
  void See(const PodRecord& pod, TimePoint now, bool witnessed);
  // The pod object is gone: what had not ended ends now.
  void Gone(const std::string& pod_name, TimePoint now);
  bool empty() const { return entries_.empty(); }

  // Open entries end at `now`. `model_of(node)` names the model of the devices there.
  std::vector<core::cost::Interval> Intervals(
      core::Vendor vendor, std::int64_t devices_per_pod, TimePoint now,
      const std::map<std::string, std::string>& model_of_node) const;
  std::set<std::string> Nodes() const;

 private:
  struct Entry {
    std::string node;
    std::optional<TimePoint> begin, end;
  };
  std::map<std::string, Entry> entries_;  // by pod name
};

}  // namespace bimetal::op
