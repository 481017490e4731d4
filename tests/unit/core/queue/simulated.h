#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/queue/coverage.h"
#include "core/queue/cycle.h"
#include "core/queue/lanes.h"
#include "core/queue/tree.h"
#include "tests/unit/core/random_fleet.h"

// A cluster in memory whose decisions are carried out, for properties over many cycles.
namespace bimetal::core::queue::testing {

using core::testing::JobBuilder;
using core::testing::NodeBuilder;
using core::testing::PodOn;
using core::testing::PoolOf;
using core::testing::QueueNamed;
using core::testing::Quota;
using core::testing::Random;

struct Simulated {
  TimePoint now;
  std::vector<Node> nodes;
  std::vector<Pool> pools;
  std::vector<Queue> queues;
  std::vector<Pod> foreign;
  std::vector<Job> jobs;  // all, by uid below
  std::map<Uid, Running> running;
  std::set<Uid> pending;
  std::vector<Hold> holds;

  const Job& JobOf(const Uid& uid) const {
    return *std::find_if(jobs.begin(), jobs.end(), [&](const Job& job) { return job.uid == uid; });
  }

  Snapshot Look() const {
    Snapshot s;
    s.now = now;
    s.nodes = nodes;
    s.pools = pools;
    s.queues = queues;
    s.pods = foreign;
    s.holds = holds;
    for (const auto& [uid, one] : running) {
      s.running.push_back(one);
      int index = 0;
      for (const Place& place : one.places) {
        Pod pod = PodOn(uid.value + "/" + std::to_string(index++), place.node.value, one.vendor,
                        place.devices);
        pod.requests = place.requests;
        s.pods.push_back(pod);
      }
    }
    for (const Uid& uid : pending) s.pending.push_back(JobOf(uid));
    return s;
  }

  // Those that were evicted are gone (or, with `ending`, on their way out), what was assigned runs.
  void CarryOut(const Plan& plan, bool ending = false) {
    for (const Eviction& eviction : plan.evictions) {
      if (ending) {
        running.at(eviction.job).ending = true;
      } else {
        End(eviction.job);
        pending.insert(eviction.job);
      }
    }
    for (const Assignment& a : plan.assignments) {
      const Job& job = JobOf(a.job);
      Running one;
      one.job = a.job;
      one.name_space = job.name_space;
      one.name = job.name;
      one.queue = job.queue;
      one.priority = job.priority;
      one.created = job.created;
      one.devices = a.devices;
      one.vendor = job.variants[a.variant].vendor;
      one.pool = a.pool;
      one.started = now;
      if (job.max_duration) one.latest_end = now + *job.max_duration;
      if (job.estimated_duration) one.expected_end = now + *job.estimated_duration;
      for (const auto& pod : a.pods) {
        one.places.push_back({.node = pod.node,
                              .devices = job.variants[a.variant].devices_per_pod,
                              .requests = job.roles[pod.role].requests});
      }
      running[a.job] = one;
      pending.erase(a.job);
    }
    holds = plan.holds;
  }

  void End(const Uid& job) { running.erase(job); }
  // The pods of those that are on their way out are gone.
  void FinishEnding() {
    for (auto it = running.begin(); it != running.end();) {
      if (!it->second.ending) {
        ++it;
        continue;
      }
      pending.insert(it->first);
      it = running.erase(it);
    }
  }
};

// Nodes of 4 or 8 devices of either vendor, a tree of queues with every sort of policy, and jobs of
// few shapes: small enough to be tight.
inline Simulated RandomSimulated(std::uint64_t seed) {
  Random random(seed);
  Simulated s;
  s.now = TimePoint{10'000'000};
  const int nodes = 1 + random.Up(5);
  for (int i = 0; i < nodes; ++i) {
    const Vendor vendor = random.AnyVendor();
    s.nodes.push_back(NodeBuilder("n" + std::to_string(i))
                          .Gpus(vendor, random.OneIn(2) ? 4 : 8, "", random.OneIn(3) ? "Y" : "X"));
  }
  for (const Vendor vendor : kVendors) {
    Pool pool = PoolOf(vendor);
    if (random.OneIn(2)) pool.device_classes = {{.name = "class-x", .models = {"X"}}};
    s.pools.push_back(pool);
  }
  const int queues = 1 + random.Up(5);
  constexpr std::array<std::int64_t, 3> kWeights = {0, 1, 10'000'000};
  for (int i = 0; i < queues; ++i) {
    Queue queue = QueueNamed("q" + std::to_string(i));
    if (i > 0 && random.OneIn(2)) queue.parent = QueueName{"q" + std::to_string(random.Up(i))};
    queue.order = random.OneIn(3)   ? QueueOrder::kStrict
                  : random.OneIn(2) ? QueueOrder::kBackfill
                                    : QueueOrder::kBestEffort;
    if (random.OneIn(3)) queue.starvation_bound = Millis{5'000'000};
    for (const char* line : {"nvidia", "amd", "class-x"}) {
      if (random.OneIn(2)) continue;
      QuotaLine quota = Quota(line, std::nullopt, random.Up(9));
      if (random.OneIn(3)) quota.limit = quota.guaranteed + random.Up(9);
      if (random.OneIn(4)) quota.lending_limit = random.Up(static_cast<int>(quota.guaranteed) + 1);
      queue.quotas.push_back(quota);
    }
    if (random.OneIn(6)) queue.total_limit = random.Up(20);
    if (random.OneIn(6)) queue.max_running_jobs = random.Up(5);
    if (random.OneIn(2)) {
      queue.fair_share =
          FairShare{.weight = kWeights[static_cast<std::size_t>(random.Up(3))], .half_life = {}};
    }
    if (random.OneIn(2)) queue.preemption.within_queue = WithinQueue::kLowerPriority;
    if (!random.OneIn(3)) {
      queue.preemption.reclaim = random.OneIn(2) ? Reclaim::kAny : Reclaim::kLowerPriority;
    }
    s.queues.push_back(queue);
  }
  const int jobs = 2 + random.Up(16);
  for (int i = 0; i < jobs; ++i) {
    JobBuilder job("j" + std::to_string(i));
    const Vendor first = random.AnyVendor();
    job.On(first, 1 << random.Up(4));
    if (random.OneIn(2))
      job.On(first == Vendor::kAmd ? Vendor::kNvidia : Vendor::kAmd, 1 << random.Up(3));
    job.Pods(1 + random.Up(3)).Priority(random.Up(3)).Created(random.Up(10) * 1'000'000);
    job.Queue("q" + std::to_string(random.Up(queues)));
    Job made = job;
    if (random.OneIn(3)) made.max_duration = Millis{1'000'000 * (1 + random.Up(5))};
    s.jobs.push_back(made);
    s.pending.insert(made.uid);
  }
  if (random.OneIn(3)) {
    s.foreign.push_back(
        PodOn("foreign", "n0", s.nodes[0].devices.begin()->first, 1 + random.Up(3)));
  }
  return s;
}

// The simulated cluster with as little in it as still fails, by leaving out one thing at a time.
inline Simulated Shrink(Simulated failing, const std::function<bool(const Simulated&)>& fails) {
  const auto try_without = [&](auto member) {
    for (std::size_t i = (failing.*member).size(); i-- > 0;) {
      Simulated smaller = failing;
      (smaller.*member).erase((smaller.*member).begin() + static_cast<std::ptrdiff_t>(i));
      std::erase_if(smaller.pending, [&](const Uid& uid) {
        return std::none_of(smaller.jobs.begin(), smaller.jobs.end(),
                            [&](const Job& job) { return job.uid == uid; });
      });
      if (fails(smaller)) failing = smaller;
    }
  };
  for (int round = 0; round < 3; ++round) {
    try_without(&Simulated::jobs);
    try_without(&Simulated::nodes);
    try_without(&Simulated::queues);
    try_without(&Simulated::foreign);
  }
  return failing;
}

inline std::string Print(const Simulated& s) {
  std::string text;
  for (const Node& node : s.nodes) {
    for (const auto& [vendor, devices] : node.devices) {
      text += node.name.value + " " + std::to_string(devices.devices.size()) + " " +
              std::string(VendorName(vendor)) + " " + devices.devices[0].model + "\n";
    }
  }
  for (const Queue& queue : s.queues) {
    text += queue.name.value + " < " + queue.parent.value + " order " +
            std::to_string(static_cast<int>(queue.order)) + " within " +
            std::to_string(static_cast<int>(queue.preemption.within_queue)) + " reclaim " +
            std::to_string(static_cast<int>(queue.preemption.reclaim));
    for (const QuotaLine& line : queue.quotas) {
      text += " [" + line.device_class + " " + std::to_string(line.guaranteed) + " " +
              std::to_string(line.limit.value_or(-1)) + " " +
              std::to_string(line.lending_limit.value_or(-1)) + "]";
    }
    text += "\n";
  }
  for (const Job& job : s.jobs) {
    text += job.uid.value + " in " + job.queue.value + " priority " + std::to_string(job.priority) +
            " created " + std::to_string(job.created.ms) + " pods " + std::to_string(PodCount(job));
    for (const Variant& variant : job.variants) {
      text += " " + std::string(VendorName(variant.vendor)) + "x" +
              std::to_string(variant.devices_per_pod);
    }
    text += s.running.contains(job.uid) ? " runs\n" : "\n";
  }
  return text;
}

}  // namespace bimetal::core::queue::testing
