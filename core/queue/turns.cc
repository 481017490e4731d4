#include "core/queue/turns.h"

#include <algorithm>
#include <map>

namespace bimetal::core::queue {

bool Turns::Earlier::operator()(const Key& a, const Key& b) const {
  if (a.borrows != b.borrows) return b.borrows;
  if (a.share < b.share) return true;
  if (b.share < a.share) return false;
  return a.order < b.order;
}

Turns::Turns(const QueueTree& tree, const Shares& shares, const std::vector<Candidate>& candidates)
    : tree_(tree), shares_(shares), nodes_(tree.size() + 1) {
  std::vector<std::map<std::string, std::size_t>> lines(tree.size());
  for (const Candidate& candidate : candidates) {
    by_order_.resize(std::max(by_order_.size(), candidate.order + 1), nullptr);
    by_order_[candidate.order] = &candidate;
  }
  line_of_.resize(by_order_.size(), 0);
  for (const Candidate* candidate : by_order_) {
    if (candidate == nullptr) continue;
    Node& node = At(candidate->queue);
    auto& of_queue = lines[static_cast<std::size_t>(candidate->queue)];
    const auto [line, added] = of_queue.try_emplace(candidate->shape, node.lines.size());
    if (added) {
      node.lines.emplace_back();
      node.open.emplace(candidate->order, line->second);
    }
    node.lines[line->second].jobs.push_back(candidate);
    line_of_[candidate->order] = line->second;
  }
  for (int queue = 0; queue < static_cast<int>(tree.size()); ++queue) {
    if (!At(queue).open.empty()) Update(queue);
  }
}

bool Turns::Borrows(const Candidate& candidate) const {
  const auto& kinds = tree_.kinds();
  for (const Variant& variant : candidate.job->variants) {
    const std::int64_t need = DevicesNeeded(*candidate.job, variant);
    for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
      if (kinds[kind].vendor == variant.vendor && tree_.IsGuaranteed(candidate.queue, kind, need)) {
        return false;
      }
    }
  }
  return true;
}

void Turns::Replace(std::set<Key, Earlier>& set, std::optional<Key>* old,
                    const std::optional<Key>& now) {
  if (*old) set.erase(**old);
  if (now) set.insert(*now);
  *old = now;
}

void Turns::Update(int queue) {
  Node& own = At(queue);
  std::optional<Key> key;
  if (!own.open.empty()) {
    const std::size_t head = own.open.begin()->first;
    key = Key{.borrows = Borrows(*by_order_[head]),
              .share = shares_.IsOn(queue) ? shares_.OfOwnJobs(queue) : Share{},
              .order = head};
  }
  Replace(own.waiting, &own.own, key);
  for (int at = queue; at != kNoQueue; at = tree_.Parent(at)) {
    Node& node = At(at);
    const int parent = tree_.Parent(at);
    std::optional<Key> best;
    if (!node.waiting.empty()) {
      best = *node.waiting.begin();
      best->share = shares_.IsOn(parent) ? shares_.Of(at) : Share{};
    }
    Replace(At(parent).waiting, &node.in_parent, best);
  }
}

const Candidate* Turns::Next() {
  for (;;) {
    const Node& top = At(kNoQueue);
    if (top.waiting.empty()) return nullptr;
    const Key& first = *top.waiting.begin();
    const Candidate* candidate = by_order_[first.order];
    // What others got meanwhile may have used up what was guaranteed above.
    if (Borrows(*candidate) == first.borrows) return candidate;
    Update(candidate->queue);
  }
}

void Turns::Pass(const Candidate& candidate) {
  Node& node = At(candidate.queue);
  const std::size_t index = line_of_[candidate.order];
  Line& line = node.lines[index];
  node.open.erase({candidate.order, index});
  if (++line.next < line.jobs.size()) node.open.emplace(line.jobs[line.next]->order, index);
  Update(candidate.queue);
}

void Turns::Close(const Candidate& candidate) {
  Node& node = At(candidate.queue);
  node.open.erase({candidate.order, line_of_[candidate.order]});
  Update(candidate.queue);
}

}  // namespace bimetal::core::queue
