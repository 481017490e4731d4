#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "operator/controllers/cycle.h"
#include "operator/controllers/fleet.h"
#include "operator/controllers/gated_pods.h"
#include "operator/controllers/jobs.h"
#include "operator/controllers/nodes.h"
#include "operator/controllers/services.h"
#include "operator/controllers/step.h"
#include "operator/state/store.h"
#include "tests/bench/loop/stand_in.h"

// The operator's loop with the controllers as they run in the cluster, in virtual time: the time
// that its thread uses passes for everybody else, too.
namespace bimetal::bench {

struct FleetOptions {
  int nvidia_nodes = 0, amd_nodes = 0;
  int devices = 8;  // of each node
  int racks = 0;    // label kRackLabel, nodes one rack after the other; 0: none
};

inline constexpr const char* kRackLabel = "bimetal.dev/rack";

// Where a job went and when, in seconds of virtual time.
struct Life {
  double created = 0;  // the API server has it
  std::optional<double> decided, running, ended;
  std::vector<std::string> nodes;  // of the pods that run
  int starts = 0;
};

class OperatorLoop {
 public:
  OperatorLoop(const FleetOptions& fleet, StandInOptions options);

  op::Store& store() { return store_; }
  Future& future() { return future_; }
  const StandIn& api() const { return *api_; }
  const std::map<std::string, Life>& lives() const { return lives_; }  // by uid

  // At this time the generator asks the API server for the job; each of its pods runs for so long.
  void Submit(Micros when, api::GPUJob job, Micros run_time);
  // At this time the watches show a change of the store, after which a cycle may find something.
  void Change(Micros when, std::function<void(op::Store&)> change);
  // Opens the fleet and runs until nothing is left to come to pass or `until` is reached.
  void Start();
  void Run(Micros until);
  bool AllEnded() const { return ended_ == lives_.size() && submitted_ == lives_.size(); }

  // Of the jobs that have not ended: state, reason and message, with how many say so.
  std::map<std::string, int> Unended() const;

  double cpu_seconds() const { return cpu_; }
  std::int64_t cycles() const { return cycles_; }
  double cycle_seconds() const { return static_cast<double>(cycle_micros_) * 1e-6; }

 private:
  void AddNode(const std::string& name, const std::string& vendor, const FleetOptions& fleet,
               int number);
  void Post(std::function<void()> task) { tasks_.push_back(std::move(task)); }
  void OnPod(const api::Pod& pod, bool gone);
  void OnJob(const api::GPUJob& job, bool gone);
  void Spend(const std::function<void()>& work);
  void RunTasks();
  void RunStep();
  void ArmTimer();
  void Tick();

  test::FakeClock clock_;
  Future future_{&clock_};
  op::Store store_;
  std::unique_ptr<StandIn> api_;
  std::unique_ptr<op::NodeController> nodes_;
  std::unique_ptr<op::JobController> jobs_;
  std::unique_ptr<op::ServiceController> services_;
  std::unique_ptr<op::GatedPodController> gated_pods_;
  std::unique_ptr<op::SchedulingCycle> cycle_;
  std::unique_ptr<op::Step> step_;
  std::unique_ptr<op::FleetController> fleet_;
  std::deque<std::function<void()>> tasks_;
  bool step_wanted_ = false;
  std::optional<Micros> timer_;
  std::map<std::string, Life> lives_;
  std::map<std::string, Micros> run_times_;
  std::size_t submitted_ = 0, ended_ = 0;
  double cpu_ = 0;
  std::int64_t cycles_ = 0, cycle_micros_ = 0;
};

// A job of one role for these benches; name and uid are the same.
api::GPUJob MakeLoopJob(const std::string& name, const std::string& queue, int pods, int devices);

// A queue of these benches, to be changed further; generation 1.
api::GPUQueue& AddQueue(op::Store& store, const std::string& name, const std::string& parent);

}  // namespace bimetal::bench
