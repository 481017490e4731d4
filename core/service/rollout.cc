#include "core/service/rollout.h"

#include <algorithm>
#include <limits>
#include <tuple>

namespace bimetal::core::service {
namespace {

constexpr std::int64_t kNoBound = std::numeric_limits<std::int64_t>::max();

class Planner {
 public:
  Planner(const Service& service, const Situation& situation);
  Step Run();

 private:
  std::int64_t MaxOf(std::size_t variant) const {
    return service_.variants[variant].max_replicas.value_or(kNoBound);
  }
  std::int64_t MinOf(std::size_t variant) const { return service_.variants[variant].min_replicas; }

  void Sort();
  void DrainSurplus();
  void MakeWishes();
  Wish MakeWish(std::vector<std::size_t> variants, bool standing);
  std::vector<std::size_t> Choices(const std::vector<std::int64_t>& counts) const;
  void DrainOld();
  void DrainOldThatServe();
  void Replace();
  void Drain(const Replica& replica);
  std::int64_t Live() const { return static_cast<std::int64_t>(good_.size() + old_.size()); }

  const Service& service_;
  const Situation& situation_;
  std::int64_t wanted_ = 0;
  std::vector<Replica> good_, old_;   // still to stay; by index
  std::vector<std::int64_t> counts_;  // of good ones, by variant
  std::int64_t ready_ = 0;
  std::set<int> used_;
  Step step_;
};

Planner::Planner(const Service& service, const Situation& situation)
    : service_(service),
      situation_(situation),
      counts_(service.variants.size()),
      used_(situation.taken) {
  std::int64_t room = 0;
  for (std::size_t v = 0; v < service.variants.size(); ++v) {
    room = MaxOf(v) > service.replicas - room ? service.replicas : room + MaxOf(v);
  }
  wanted_ = std::min(service.replicas, room);
  step_.too_small = wanted_ < service.replicas;
}

// Divides the replicas into those that may stay and those that must be replaced.
void Planner::Sort() {
  std::vector<Replica> all = situation_.replicas;
  std::sort(all.begin(), all.end(),
            [](const Replica& a, const Replica& b) { return a.index < b.index; });
  // Over a variant's maximum: those that do not answer go first, then the youngest.
  std::vector<Replica> current;
  for (const Replica& replica : all) {
    used_.insert(replica.index);
    if (replica.ready) ++ready_;
    const bool stays = replica.current && replica.variant < service_.variants.size();
    (stays ? current : old_).push_back(replica);
  }
  std::stable_sort(current.begin(), current.end(),
                   [](const Replica& a, const Replica& b) { return a.ready && !b.ready; });
  for (const Replica& replica : current) {
    const bool over = counts_[replica.variant] >= MaxOf(replica.variant);
    if (!over) ++counts_[replica.variant];
    (over ? old_ : good_).push_back(replica);
  }
  const auto by_index = [](const Replica& a, const Replica& b) { return a.index < b.index; };
  std::sort(good_.begin(), good_.end(), by_index);
  std::sort(old_.begin(), old_.end(), by_index);
  step_.rolling = !old_.empty();
}

void Planner::Drain(const Replica& replica) {
  step_.drain.push_back(replica.index);
  if (replica.ready) --ready_;
}

// More good ones than wanted: scaled down, or a move to a variant under its minimum has ended.
void Planner::DrainSurplus() {
  while (static_cast<std::int64_t>(good_.size()) > wanted_) {
    const auto spare = [&](const Replica& r) { return counts_[r.variant] > MinOf(r.variant); };
    auto best = good_.end();
    // Not needed for a minimum first, not answering first, the youngest first.
    const auto rank = [&](const Replica& r) { return std::tuple(spare(r), !r.ready, r.index); };
    for (auto it = good_.begin(); it != good_.end(); ++it) {
      if (!it->seen || (it->ready && ready_ - 1 < wanted_)) continue;
      // A fresh one that fills a minimum is what the move was for.
      if (!it->ready && !spare(*it) && wanted_ > 0 &&
          std::any_of(good_.begin(), good_.end(), spare)) {
        continue;
      }
      if (best == good_.end() || rank(*best) < rank(*it)) best = it;
    }
    if (best == good_.end()) return;
    --counts_[best->variant];
    Drain(*best);
    good_.erase(best);
  }
}

Wish Planner::MakeWish(std::vector<std::size_t> variants, bool standing) {
  int index = 0;
  while (used_.contains(index)) ++index;
  used_.insert(index);
  return Wish{index, std::move(variants), standing};
}

// Variants that may have one more replica than `counts`, the best first.
std::vector<std::size_t> Planner::Choices(const std::vector<std::int64_t>& counts) const {
  std::vector<std::size_t> out;
  bool weighed = false;
  for (std::size_t v = 0; v < service_.variants.size(); ++v) {
    weighed = weighed || service_.variants[v].weight.has_value();
    if (counts[v] < MaxOf(v)) out.push_back(v);
  }
  const auto less = [&](std::size_t a, std::size_t b) {
    const bool short_a = counts[a] < MinOf(a), short_b = counts[b] < MinOf(b);
    if (short_a != short_b) return short_a;
    if (!weighed) return a < b;
    const std::int64_t weight_a = service_.variants[a].weight.value_or(0);
    const std::int64_t weight_b = service_.variants[b].weight.value_or(0);
    if ((weight_a == 0) != (weight_b == 0)) return weight_b == 0;
    if (weight_a == 0) return a < b;
    // The one that is further behind its share: counts[a] / weight_a < counts[b] / weight_b.
    const auto left = static_cast<__int128>(counts[a]) * weight_b;
    const auto right = static_cast<__int128>(counts[b]) * weight_a;
    return left != right ? left < right : a < b;
  };
  std::sort(out.begin(), out.end(), less);
  return out;
}

void Planner::MakeWishes() {
  const auto good = static_cast<std::int64_t>(good_.size());
  const std::int64_t minimum = MinimumOf(service_);
  const std::int64_t need = std::min(wanted_ - good, wanted_ + service_.surge - Live());
  std::vector<std::int64_t> counts = counts_;
  for (std::int64_t i = 0; i < need; ++i) {
    auto choices = Choices(counts);
    if (choices.empty()) break;
    ++counts[choices.front()];
    step_.wishes.push_back(MakeWish(std::move(choices), good + i < minimum));
  }
  // All wishes may start in one cycle: beside its first choice each may take a variant only where
  // that leaves the maximum whole, whatever the others take.
  for (auto& wish : step_.wishes) {
    const std::size_t first = wish.variants.front();
    std::erase_if(wish.variants, [&](std::size_t v) {
      if (v == first) return false;
      if (counts[v] >= MaxOf(v)) return true;
      ++counts[v];
      return false;
    });
  }
  if (good != wanted_ || !old_.empty()) return;
  // All are there, but not where the minimums want them: one is made there before another goes.
  std::int64_t moves = service_.surge;
  for (std::size_t v = 0; v < service_.variants.size(); ++v) {
    for (std::int64_t i = counts_[v]; i < MinOf(v) && moves > 0; ++i, --moves) {
      const auto spare = [&](const Replica& r) { return counts_[r.variant] > MinOf(r.variant); };
      if (std::none_of(good_.begin(), good_.end(), spare)) return;
      step_.wishes.push_back(MakeWish({v}, true));
    }
  }
}

void Planner::DrainOld() {
  // What does not answer serves nobody; but not all at once, in case the whole service is only
  // slow.
  const std::int64_t unavailable =
      situation_.refused ? std::max<std::int64_t>(1, service_.unavailable) : service_.unavailable;
  for (auto it = old_.begin(); it != old_.end();) {
    if (!it->ready && it->seen && Live() > wanted_ - unavailable) {
      Drain(*it);
      it = old_.erase(it);
    } else {
      ++it;
    }
  }
  DrainOldThatServe();
  if (situation_.refused || service_.surge == 0) Replace();
}

void Planner::DrainOldThatServe() {
  for (auto it = old_.rbegin(); it != old_.rend() && ready_ > wanted_; ++it) {
    if (it->ready && it->seen) Drain(*it);
  }
  std::erase_if(old_, [&](const Replica& r) {
    return std::find(step_.drain.begin(), step_.drain.end(), r.index) != step_.drain.end();
  });
}

// No new one has a place of its own: an old one goes where its successor is proven to fit.
void Planner::Replace() {
  if (!situation_.fits_in_place_of || static_cast<std::int64_t>(good_.size()) >= wanted_) return;
  if (ready_ - 1 < wanted_ - service_.unavailable) return;
  Wish wish;
  if (!step_.wishes.empty()) {
    wish = step_.wishes.front();
  } else {
    auto choices = Choices(counts_);
    if (choices.empty()) return;
    wish =
        MakeWish(std::move(choices), static_cast<std::int64_t>(good_.size()) < MinimumOf(service_));
  }
  for (auto it = old_.rbegin(); it != old_.rend(); ++it) {
    if (!it->ready || !it->seen || !situation_.fits_in_place_of(wish, *it)) continue;
    --ready_;
    step_.replace = Replacement{it->index, wish};
    return;  // the next one when this one is under way: the proof was for one
  }
}

Step Planner::Run() {
  Sort();
  DrainSurplus();
  MakeWishes();
  DrainOld();
  std::sort(step_.drain.begin(), step_.drain.end());
  return std::move(step_);
}

}  // namespace

Step NextStep(const Service& service, const Situation& situation) {
  return Planner(service, situation).Run();
}

std::vector<std::size_t> Preemptible(const Service& service, const std::vector<Replica>& replicas) {
  std::vector<std::size_t> order(replicas.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return replicas[a].index < replicas[b].index; });
  std::int64_t ready = 0;
  std::vector<std::int64_t> kept(service.variants.size());
  std::vector<std::size_t> beyond;
  for (const std::size_t i : order) {
    const Replica& replica = replicas[i];
    if (replica.ready) ++ready;
    const bool minimum = replica.variant < service.variants.size() &&
                         kept[replica.variant] < service.variants[replica.variant].min_replicas;
    if (minimum) {
      ++kept[replica.variant];
    } else {
      beyond.push_back(i);
    }
  }
  std::reverse(beyond.begin(), beyond.end());
  std::int64_t allowed = ready - (service.replicas - service.disrupted);
  std::vector<std::size_t> out;
  for (const std::size_t i : beyond) {
    if (replicas[i].ready && --allowed < 0) continue;
    out.push_back(i);
  }
  return out;
}

}  // namespace bimetal::core::service
