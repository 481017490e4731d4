// Properties of decisions over trees of queues with evictions and holds, over many cycles.
#include <gtest/gtest.h>

#include "core/placement/books.h"
#include "tests/unit/core/queue/simulated.h"

namespace bimetal::core::queue {
namespace {

using testing::Print;
using testing::Random;
using testing::RandomSimulated;
using testing::Shrink;
using testing::Simulated;

constexpr std::uint64_t kSeeds = 120;
constexpr int kMostCycles = 60;

// Who is covered by round and rank, then who runs by rank: what every decision makes greater.
std::vector<int> Progress(const Simulated& s) {
  const Snapshot snapshot = s.Look();
  const Lanes lanes(snapshot);
  const QueueTree tree(snapshot.queues, lanes.kinds());
  std::vector<Claim> claims;
  const auto claim = [&](const Job& job, Vendor vendor, const NodeName& node,
                         std::int64_t devices) {
    claims.push_back({.rank = {job.priority, job.created, job.uid},
                      .queue = tree.Find(job.queue),
                      .kind = lanes.On(vendor, node)->kind,
                      .devices = devices});
  };
  for (const auto& [uid, one] : s.running) {
    if (!one.ending) claim(s.JobOf(uid), one.vendor, one.places.at(0).node, one.devices);
  }
  for (const Hold& hold : s.holds) {
    if (!hold.by_eviction) continue;
    const Job& job = s.JobOf(hold.job);
    const Variant& variant = job.variants[hold.variant];
    claim(job, variant.vendor, hold.pods.at(0).node, DevicesNeeded(job, variant));
  }
  const std::vector<int> covered = Coverage(tree, claims).rounds();
  std::vector<Rank> ranks;
  for (const Job& job : s.jobs) ranks.push_back({job.priority, job.created, job.uid});
  std::sort(ranks.begin(), ranks.end());
  std::vector<int> out;
  for (int round = 0; round <= tree.depth(); ++round) {
    for (const Rank& rank : ranks) {
      int value = 0;
      for (std::size_t i = 0; i < claims.size(); ++i) {
        if (claims[i].rank.job != rank.job) continue;
        value = round == tree.depth() ? 1 : covered[i] == round ? 1 : 0;
      }
      out.push_back(value);
    }
  }
  // Last, who runs: a successor that takes the place that was held for it.
  for (const Rank& rank : ranks) {
    const auto one = s.running.find(rank.job);
    out.push_back(one != s.running.end() && !one->second.ending ? 1 : 0);
  }
  return out;
}

// Runs cycles until nothing changes; what went wrong, or nothing. `restart_at`: the cycle before
// which the holds are forgotten, as by an operator that was started again.
std::string Converge(Simulated s, bool slow_ends, int restart_at, Simulated* end = nullptr) {
  for (int cycle = 0; cycle < kMostCycles; ++cycle) {
    if (cycle == restart_at) s.holds.clear();
    const std::vector<int> before = Progress(s);
    const Plan plan = Decide(s.Look());
    const bool still = plan.assignments.empty() && plan.evictions.empty() &&
                       std::none_of(s.running.begin(), s.running.end(),
                                    [](const auto& one) { return one.second.ending; });
    for (const Eviction& eviction : plan.evictions) {
      if (!s.running.contains(eviction.job)) return "evicted what does not run";
      const bool held = std::any_of(plan.holds.begin(), plan.holds.end(), [&](const Hold& hold) {
        return hold.job == eviction.for_job &&
               std::find(hold.awaits.begin(), hold.awaits.end(), eviction.job) != hold.awaits.end();
      });
      if (!held) return "nothing is held for the successor of " + eviction.job.value;
    }
    const bool changed = !plan.assignments.empty() || !plan.evictions.empty();
    s.CarryOut(plan, slow_ends);
    if (changed && restart_at < 0 && !(before < Progress(s))) {
      return "no progress in cycle " + std::to_string(cycle);
    }
    if (still) {
      if (end != nullptr) *end = s;
      return "";
    }
    if (slow_ends && cycle % 2 == 1) s.FinishEnding();
  }
  return "still changing after " + std::to_string(kMostCycles) + " cycles";
}

void ExpectForAll(std::uint64_t seeds, const std::function<std::string(const Simulated&)>& check) {
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    const Simulated s = RandomSimulated(seed);
    const std::string wrong = check(s);
    if (wrong.empty()) continue;
    const Simulated small = Shrink(s, [&](const Simulated& one) { return !check(one).empty(); });
    ADD_FAILURE() << "seed " << seed << ": " << wrong << "; as small as can be (" << check(small)
                  << "):\n"
                  << Print(small);
    return;
  }
}

TEST(PolicyProperty, DecisionsComeToAnEndAndEachIsProgress) {
  ExpectForAll(kSeeds, [](const Simulated& s) { return Converge(s, false, -1); });
}

TEST(PolicyProperty, AndAlsoWhereEvictedPodsTakeTheirTime) {
  ExpectForAll(kSeeds, [](const Simulated& s) { return Converge(s, true, -1); });
}

TEST(PolicyProperty, AndAlsoWhereTheOperatorForgetsTheHoldsInBetween) {
  ExpectForAll(kSeeds / 2, [](const Simulated& s) {
    for (int at = 1; at < 5; ++at) {
      const std::string wrong = Converge(s, true, at);
      if (!wrong.empty()) return wrong + " after a restart before cycle " + std::to_string(at);
    }
    return std::string();
  });
}

// The state of each moment: nothing granted twice, limits kept, whole gangs, one fate for each job.
std::string WrongIn(const Simulated& s) {
  const Snapshot before = s.Look();
  const Plan plan = Decide(before);
  Simulated after = s;
  after.CarryOut(plan, true);
  std::set<Uid> seen;
  for (const Assignment& a : plan.assignments) {
    if (!seen.insert(a.job).second) return a.job.value + " started twice";
    if (static_cast<std::int64_t>(a.pods.size()) != PodCount(s.JobOf(a.job))) return "half a gang";
  }
  for (const Refusal& r : plan.refusals) {
    if (!seen.insert(r.job).second) return r.job.value + " has two fates";
    if (r.reason.empty() || r.message.empty() || r.message.size() > 1024) return "no reason";
  }
  if (seen.size() != s.pending.size()) return "a job without a fate";
  const auto books = placement::MakeBooks(after.Look().pods),
             old = placement::MakeBooks(before.pods);
  for (const Node& node : s.nodes) {
    for (const auto& [vendor, devices] : node.devices) {
      const auto held = WholeDevices(placement::HeldOn(books, node.name, vendor));
      if (held == WholeDevices(placement::HeldOn(old, node.name, vendor))) continue;
      if (held > UsableDevices(node, vendor)) return "devices of " + node.name.value + " twice";
    }
  }
  const Lanes lanes(before);
  QueueTree tree(before.queues, lanes.kinds());
  std::set<int> grew;
  for (const auto& [uid, one] : after.running) {
    const int queue = tree.Find(one.queue);
    tree.Use(queue, lanes.On(one.vendor, one.places.at(0).node)->kind, one.devices, 1);
    for (int at = queue; !s.running.contains(uid) && at != kNoQueue; at = tree.Parent(at)) {
      grew.insert(at);
    }
  }
  for (const int queue : grew) {
    const Queue& q = tree.At(queue);
    for (std::size_t i = 0; i < q.quotas.size(); ++i) {
      if (q.quotas[i].limit && tree.UsedOfLine(queue, i) > *q.quotas[i].limit) {
        return q.name.value + " is over its limit of " + q.quotas[i].device_class;
      }
    }
    if (q.total_limit && tree.UsedInAll(queue) > *q.total_limit) return "over totalLimit";
    if (q.max_running_jobs && tree.JobsOf(queue) > *q.max_running_jobs)
      return "over maxRunningJobs";
  }
  return "";
}

TEST(PolicyProperty, EveryMomentIsSound) {
  ExpectForAll(kSeeds / 2, [](const Simulated& start) {
    Simulated s = start;
    for (int cycle = 0; cycle < 6; ++cycle) {
      std::string wrong = WrongIn(s);
      if (!wrong.empty()) return wrong + " in cycle " + std::to_string(cycle);
      s.CarryOut(Decide(s.Look()), true);
      if (cycle % 2 == 1) s.FinishEnding();
      if (cycle == 3 && !s.running.empty()) s.End(s.running.begin()->first);  // a job has completed
      s.now = s.now + Millis{400'000};
    }
    return std::string();
  });
}

// Every victim was needed: with it back in its place the successor would not fit.
TEST(PolicyProperty, NobodyIsEvictedInVain) {
  int evictions = 0, checked = 0;
  ExpectForAll(kSeeds, [&](const Simulated& start) {
    Simulated s = start;
    s.pending.clear();
    std::vector<const Job*> jobs;  // come one after the other, the lowest first
    for (const Job& job : s.jobs) jobs.push_back(&job);
    std::stable_sort(jobs.begin(), jobs.end(),
                     [](const Job* a, const Job* b) { return a->priority < b->priority; });
    for (const Job* job : jobs) {
      s.pending.insert(job->uid);
      const Plan plan = Decide(s.Look());
      evictions += static_cast<int>(plan.evictions.size());
      // Alone in its cycle, so that nothing but the victim can be in the way.
      if (plan.evictions.size() == 1 && plan.holds.size() == 1 && s.holds.empty() &&
          plan.assignments.empty()) {
        Simulated without = s;
        without.pending = {plan.evictions[0].for_job};
        for (Queue& queue : without.queues) queue.preemption = {};
        if (!Decide(without.Look()).assignments.empty()) {
          return plan.evictions[0].job.value + " was evicted in vain";
        }
        ++checked;
      }
      s.CarryOut(plan);
    }
    return std::string();
  });
  EXPECT_GT(evictions, 40);
  EXPECT_GT(checked, 5);
}

TEST(PolicyProperty, TheOrderOfEqualInputDoesNotMatter) {
  ExpectForAll(kSeeds / 4, [](const Simulated& start) {
    Simulated s = start;
    for (int cycle = 0; cycle < 4; ++cycle) {
      Snapshot snapshot = s.Look();
      const Plan plan = Decide(snapshot);
      Random random(cycle + 1);
      random.Shuffle(snapshot.nodes);
      random.Shuffle(snapshot.pools);
      random.Shuffle(snapshot.queues);
      random.Shuffle(snapshot.pods);
      random.Shuffle(snapshot.running);
      random.Shuffle(snapshot.pending);
      random.Shuffle(snapshot.holds);
      const Plan again = Decide(snapshot);
      if (again.assignments.size() != plan.assignments.size()) return std::string("other starts");
      for (std::size_t i = 0; i < plan.assignments.size(); ++i) {
        if (again.assignments[i].job != plan.assignments[i].job ||
            again.assignments[i].pods != plan.assignments[i].pods) {
          return std::string("another start");
        }
      }
      if (again.evictions.size() != plan.evictions.size()) return std::string("other evictions");
      for (std::size_t i = 0; i < plan.evictions.size(); ++i) {
        if (again.evictions[i].job != plan.evictions[i].job) return std::string("another eviction");
      }
      for (std::size_t i = 0; i < plan.refusals.size(); ++i) {
        if (again.refusals.at(i).message != plan.refusals[i].message) {
          return "another reason: " + again.refusals[i].message + " | " + plan.refusals[i].message;
        }
      }
      s.CarryOut(plan, true);
      if (cycle % 2 == 1) s.FinishEnding();
    }
    return std::string();
  });
}

}  // namespace
}  // namespace bimetal::core::queue
