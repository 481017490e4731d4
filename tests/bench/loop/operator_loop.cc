#include "tests/bench/loop/operator_loop.h"

#include <algorithm>
#include <utility>

#include "tests/bench/measure.h"

namespace bimetal::bench {
namespace {

constexpr std::size_t kTasksPerStep = 2000;  // as in the operator's loop
constexpr Micros kSecond = 1'000'000;

double SecondsAt(Micros time) { return static_cast<double>(time) * 1e-6; }

op::NodeOptions NodeOptionsOfBench() {
  op::NodeOptions out;
  out.name_space = "bimetal-system";
  out.stale_after = Minutes(60 * 24 * 365);  // agents are not played
  return out;
}

}  // namespace

OperatorLoop::OperatorLoop(const FleetOptions& fleet, StandInOptions options) {
  StandIn::Watches watches;
  watches.job = [this](const api::GPUJob& job, bool gone) { OnJob(job, gone); };
  watches.pod = [this](const api::Pod& pod, bool gone) { OnPod(pod, gone); };
  watches.ended = [this](std::function<void()> done) {
    Post([this, done = std::move(done)] {
      done();
      step_wanted_ = true;
    });
  };
  watches.run_time = [this](const std::string& uid) { return run_times_.at(uid); };
  api_ = std::make_unique<StandIn>(future_, options, std::move(watches));
  const auto changed = [this] {
    if (step_) step_->Want();
    step_wanted_ = true;
  };
  nodes_ =
      std::make_unique<op::NodeController>(clock_, store_, *api_, NodeOptionsOfBench(), changed);
  op::JobOptions jobs;
  jobs.priority_class = "bimetal-job";
  jobs_ =
      std::make_unique<op::JobController>(clock_, store_, *nodes_, *api_, std::move(jobs), changed);
  services_ = std::make_unique<op::ServiceController>(
      clock_, store_, *api_,
      op::ServiceOptions{"bimetal-job", {}, [this] { return cycle_->MakeSnapshot(); }}, changed);
  gated_pods_ = std::make_unique<op::GatedPodController>(clock_, store_, *nodes_, *api_,
                                                         op::GatedPodOptions{}, changed);
  cycle_ = std::make_unique<op::SchedulingCycle>(
      clock_, store_, *nodes_,
      std::vector<op::Claimant*>{jobs_.get(), services_.get(), gated_pods_.get()},
      [this](const auto&, const core::queue::Plan& plan) {
        for (const auto& one : plan.assignments) {
          Life& life = lives_.at(one.job.value);
          if (!life.decided) life.decided = SecondsAt(future_.now());
          ++life.starts;
        }
      });
  step_ = std::make_unique<op::Step>(
      clock_, op::Step::Parts{*nodes_, *jobs_, *services_, *gated_pods_, *cycle_},
      [this](std::string_view, std::int64_t micros) {
        ++cycles_;
        cycle_micros_ += micros;
      },
      [] { return static_cast<std::int64_t>(CpuSeconds() * 1e6); });
  fleet_ = std::make_unique<op::FleetController>(clock_, store_, *nodes_, *jobs_, *gated_pods_,
                                                 *cycle_, *api_);
  store_.namespaces["team"] = {};
  for (const std::string vendor : {"nvidia", "amd"}) {
    const int count = vendor == "nvidia" ? fleet.nvidia_nodes : fleet.amd_nodes;
    if (count == 0) continue;
    api::GPUPool& pool = store_.pools[vendor];
    pool.mutable_metadata()->set_name(vendor);
    pool.mutable_spec()->set_vendor(vendor);
    // Devices are open as they are reported: the validation of nodes has benches of its own.
    pool.mutable_spec()->set_gate("Observe");
    if (fleet.racks > 0) pool.mutable_spec()->add_topology_keys(kRackLabel);
    for (int i = 0; i < count; ++i) {
      const std::string number = std::to_string(10'000 + i).substr(1);
      AddNode(vendor + "-" + number, vendor, fleet, i * std::max(1, fleet.racks) / count);
    }
  }
}

void OperatorLoop::AddNode(const std::string& name, const std::string& vendor,
                           const FleetOptions& fleet, int rack) {
  api::Node node;
  node.mutable_metadata()->set_name(name);
  node.mutable_metadata()->set_uid("uid-" + name);
  node.mutable_metadata()->set_resource_version("7");
  auto& labels = *node.mutable_metadata()->mutable_labels();
  labels["kubernetes.io/hostname"] = name;
  if (fleet.racks > 0) labels[kRackLabel] = "rack-" + std::to_string(rack);
  auto& allocatable = *node.mutable_status()->mutable_allocatable();
  allocatable["cpu"] = "256";
  allocatable["memory"] = "2Ti";
  allocatable["pods"] = "250";
  allocatable[vendor + ".com/gpu"] = std::to_string(fleet.devices);
  auto* ready = node.mutable_status()->add_conditions();
  ready->set_type("Ready");
  ready->set_status("True");
  store_.nodes[name] = op::MakeNodeRecord(node);
  api::GPUNode shown;
  shown.mutable_metadata()->set_name(name);
  shown.mutable_metadata()->set_uid("gpunode-" + name);
  store_.gpu_nodes[name] = shown;
  api::ReportNodeRequest report;
  report.set_node_name(name);
  report.set_boot_id("boot-1");
  report.set_seq(1);
  auto& inventory = *report.mutable_inventory();
  auto* stack = inventory.add_stacks();
  stack->set_vendor(vendor);
  stack->set_driver_version("1.0");
  stack->set_fingerprint("f1");
  for (int i = 0; i < fleet.devices; ++i) {
    auto* device = inventory.add_devices();
    device->set_id(name + "-" + std::to_string(i));
    device->set_vendor(vendor);
    device->set_model(vendor == "nvidia" ? "NVIDIA H200" : "AMD Instinct MI300X");
    device->set_memory_bytes(std::int64_t{141} << 30);
    device->set_health(api::HEALTHY);
  }
  Post([this, report = std::move(report)] { nodes_->OnReport(report); });
}

void OperatorLoop::Submit(Micros when, api::GPUJob job, Micros run_time) {
  ++submitted_;
  run_times_[job.metadata().uid()] = run_time;
  future_.At(when, [this, job = std::move(job)]() mutable {
    job.mutable_metadata()->set_creation_timestamp(FormatTime(clock_.Now()));
    api_->CreateJob(std::move(job));
  });
}

void OperatorLoop::Change(Micros when, std::function<void(op::Store&)> change) {
  future_.At(when, [this, change = std::move(change)] {
    Post([this, change] {
      change(store_);
      step_->Want();
      step_wanted_ = true;
    });
  });
}

void OperatorLoop::OnJob(const api::GPUJob& job, bool gone) {
  const std::string& uid = job.metadata().uid();
  const auto [life, fresh] = lives_.try_emplace(uid);
  if (fresh) life->second.created = SecondsAt(future_.now());
  const std::string& state = job.status().state();
  if (!life->second.ended && (state == "Completed" || state == "Failed")) {
    life->second.ended = SecondsAt(future_.now());
    ++ended_;
  }
  Post([this, job, gone] {
    if (gone)
      jobs_->OnJobDeleted(job);
    else
      jobs_->OnJob(job);
    step_wanted_ = true;
  });
}

void OperatorLoop::OnPod(const api::Pod& pod, bool gone) {
  if (!gone && pod.status().phase() == "Running") {
    Life& life = lives_.at(pod.metadata().labels().at(op::kJobUidLabel));
    life.running = SecondsAt(future_.now());
    life.nodes.push_back(pod.spec().node_name());
  }
  Post([this, pod, gone] {
    const op::PodRecord record = op::MakePodRecord(pod, store_.resources);
    if (gone)
      store_.RemovePod({pod.metadata().namespace_(), pod.metadata().name()});
    else
      store_.PutPod(record);
    jobs_->OnPod(record, gone);
    services_->OnPod(record, gone);
    gated_pods_->OnPod(record, gone);
    step_wanted_ = true;
  });
}

void OperatorLoop::Spend(const std::function<void()>& work) {
  const double seconds = SecondsOf(work);
  cpu_ += seconds;
  future_.AdvanceTo(future_.now() + static_cast<Micros>(seconds * 1e6));
}

void OperatorLoop::RunTasks() {
  Spend([this] {
    for (std::size_t left = kTasksPerStep; left > 0 && !tasks_.empty(); --left) {
      const auto task = std::move(tasks_.front());
      tasks_.pop_front();
      task();
    }
  });
}

void OperatorLoop::RunStep() {
  step_wanted_ = false;
  Spend([this] { step_->Run(); });
  ArmTimer();
}

void OperatorLoop::ArmTimer() {
  std::optional<TimePoint> next;
  Spend([&] { next = step_->NextWake(); });
  if (!next) return;
  const Micros when = future_.now() + std::max<Micros>(1000, (*next - clock_.Now()).v * 1000);
  if (timer_ && *timer_ <= when) return;
  timer_ = when;
  future_.At(when, [this, when] {
    if (timer_ == when) timer_.reset();
    step_wanted_ = true;
  });
}

void OperatorLoop::Tick() {
  Post([this] { fleet_->Tick([](const op::FleetSample&) {}); });
  future_.At(future_.now() + kSecond, [this] { Tick(); });
}

void OperatorLoop::Start() {
  nodes_->Start();
  jobs_->Start();
  services_->Start();
  gated_pods_->Start();
  nodes_->TouchAll();
  step_->Want();
  step_wanted_ = true;
  future_.At(0, [this] { Tick(); });
  // What the fleet costs before the first job is not the generator's.
  Run(future_.now() + 10 * kSecond);
  cpu_ = 0;
  cycles_ = cycle_micros_ = 0;
}

void OperatorLoop::Run(Micros until) {
  while (true) {
    future_.RunDue();
    if (!tasks_.empty()) {
      RunTasks();
      future_.RunDue();
      if (!tasks_.empty() && !step_wanted_) continue;
    }
    if (step_wanted_ && tasks_.size() < kTasksPerStep) {
      RunStep();
      continue;
    }
    if (!tasks_.empty()) {
      RunStep();
      continue;
    }
    if (future_.empty() || future_.next() > until || (submitted_ > 0 && AllEnded())) return;
    future_.AdvanceTo(future_.next());
  }
}

std::map<std::string, int> OperatorLoop::Unended() const {
  std::map<std::string, int> out;
  for (const auto& sample : jobs_->Samples()) {
    const auto& status = *sample.status;
    if (status.state() == "Completed" || status.state() == "Failed") continue;
    ++out[status.state() + ", " + status.reason() + ": " + status.message()];
  }
  return out;
}

api::GPUJob MakeLoopJob(const std::string& name, const std::string& queue, int pods, int devices) {
  api::GPUJob job;
  job.mutable_metadata()->set_name(name);
  job.mutable_metadata()->set_namespace_("team");
  job.mutable_metadata()->set_uid(name);
  job.mutable_metadata()->set_generation(1);
  job.mutable_spec()->set_queue_name(queue);
  auto* variant = job.mutable_spec()->add_variants();
  variant->set_name("cuda");
  variant->set_vendor("nvidia");
  variant->set_devices_per_pod(devices);
  variant->set_image("image:nvidia");
  auto* role = job.mutable_spec()->add_roles();
  role->set_name("worker");
  role->set_replicas(pods);
  return job;
}

api::GPUQueue& AddQueue(op::Store& store, const std::string& name, const std::string& parent) {
  api::GPUQueue& queue = store.queues[name];
  queue.mutable_metadata()->set_name(name);
  queue.mutable_metadata()->set_uid("queue-" + name);
  queue.mutable_metadata()->set_generation(1);
  queue.mutable_spec()->set_parent_name(parent);
  return queue;
}

}  // namespace bimetal::bench
