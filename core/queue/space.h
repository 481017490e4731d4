#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "core/queue/cycle.h"
#include "core/queue/lanes.h"
#include "core/queue/tree.h"

namespace bimetal::core::queue {

// Somebody who holds devices and quota during a cycle. What of it is promised to holds that await
// its end is counted, so that no two holds count on the same.
struct Tenant {
  struct Spot {
    Lane* lane = nullptr;  // of its devices
    Place place;
    std::int64_t promised_devices = 0;
    Resources promised;
  };
  struct Quota {
    std::int64_t devices = 0, jobs = 0;
  };

  Running running;
  int queue = kNoQueue;
  std::size_t kind = 0;
  std::vector<Spot> spots;
  std::map<int, Quota> promised_quota;  // by queue
  bool leaving = false;                 // it is ending, or was evicted in this cycle
  bool released = false;                // out of the books, for a trial
  bool started_now = false;             // in this cycle
  std::vector<struct HeldPlace*> awaited_by;
};

// A hold and what is booked for it: its place, less what those that it awaits will leave there.
struct HeldPlace {
  Hold hold;
  const Job* job = nullptr;
  int queue = kNoQueue;
  Lane* lane = nullptr;
  std::vector<placement::PodPlacement> pods;
  std::int64_t devices = 0;
  std::vector<Tenant*> awaits;

  struct Shift {
    NodeName node;
    std::int64_t devices = 0;
    Resources requests;
  };
  struct QuotaShift {
    int queue = kNoQueue;
    std::int64_t devices = 0, jobs = 0;
  };
  struct Promise {
    Tenant* tenant = nullptr;
    std::size_t spot = 0;
    std::int64_t devices = 0;
    Resources requests;
  };
  struct QuotaPromise {
    Tenant* tenant = nullptr;
    int queue = kNoQueue;
    Tenant::Quota amount;
  };
  bool booked = false;
  std::vector<Shift> shifts;
  std::vector<QuotaShift> quota_shifts;
  std::vector<Promise> promises;
  std::vector<QuotaPromise> quota_promises;
};

// The devices and quotas of one cycle, and who holds them. Everything that can be booked can be
// unbooked, for trials. Loop thread only.
class Space {
 public:
  explicit Space(const Snapshot& snapshot);
  Space(const Space&) = delete;
  Space& operator=(const Space&) = delete;

  Lanes lanes;
  QueueTree tree;

  // Sorted by uid, then those that started in this cycle.
  std::deque<Tenant>& tenants() { return tenants_; }
  Tenant* FindTenant(const Uid& job);
  // A place for the job, or nothing; counted.
  std::optional<std::vector<placement::PodPlacement>> Search(Lane& lane, const Job& job,
                                                             const Variant& variant);
  std::int64_t searches() const { return searches_; }
  // Counts every change of who is there, is leaving or is waited for; releases are none.
  std::int64_t changes() const { return changes_; }
  void Changed() { ++changes_; }
  // `more_free`: devices of `kind` that are booked for the asker already.
  std::optional<QuotaShortage> Shortage(int queue, std::size_t kind, std::int64_t devices,
                                        std::int64_t more_free = 0) const;

  // Books a job that starts now and makes it a tenant.
  Tenant& Start(const Job& job, std::size_t variant, Lane& lane, int queue,
                const std::vector<placement::PodPlacement>& pods, TimePoint now);
  // Takes a tenant out of the books and puts it back; what holds expect of it moves along.
  void Release(Tenant& tenant);
  void Restore(Tenant& tenant);

  // The tenant's end frees nothing for a job of `queue`: holds have been promised all its devices,
  // and its part of every quota that both count on. What is left of its other resources is not
  // looked at; it is seen when the tenant is gone.
  bool IsPromised(const Tenant& tenant, int queue) const;

  std::deque<HeldPlace>& held() { return held_; }
  HeldPlace& AddHold(HeldPlace held);  // and books it
  // The hold awaits the tenant from now on, too, if they share a node or a queue. REQUIRES:
  // !held.booked.
  void AwaitIfNear(HeldPlace& held, Tenant& tenant);
  void Drop(HeldPlace& held);  // for good: it stays in the list, without a job
  void Book(HeldPlace& held);
  void Unbook(HeldPlace& held);

 private:
  void AddTenant(Running running, bool books);
  void ShiftTenant(const Tenant& tenant, int sign);
  bool IsAbove(int above, int queue) const;
  void SetReleased(Tenant& tenant, bool released);

  std::deque<Tenant> tenants_;
  std::map<Uid, Tenant*> by_uid_;
  std::deque<HeldPlace> held_;
  std::int64_t searches_ = 0, changes_ = 0;
};

Resources operator-(const Resources& a, const Resources& b);
// The smaller of each component.
Resources Least(const Resources& a, const Resources& b);

}  // namespace bimetal::core::queue
