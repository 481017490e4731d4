#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "core/placement/space.h"
#include "core/queue/report.h"
#include "operator/controllers/cycle.h"
#include "operator/controllers/gated_pods.h"
#include "operator/controllers/jobs.h"
#include "operator/controllers/nodes.h"
#include "operator/controllers/pace.h"
#include "operator/metrics/metrics.h"
#include "operator/state/store.h"
#include "operator/writer/writer.h"

namespace bimetal::op {

// The statuses of pools and queues, and the sample for the metrics: sums over what the other
// controllers know. Loop thread only.
class FleetController {
 public:
  FleetController(const Clock& clock, Store& store, NodeController& nodes, JobController& jobs,
                  const GatedPodController& gated_pods, const SchedulingCycle& cycle,
                  WriteSink& writes);

  // Writes statuses that changed, each at most once in five seconds.
  void Reconcile();
  FleetSample Sample(bool leader) const;
  // Both, where their pace allows it: `take` gets the sample.
  void Tick(const std::function<void(FleetSample)>& take);

 private:
  struct PoolSum {
    int nodes = 0, admitted = 0, quarantined = 0;
    std::int64_t total = 0, open = 0, held = 0;
    core::placement::Space space;
    std::set<std::string> models;  // of its devices
  };
  struct Sent {
    std::string json;
    TimePoint at;
    bool in_flight = false;
  };

  std::map<std::string, PoolSum> SumPools() const;
  // Nodes of each pool by fingerprint, the largest group first.
  std::map<std::string, std::vector<api::FingerprintGroup>> GroupPools() const;
  void SayBreaker(const std::string& pool, const std::string& text,
                  google::protobuf::RepeatedPtrField<api::Condition>* conditions,
                  std::int64_t generation);
  void ReconcileQueues();
  void SayQueue(const core::queue::QueueReport& report, const QueueCounts& counts,
                const std::map<std::string, std::string>& reasons, api::GPUQueue* queue);
  template <class T>
  void Write(const T& object, std::map<std::string, Sent>& sent);

  const Clock& clock_;
  Store& store_;
  NodeController& nodes_;
  JobController& jobs_;
  const GatedPodController& gated_pods_;
  const SchedulingCycle& cycle_;
  WriteSink& writes_;
  std::map<std::string, Sent> pools_sent_, queues_sent_;
  std::map<std::string, std::int64_t> queues_seen_;  // generations
  TimePoint queues_at_;                              // when their statuses were last made
  Pace pace_{kFleetPace};
  std::map<std::string, std::string> breakers_told_;  // pool -> what its last Event said
};

}  // namespace bimetal::op
