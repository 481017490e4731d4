#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "api/gpujob.pb.h"
#include "api/kubernetes.pb.h"
#include "operator/writer/write_queue.h"
#include "tests/fakes/fake_clock.h"

// An API server with the nodes behind it, in virtual time and in this process: what it answers
// costs what the real one was measured to cost.
namespace bimetal::bench {

using Micros = std::int64_t;

// Time of the API server for one request, one after the other. Measured on two cores with etcd,
// TLS and 32 requests in flight: 877 creates of our objects a second, 870 of pods, 499 patches of a
// status, 990 bindings. Not measured, taken as their like: Events and Services as our objects, the
// status of a pod as that of a job, a deletion as a binding.
struct ApiCosts {
  Micros create = 1'140, create_pod = 1'150, patch = 2'004, bind = 1'010, remove = 1'010;
};

// What comes to pass, in the order of time; what comes at once in the order in which it was asked
// for.
class Future {
 public:
  explicit Future(test::FakeClock* clock) : clock_(*clock) {}

  Micros now() const { return now_; }
  TimePoint Time() const { return clock_.Now(); }
  void At(Micros when, std::function<void()> what) {
    events_.emplace(std::max(when, now_), std::move(what));
  }
  bool empty() const { return events_.empty(); }
  // Of the next; only where there is one.
  Micros next() const { return events_.begin()->first; }
  void AdvanceTo(Micros when);
  // Runs all that is due.
  void RunDue();

 private:
  test::FakeClock& clock_;
  Micros now_ = 0;
  std::multimap<Micros, std::function<void()>> events_;
};

struct StandInOptions {
  ApiCosts costs = {};
  int writers = 16;  // writes of the operator in flight, as in its pool
  // False: the life of a pod is the generator's own and costs the API server nothing, as where runs
  // are simulated without pods. True: a binding and two writes of its status.
  bool pods_write = true;
};

class StandIn final : public op::WriteSink {
 public:
  // What the watches show. `run_time` says how long a pod runs once it has started; nullopt: until
  // the test ends it.
  struct Watches {
    std::function<void(const api::GPUJob&, bool gone)> job;
    std::function<void(const api::Pod&, bool gone)> pod;
    // A write has ended: for the loop.
    std::function<void(std::function<void()>)> ended;
    std::function<Micros(const std::string& job_uid)> run_time;
  };

  StandIn(Future& future, StandInOptions options, Watches watches)
      : future_(future), options_(options), watches_(std::move(watches)) {}

  // A client of the generator makes the job; it is there once the server has come to it.
  void CreateJob(api::GPUJob job);

  void Submit(op::Write write) override;
  std::size_t Depth() const override { return waiting_.size(); }

  // Requests so far, by verb and resource, and the time of the server that they took.
  const std::map<std::string, std::int64_t>& requests() const { return requests_; }
  Micros busy() const { return busy_; }

 private:
  // Calls `done` once the server has served a request of this cost.
  void Serve(const std::string& what, Micros cost, std::function<void()> done);
  Micros CostOf(const op::Write& write) const;
  void StartWrites();
  void CarryOut(const op::Write& write);
  void StartPod(const std::string& key);
  void FinishPod(const std::string& key);
  void SetPhase(const std::string& key, const std::string& phase);

  Future& future_;
  StandInOptions options_;
  Watches watches_;
  Micros free_at_ = 0, busy_ = 0;
  int in_flight_ = 0;
  op::WriteQueue waiting_;
  std::map<std::string, api::GPUJob> jobs_;  // by namespace/name
  std::map<std::string, api::Pod> pods_;
  std::map<std::string, std::int64_t> requests_;
  std::int64_t made_ = 0;
};

}  // namespace bimetal::bench
