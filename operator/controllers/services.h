#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "api/gpuservice.pb.h"
#include "core/service/rollout.h"
#include "operator/controllers/attempt.h"
#include "operator/controllers/cycle.h"
#include "operator/controllers/nodes.h"
#include "operator/controllers/service_status.h"
#include "operator/state/store.h"
#include "operator/writer/writer.h"

namespace bimetal::op {

struct ServiceOptions {
  std::string priority_class;  // of the pods
  AttemptOptions attempt;
  // What the next scheduling cycle would decide on: for proving that a new replica fits in the
  // place of an old one.
  std::function<core::queue::Snapshot()> snapshot;
};

// Keeps every GPUService at its replicas: wishes for places, makes the pods, rolls out a new spec,
// drains what must go. What exists is read from the pods alone. Loop thread only.
class ServiceController final : public Claimant {
 public:
  // `changed` is called when a scheduling cycle may find something new.
  ServiceController(const Clock& clock, Store& store, WriteSink& writes, ServiceOptions options,
                    std::function<void()> changed);

  void Start();
  void OnService(const api::GPUService& service);
  void OnServiceDeleted(const api::GPUService& service);
  // After the store has taken in the pod; `gone`: the object no longer exists.
  void OnPod(const PodRecord& pod, bool gone);
  // A Service with our label, as it is now; one that was removed or bent is made anew.
  void OnAddress(const api::Service& address, bool gone);
  void TouchAll();

  // Follows every touched service. Call before a scheduling cycle.
  void Reconcile();
  std::optional<TimePoint> NextWake() const;

  // As it was or is to be written; nullptr for a service that is not known. Borrowed until the next
  // event.
  const api::GPUServiceStatus* StatusOf(const std::string& uid) const;

  void AddTo(core::queue::Snapshot* snapshot) const override;
  std::vector<core::Pod> AssumedPods() const override;
  void Count(std::map<std::string, QueueCounts>* counts) const override;
  bool Assign(const core::queue::Assignment& assignment) override;
  bool Refuse(const core::queue::Refusal& refusal) override;
  bool Evict(const core::queue::Eviction& eviction) override;

 private:
  // A pod that was asked for and not seen yet.
  struct Assumed {
    core::Pod pod;
    std::string variant, revision;
    std::optional<TimePoint> created;  // its create has succeeded
  };
  // A place that an old replica is leaving for its successor.
  struct Freed {
    std::string pod_uid;
    ObjectKey pod;
    NodeName node;
  };
  struct Record {
    api::GPUService object;
    std::optional<core::Service> service;  // the spec as it was last in order
    std::string spec_error;                // why it is not in order now
    api::GPUServiceStatus status, written;
    bool write_in_flight = false;
    std::optional<TimePoint> last_write, wake;
    std::optional<TimePoint> not_before;  // no new replica before
    int setbacks = 0;                     // in a row, for the pauses
    std::map<int, Assumed> assumed;       // by index
    std::vector<core::service::Wish> wishes;
    std::map<int, core::queue::Refusal> refusals;  // of wishes, by index
    std::set<std::string> disproved;  // uids of old pods in whose place no new one fits
    TimePoint disproved_since;
    std::vector<Freed> freed;
    std::string setback;                   // what the last pod met that had to go
    std::int64_t address_generation = -1;  // whose Service is made
    bool address_in_flight = false;
    std::optional<TimePoint> address_retry;  // it could not be made: again then
    std::string address_error;
  };
  // The pods of a service as they are now.
  struct Survey {
    core::service::Situation situation;
    std::map<int, const PodRecord*> pods;  // of the situation's replicas that are seen, by index
    ServiceFacts facts;
  };

  void Follow(Record& record);
  void ReadSpec(Record& record);
  void ForgetUnseen(Record& record);
  Survey Look(Record& record);
  void LookAt(Record& record, const PodRecord& pod, Survey& survey);
  void Setback(Record& record, const PodRecord& pod, const std::string& what);
  void TakeSteps(Record& record, Survey& survey);
  void TakeFreedPlaces(Record& record);
  void SetWishes(Record& record, std::vector<core::service::Wish> wishes);
  std::set<int> Evictable(const Record& record) const;
  core::queue::Running RunningOf(const Record& record, int index, const core::Pod& pod) const;
  core::Job EntryOf(const Record& record, const core::service::Wish& wish) const;
  std::optional<core::queue::Assignment> PlaceOn(const Record& record,
                                                 const core::service::Wish& wish,
                                                 const NodeName& node,
                                                 const std::string& without_pod) const;
  void Place(Record& record, const core::queue::Assignment& assignment, int index);
  void CreatePod(Record& record, std::size_t variant, int index, const PoolName& pool,
                 const NodeName& node);
  void DeletePod(const PodRecord& pod, bool by_force);
  void EnsureAddress(Record& record);
  void WriteStatus(Record& record);
  void Wake(Record& record, TimePoint when);
  bool NodeLost(Record& record, const PodRecord& pod);
  // The service and the index that an entry of a queue stands for.
  std::pair<Record*, int> Find(const Uid& entry);
  std::string ResourceName(const std::string& pool, core::Vendor vendor) const;

  const Clock& clock_;
  Store& store_;
  WriteSink& writes_;
  ServiceOptions options_;
  std::function<void()> changed_;
  bool started_ = false;
  std::map<std::string, Record> records_;  // by uid
  std::set<std::string> touched_;
  std::set<std::pair<std::string, bool>> deleting_;  // pods whose deletion we have asked for
};

}  // namespace bimetal::op
