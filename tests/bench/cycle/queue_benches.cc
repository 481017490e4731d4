#include "tests/bench/cycle/queue_benches.h"

#include <array>
#include <cstdio>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/bench/cycle/scenes.h"
#include "tests/bench/measure.h"

namespace bimetal::bench {
namespace {

using core::TopologyMode;
using core::queue::Decide;
using core::queue::Plan;
using core::queue::Snapshot;

// --- p8 ---

constexpr int kDevices = 4000;

core::Queue QueueOf(const char* name, std::int64_t guaranteed) {
  core::Queue queue;
  queue.name = QueueName{name};
  core::QuotaLine line;
  line.device_class = "nvidia";
  line.guaranteed = guaranteed;
  queue.quotas.push_back(std::move(line));
  return queue;
}

// 500 nodes whose 4,000 devices are all borrowed by one-device jobs of queue "borrower"; "owner" is
// guaranteed them and may take them back.
Snapshot BorrowedFleet() {
  Snapshot out = Fleet({.nodes = kDevices / 8});
  core::Queue owner = QueueOf("owner", kDevices);
  owner.preemption.reclaim = core::Reclaim::kAny;
  out.queues = {owner, QueueOf("borrower", 0)};
  for (int i = 0; i < kDevices; ++i) {
    core::Job job = MakeJob({}, i);
    job.queue = QueueName{"borrower"};
    out.pending.push_back(std::move(job));
  }
  Start(Decide(out), &out);
  return out;
}

struct Reclaim {
  double seconds = 0;
  std::int64_t evictions = 0, useless = 0;
  bool placed = false;
};

// One job of the owner: its decision, and the next once those that it evicted are gone.
Reclaim ReclaimBy(const Snapshot& borrowed, const JobShape& shape) {
  Snapshot snapshot = borrowed;
  core::Job job = MakeJob(shape, kDevices);
  job.queue = QueueName{"owner"};
  job.priority = 100;
  snapshot.now = snapshot.now + Seconds(60);
  job.created = snapshot.now;
  const Uid uid = job.uid;
  snapshot.pending.push_back(std::move(job));
  Reclaim out;
  Plan plan;
  out.seconds = SecondsOf([&] { plan = Decide(snapshot); });
  std::map<NodeName, std::int64_t> taken;  // devices that came free and are not used yet
  std::map<Uid, const core::queue::Running*> running;
  for (const auto& one : snapshot.running) running.emplace(one.job, &one);
  for (const auto& eviction : plan.evictions) {
    for (const auto& place : running.at(eviction.job)->places) taken[place.node] += place.devices;
  }
  out.evictions = static_cast<std::int64_t>(plan.evictions.size());
  End(plan.evictions, &snapshot);
  snapshot.holds = plan.holds;
  snapshot.now = snapshot.now + Seconds(1);
  for (const auto& assignment : Decide(snapshot).assignments) {
    if (assignment.job != uid) continue;
    out.placed = true;
    for (const auto& pod : assignment.pods) taken[pod.node] -= shape.devices_per_pod;
  }
  for (const auto& [node, devices] : taken) out.useless += std::max<std::int64_t>(0, devices);
  return out;
}

// --- p15 ---

// Thirty shapes of pods with at least four devices each.
std::vector<JobShape> Shapes() {
  std::vector<JobShape> out;
  for (const int pods : {1, 2, 4, 8, 16}) {
    for (const int devices : {4, 6, 8}) {
      out.push_back({.pods = pods, .devices_per_pod = devices});
      out.push_back({.pods = pods, .devices_per_pod = devices, .mode = TopologyMode::kRequired});
    }
  }
  return out;
}

// 500 nodes of which two devices each are free: room for 1,000 one-device jobs and for nothing
// else.
Snapshot NearlyFull() {
  Snapshot out = Fleet({.nodes = 500, .racks = 10});
  const JobShape six = {.devices_per_pod = 6};
  for (int i = 0; i < 500; ++i) out.pending.push_back(MakeJob(six, i));
  Start(Decide(out), &out);
  return out;
}

struct Pass {
  std::int64_t evaluations = 0;
  std::size_t placed = 0;
  double seconds = 0;
};

Pass DecideOn(const Snapshot& full, int jobs, int small) {
  Snapshot snapshot = full;
  const auto shapes = Shapes();
  for (int i = 0; i < jobs; ++i) {
    core::Job job = MakeJob(shapes[static_cast<std::size_t>(i) % shapes.size()], 1000 + i);
    job.created = snapshot.now;
    snapshot.pending.push_back(std::move(job));
  }
  for (int i = 0; i < small; ++i) {
    core::Job job = MakeJob({}, 1000 + jobs + i);
    job.created = snapshot.now;
    snapshot.pending.push_back(std::move(job));
  }
  Pass out;
  Plan plan;
  out.seconds = SecondsOf([&] { plan = Decide(snapshot); });
  out.evaluations = plan.evaluations;
  out.placed = plan.assignments.size();
  return out;
}

// Mean waits by shape, in seconds, of jobs that come at once and run for a time by their number.
// `apart`: each job tolerates a taint of its own, which changes no place and keeps it from being
// decided together with its like.
std::vector<double> WaitsOf(int jobs, bool apart) {
  Snapshot snapshot = Fleet({.nodes = 32, .racks = 4});
  const auto shapes = Shapes();
  const TimePoint begin = snapshot.now;
  std::map<Uid, std::size_t> shape_of;
  std::map<Uid, Millis> run_time;
  for (int i = 0; i < jobs; ++i) {
    const auto shape = static_cast<std::size_t>(i) % shapes.size();
    core::Job job = MakeJob(shapes[shape], i);
    job.created = begin;
    if (apart) job.roles[0].tolerations.push_back({job.name, "Exists", "", ""});
    shape_of[job.uid] = shape;
    run_time[job.uid] = Seconds(10 + i * 7 % 50);
    snapshot.pending.push_back(std::move(job));
  }
  std::vector<double> sum(shapes.size(), 0), count(shapes.size(), 0);
  std::multimap<TimePoint, Uid> ends;
  while (!snapshot.pending.empty()) {
    const Plan plan = Decide(snapshot);
    for (const auto& assignment : plan.assignments) {
      const auto shape = shape_of.at(assignment.job);
      sum[shape] += static_cast<double>((snapshot.now - begin).v) / 1000;
      ++count[shape];
      ends.emplace(snapshot.now + run_time.at(assignment.job), assignment.job);
    }
    Start(plan, &snapshot);
    snapshot.holds = plan.holds;
    if (ends.empty()) break;
    snapshot.now = ends.begin()->first;
    std::vector<core::queue::Eviction> over;
    while (!ends.empty() && ends.begin()->first <= snapshot.now) {
      over.push_back({.job = ends.begin()->second, .for_job = {}, .message = {}});
      ends.erase(ends.begin());
    }
    End(over, &snapshot);
  }
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] /= std::max(1.0, count[i]);
  return sum;
}

}  // namespace

int P8() {
  Conditions conditions;
  const Snapshot borrowed = BorrowedFleet();
  conditions.Require(borrowed.running.size() == kDevices, "4,000 jobs run before");
  double one = 0, all = 0;
  std::int64_t useless = 0;
  struct Case {
    JobShape shape;
    const char* text;
  };
  for (const Case& c :
       {Case{{.pods = 1}, "1 device"}, Case{{.pods = 250, .devices_per_pod = 8}, "250 pods of 8"},
        Case{{.pods = 2000}, "2,000 pods of 1"},
        Case{{.pods = 500, .devices_per_pod = 8}, "500 pods of 8"},
        Case{{.pods = 4000}, "4,000 pods of 1"}}) {
    const Reclaim result = ReclaimBy(borrowed, c.shape);
    const std::int64_t devices = std::int64_t{c.shape.pods} * c.shape.devices_per_pod;
    std::printf("reclaim by one job of %s: %.3f s, %lld evictions, %lld of them useless\n", c.text,
                result.seconds, static_cast<long long>(result.evictions),
                static_cast<long long>(result.useless));
    conditions.Require(result.placed, "the job has its place once they are gone");
    useless += result.useless;
    if (devices == 1) one = result.seconds;
    if (devices == kDevices) all = std::max(all, result.seconds);
  }
  conditions.Require(one <= 0.5, "a reclaim of 1 device is decided within 0.5 s");
  conditions.Require(useless == 0, "no eviction is useless");
  conditions.Require(all <= 5, "a reclaim of 4,000 devices is decided within 5 s");
  std::printf("in memory: the end to end part of this bench needs a cluster and is not run here\n");
  std::printf("p8 %.2f s bar 5\n", all);
  return conditions.ExitStatus();
}

int P15() {
  Conditions conditions;
  const Snapshot full = NearlyFull();
  conditions.Require(full.running.size() == 500, "six of eight devices are held on each node");
  const Pass thousand = DecideOn(full, 1000, 0), ten = DecideOn(full, 10'000, 0);
  const Pass with_small = DecideOn(full, 10'000, 1000);
  std::printf("1,000 pending of 30 shapes: %lld evaluations, %.3f s\n",
              static_cast<long long>(thousand.evaluations), thousand.seconds);
  std::printf("10,000 pending of the same shapes: %lld evaluations, %.3f s\n",
              static_cast<long long>(ten.evaluations), ten.seconds);
  std::printf("and 1,000 small that fit behind them: %lld evaluations, %.3f s, %zu placed\n",
              static_cast<long long>(with_small.evaluations), with_small.seconds,
              with_small.placed);
  conditions.Require(thousand.placed == 0 && ten.placed == 0, "none of the 30 shapes fits");
  conditions.Require(with_small.placed == 1000, "all small jobs are admitted in one cycle");
  const auto together = WaitsOf(300, false), apart = WaitsOf(300, true);
  std::size_t longer = 0;
  for (std::size_t i = 0; i < together.size(); ++i) longer += together[i] > apart[i] + 1e-9 ? 1 : 0;
  std::printf(
      "drain of 300 jobs, mean wait: %.1f s decided by shape, %.1f s each for itself; "
      "%zu of 30 shapes wait longer\n",
      Mean(together), Mean(apart), longer);
  conditions.Require(longer == 0, "no class waits longer than without");
  const double ratio =
      static_cast<double>(ten.evaluations) / static_cast<double>(thousand.evaluations);
  conditions.Require(thousand.evaluations > 0 && ratio <= 1.1, "evaluations grow by 10 % at most");
  std::printf("p15 %.3f ratio bar 1.1\n", ratio);
  return conditions.ExitStatus();
}

}  // namespace bimetal::bench
