// Random services on a small fleet of both vendors: whatever changes, the rollout keeps its
// promises and comes to rest.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <string>

#include "core/service/rollout.h"

namespace bimetal::core::service {
namespace {

struct Pod {
  Replica replica;
  int revision = 0;
  int vendor = 0;
  bool dying = false;
};

// Places for one replica each, by vendor; variant 0 runs on vendor 0, variant 1 on vendor 1.
class Fleet {
 public:
  explicit Fleet(std::uint32_t seed) : random_(seed) {
    for (auto& slots : slots_) slots = Pick(0, 5);
    Change();
  }

  void Change() {
    service_ = {};
    service_.replica.variants.resize(2);
    service_.variants.resize(2);
    service_.replicas = Pick(0, 6);
    service_.surge = Pick(0, 2);
    service_.unavailable = service_.surge == 0 ? Pick(1, 2) : Pick(0, 2);
    for (auto& variant : service_.variants) {
      if (Pick(0, 2) == 0) variant.min_replicas = Pick(0, 3);
      if (Pick(0, 2) == 0) variant.max_replicas = variant.min_replicas + Pick(0, 3);
      if (Pick(0, 2) == 0) variant.weight = Pick(0, 3);
    }
    if (Pick(0, 1) == 0) ++revision_;
    refused_ = false;
  }

  // One turn of the controller, and what the cluster makes of it.
  bool Turn() {
    const Situation situation = Look();
    const std::int64_t ready_before = Ready();
    const Step step = NextStep(service_, situation);
    Check(step, ready_before);
    refused_ = false;
    for (const int index : step.drain) At(index).dying = true;
    if (step.replace) {
      EXPECT_TRUE(!At(step.replace->old_index).dying) << "drained twice";
      At(step.replace->old_index).dying = true;
    }
    const std::int64_t floor = std::min(ready_before, Wanted() - service_.unavailable);
    EXPECT_GE(Ready(), floor) << "took down more than may be missing";
    for (const auto& wish : step.wishes) Place(wish);
    const bool busy = !step.drain.empty() || step.replace || placed_ || Settle();
    placed_ = false;
    return busy;
  }

  void Disturb() {
    if (pods_.empty() || Pick(0, 2) != 0) return;
    auto& pod = pods_[static_cast<std::size_t>(Pick(0, static_cast<int>(pods_.size()) - 1))];
    if (Pick(0, 1) == 0)
      pod.dying = true;
    else
      pod.replica.ready = false;
  }

  // At rest: nothing that could be better with the places that are free.
  void CheckRest() {
    std::int64_t good = 0;
    std::map<std::size_t, std::int64_t> counts;
    for (const auto& pod : pods_) {
      if (pod.revision != revision_) continue;
      ++good;
      ++counts[pod.replica.variant];
    }
    for (std::size_t v = 0; v < 2; ++v) {
      const auto& variant = service_.variants[v];
      const bool room = Free(static_cast<int>(v)) > 0 && service_.surge > 0 &&
                        (!variant.max_replicas || counts[v] < *variant.max_replicas);
      EXPECT_FALSE(room && good < Wanted()) << "a place is free and a replica is missing";
    }
    EXPECT_LE(static_cast<std::int64_t>(pods_.size()), Wanted() + service_.surge);
  }

  std::int64_t Wanted() const {
    std::int64_t room = 0;
    for (const auto& variant : service_.variants) room += variant.max_replicas.value_or(1000);
    return std::min(service_.replicas, room);
  }

 private:
  int Pick(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }

  Pod& At(int index) {
    for (auto& pod : pods_) {
      if (pod.replica.index == index) return pod;
    }
    ADD_FAILURE() << "there is no replica " << index;
    return pods_.front();
  }
  std::int64_t Ready() const {
    return std::count_if(pods_.begin(), pods_.end(),
                         [](const Pod& pod) { return pod.replica.ready && !pod.dying; });
  }
  std::int64_t Free(int vendor) const {
    return slots_[vendor] - std::count_if(pods_.begin(), pods_.end(),
                                          [&](const Pod& pod) { return pod.vendor == vendor; });
  }

  Situation Look() {
    Situation out;
    for (auto& pod : pods_) {
      pod.replica.current = pod.revision == revision_;
      if (pod.dying)
        out.taken.insert(pod.replica.index);
      else
        out.replicas.push_back(pod.replica);
    }
    std::shuffle(out.replicas.begin(), out.replicas.end(), random_);
    out.refused = refused_;
    out.fits_in_place_of = [](const Wish& wish, const Replica& old) {
      return std::find(wish.variants.begin(), wish.variants.end(), old.variant) !=
             wish.variants.end();
    };
    return out;
  }

  void Check(const Step& step, std::int64_t) {
    std::set<int> indexes;
    for (const auto& pod : pods_) indexes.insert(pod.replica.index);
    std::map<std::size_t, std::int64_t> counts;
    for (const auto& pod : pods_) {
      if (!pod.dying && pod.revision == revision_) ++counts[pod.replica.variant];
    }
    for (const auto& wish : step.wishes) {
      EXPECT_TRUE(indexes.insert(wish.index).second) << "index " << wish.index << " is used";
      ASSERT_FALSE(wish.variants.empty());
      for (const auto v : wish.variants) {
        ++counts[v];
        if (const auto max = service_.variants[v].max_replicas) {
          EXPECT_LE(counts[v], *max) << "variant " << v << " could get more than its maximum";
        }
      }
    }
  }

  void Place(const Wish& wish) {
    for (const auto v : wish.variants) {
      if (Free(static_cast<int>(v)) <= 0) continue;
      Pod pod;
      pod.replica = {
          .index = wish.index, .variant = v, .current = true, .ready = false, .seen = true};
      pod.revision = revision_;
      pod.vendor = static_cast<int>(v);
      pods_.push_back(pod);
      placed_ = true;
      return;
    }
    refused_ = true;
  }

  // Dying pods go, others become ready. True where something changed.
  bool Settle() {
    bool changed = std::erase_if(pods_, [](const Pod& pod) { return pod.dying; }) > 0;
    for (auto& pod : pods_) {
      changed = changed || !pod.replica.ready;
      pod.replica.ready = true;
    }
    return changed;
  }

  std::mt19937 random_;
  int slots_[2] = {};
  int revision_ = 0;
  Service service_;
  std::vector<Pod> pods_;
  bool refused_ = false, placed_ = false;
};

TEST(RolloutPropertyTest, EveryChangeComesToRestAndNeverTakesDownTooMuch) {
  for (std::uint32_t seed = 1; seed <= 600; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Fleet fleet(seed);
    for (int change = 0; change < 4; ++change) {
      int turns = 0, still = 0;
      // A refusal is told one turn later: at rest is what stays so for two turns.
      while (still < 2 && ++turns < 200) still = fleet.Turn() ? 0 : still + 1;
      ASSERT_LT(turns, 200) << "does not come to rest";
      fleet.CheckRest();
      fleet.Disturb();
      fleet.Change();
    }
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace bimetal::core::service
