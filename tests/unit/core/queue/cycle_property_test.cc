#include <map>
#include <set>

#include <gtest/gtest.h>

#include "core/placement/books.h"
#include "core/queue/cycle.h"
#include "tests/unit/core/random_fleet.h"

namespace bimetal::core::queue {
namespace {

using testing::Random;

constexpr int kRounds = 300;

Snapshot RandomSnapshot(std::uint64_t seed) {
  Random random(seed);
  Snapshot s;
  const int nodes = 1 + random.Up(10);
  for (int i = 0; i < nodes; ++i) s.nodes.push_back(testing::RandomNode(random, i));
  for (const Vendor vendor : kVendors) {
    s.pools.push_back(testing::PoolOf(vendor));
    s.pools.push_back(testing::PoolOf(vendor, std::string(VendorName(vendor)) + "-b"));
  }
  s.queues = {testing::QueueNamed("strict", QueueOrder::kStrict), testing::QueueNamed("backfill")};
  for (Queue& queue : s.queues) {
    for (const Vendor vendor : kVendors) {
      if (random.OneIn(2)) {
        queue.quotas.push_back(testing::Quota(std::string(VendorName(vendor)), random.Up(12)));
      }
    }
  }
  const int pods = random.Up(8);
  for (int i = 0; i < pods; ++i) s.pods.push_back(testing::RandomPod(random, i, nodes));
  for (int i = random.Up(3); i > 0; --i) {
    auto running = testing::RunningJob("h" + std::to_string(i), "", random.AnyVendor(), 0, {});
    running.queue = s.queues[static_cast<std::size_t>(random.Up(2))].name;
    running.devices = random.Up(4);
    s.running.push_back(running);
  }
  const int jobs = random.Up(15);
  for (int i = 0; i < jobs; ++i) s.pending.push_back(testing::RandomJob(random, i));
  return s;
}

const Job& JobOf(const Snapshot& s, const Uid& uid) {
  return *std::find_if(s.pending.begin(), s.pending.end(),
                       [&](const Job& job) { return job.uid == uid; });
}

// The plan as text, to compare plans to the byte.
std::string Print(const Plan& plan) {
  std::string text;
  for (const Assignment& a : plan.assignments) {
    text += a.job.value + " v" + std::to_string(a.variant) + " " + a.pool.value + " " +
            std::to_string(a.devices) + ":";
    for (const auto& pod : a.pods) {
      text +=
          " " + std::to_string(pod.role) + "." + std::to_string(pod.index) + "@" + pod.node.value;
    }
    text += "\n";
  }
  for (const Refusal& r : plan.refusals) {
    text += r.job.value + " " + r.reason + " " + r.message + " " + std::to_string(r.ahead) + "/" +
            std::to_string(r.of) + (r.never ? " never" : "");
    for (const auto& b : r.blockers) {
      text += " [" + b.variant + " " + b.reason + " " + std::to_string(b.need) + " " +
              std::to_string(b.free) + " " + b.unblocked_by + "]";
    }
    text += "\n";
  }
  return text;
}

// The snapshot once the plan's pods are live and its jobs placed.
Snapshot After(const Snapshot& s, const Plan& plan) {
  Snapshot after = s;
  for (const Assignment& a : plan.assignments) {
    const Job& job = JobOf(s, a.job);
    const Variant& variant = job.variants[a.variant];
    for (const auto& placed : a.pods) {
      Pod pod = testing::PodOn(
          a.job.value + "/" + std::to_string(placed.role) + "/" + std::to_string(placed.index),
          placed.node.value, variant.vendor, variant.devices_per_pod);
      pod.requests = job.roles[placed.role].requests;
      after.pods.push_back(pod);
    }
    Running running;
    running.job = a.job;
    running.queue = job.queue;
    running.vendor = variant.vendor;
    running.devices = a.devices;
    for (const auto& placed : a.pods) {
      running.places.push_back({.node = placed.node,
                                .devices = variant.devices_per_pod,
                                .requests = job.roles[placed.role].requests});
    }
    after.running.push_back(running);
    std::erase_if(after.pending, [&](const Job& j) { return j.uid == a.job; });
  }
  return after;
}

TEST(DecideProperty, EveryJobIsEitherStartedWholeOrRefusedWithAReason) {
  int started = 0;
  for (std::uint64_t seed = 0; seed < kRounds; ++seed) {
    const Snapshot s = RandomSnapshot(seed);
    const Plan plan = Decide(s);
    std::set<Uid> seen;
    for (const Assignment& a : plan.assignments) {
      ++started;
      EXPECT_TRUE(seen.insert(a.job).second) << seed;
      EXPECT_EQ(static_cast<std::int64_t>(a.pods.size()), PodCount(JobOf(s, a.job))) << seed;
      EXPECT_EQ(a.devices, DevicesNeeded(JobOf(s, a.job), JobOf(s, a.job).variants[a.variant]));
    }
    for (const Refusal& r : plan.refusals) {
      EXPECT_TRUE(seen.insert(r.job).second) << seed;
      EXPECT_FALSE(r.reason.empty() || r.message.empty()) << seed;
      EXPECT_LE(r.message.size(), 1024U) << seed;
    }
    EXPECT_EQ(seen.size(), s.pending.size()) << seed;
  }
  EXPECT_GT(started, kRounds / 2);
}

TEST(DecideProperty, NoDeviceIsGrantedTwiceAcrossTheJobsOfACycle) {
  for (std::uint64_t seed = 0; seed < kRounds; ++seed) {
    const Snapshot s = RandomSnapshot(seed);
    const Plan plan = Decide(s);
    const auto before = placement::MakeBooks(s.pods);
    for (const auto& [name, use] : placement::MakeBooks(After(s, plan).pods)) {
      const auto old = before.find(name);
      const placement::NodeUse was = old == before.end() ? placement::NodeUse{} : old->second;
      if (use == was) continue;  // foreign pods may overbook; we may not
      const auto node = std::find_if(s.nodes.begin(), s.nodes.end(),
                                     [&, n = name](const Node& x) { return x.name == n; });
      for (const auto& [vendor, held] : use.held) {
        const auto was_held = was.held.find(vendor);
        if (was_held != was.held.end() && was_held->second == held) continue;
        EXPECT_LE(WholeDevices(held), UsableDevices(*node, vendor)) << seed;
      }
      EXPECT_LE(use.used.pods, node->allocatable.pods) << seed;
      if (use.used.cpu_milli > was.used.cpu_milli) {
        EXPECT_LE(use.used.cpu_milli, node->allocatable.cpu_milli) << seed;
      }
    }
  }
}

TEST(DecideProperty, QuotaIsNeverExceeded) {
  for (std::uint64_t seed = 0; seed < kRounds; ++seed) {
    const Snapshot s = RandomSnapshot(seed);
    const Plan plan = Decide(s);
    std::map<std::pair<QueueName, Vendor>, std::int64_t> used, given;
    for (const Running& h : After(s, plan).running) used[{h.queue, h.vendor}] += h.devices;
    for (const Assignment& a : plan.assignments) {
      const Job& job = JobOf(s, a.job);
      given[{job.queue, job.variants[a.variant].vendor}] += a.devices;
    }
    for (const Queue& queue : s.queues) {
      for (const QuotaLine& line : queue.quotas) {
        const Vendor vendor = *ParseVendor(line.device_class);
        const std::int64_t limit = *line.limit;
        if (!given.contains({queue.name, vendor})) continue;
        const std::int64_t total = used[{queue.name, vendor}];
        EXPECT_LE(total, limit) << seed;
      }
    }
  }
}

TEST(DecideProperty, InputOrderDoesNotReachTheOutput) {
  for (std::uint64_t seed = 0; seed < kRounds; ++seed) {
    Snapshot s = RandomSnapshot(seed);
    const std::string forward = Print(Decide(s));
    Random random(seed + 77);
    random.Shuffle(s.nodes);
    random.Shuffle(s.pools);
    random.Shuffle(s.queues);
    random.Shuffle(s.pods);
    random.Shuffle(s.running);
    random.Shuffle(s.pending);
    EXPECT_EQ(Print(Decide(s)), forward) << seed;
  }
}

// Books and quota kept up within a cycle equal a recount of what it produced: a second cycle on the
// recounted state finds nothing that the first left out, and gives the same reasons.
TEST(DecideProperty, ASecondCycleOnTheRecountedStateChangesNothing) {
  for (std::uint64_t seed = 0; seed < kRounds; ++seed) {
    const Snapshot s = RandomSnapshot(seed);
    Plan first = Decide(s);
    const Plan second = Decide(After(s, first));
    EXPECT_TRUE(second.assignments.empty()) << seed << "\n" << Print(first) << Print(second);
    first.assignments.clear();
    EXPECT_EQ(Print(second), Print(first)) << seed;
  }
}

TEST(DecideProperty, InAStrictQueueNoJobOvertakesOneThatWaitsOnItsVendor) {
  for (std::uint64_t seed = 0; seed < kRounds; ++seed) {
    const Snapshot s = RandomSnapshot(seed);
    const Plan plan = Decide(s);
    const auto before = [](const Job& a, const Job& b) {
      return std::tuple(-a.priority, a.created, a.uid) < std::tuple(-b.priority, b.created, b.uid);
    };
    for (const Refusal& r : plan.refusals) {
      const Job& waiting = JobOf(s, r.job);
      if (waiting.queue.value != "strict") continue;
      for (std::size_t i = 0; i < r.blockers.size(); ++i) {
        const auto& reason = r.blockers[i].reason;
        if (reason == "NoMatchingDevice" || reason == "ExceedsCapacity" ||
            reason == "ExceedsLimit") {
          continue;
        }
        for (const Assignment& a : plan.assignments) {
          const Job& started = JobOf(s, a.job);
          if (started.queue != waiting.queue || before(started, waiting)) continue;
          EXPECT_NE(started.variants[a.variant].vendor, waiting.variants[i].vendor)
              << seed << " " << a.job.value << " overtook " << r.job.value;
        }
      }
    }
  }
}

TEST(DecideProperty, ThousandsOfPendingJobsOfFewShapesAreDecidedInOneCycle) {
  Snapshot s;
  for (int i = 0; i < 200; ++i) {
    s.nodes.push_back(testing::NodeBuilder("n" + std::to_string(i)).Gpus(Vendor::kNvidia, 8));
  }
  s.pools = {testing::PoolOf(Vendor::kNvidia)};
  s.queues = {testing::QueueNamed("default")};
  for (int i = 0; i < 5000; ++i) {
    s.pending.push_back(testing::JobBuilder("j" + std::to_string(i))
                            .On(Vendor::kNvidia, 1 + i % 3)
                            .Pods(1)
                            .Created(i));
  }
  const Plan plan = Decide(s);
  std::int64_t given = 0;
  for (const Assignment& a : plan.assignments) given += a.devices;
  EXPECT_EQ(given, 1600);
  EXPECT_EQ(plan.assignments.size() + plan.refusals.size(), 5000U);
}

}  // namespace
}  // namespace bimetal::core::queue
