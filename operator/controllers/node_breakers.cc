#include "operator/controllers/node_breakers.h"

namespace bimetal::op {

using core::admission::BreakerLimits;
using core::admission::BreakerState;
using core::admission::Decision;

void NodeBreakers::SetLimits(const std::string& pool, const BreakerLimits& limits) {
  Board& board = boards_[pool];
  if (board.limits.max_runs == limits.max_runs &&
      board.limits.max_shut_percent == limits.max_shut_percent &&
      board.limits.max_same_failures == limits.max_same_failures) {
    return;
  }
  board.limits = limits;
  board.dirty = true;
}

const BreakerLimits& NodeBreakers::LimitsOf(const std::string& pool) const {
  static const BreakerLimits kDefault;
  const auto it = boards_.find(pool);
  return it == boards_.end() ? kDefault : it->second.limits;
}

void NodeBreakers::Put(const std::string& pool, const std::string& node,
                       const core::admission::NodeStanding& standing) {
  Board& board = boards_[pool];
  const auto [it, added] = board.nodes.try_emplace(NodeName{node}, standing);
  if (!added && it->second == standing) return;
  it->second = standing;
  board.dirty = true;
}

void NodeBreakers::Remove(const std::string& pool, const std::string& node) {
  const auto it = boards_.find(pool);
  if (it == boards_.end()) return;
  it->second.waiting.erase(node);
  if (it->second.nodes.erase(NodeName{node}) > 0) it->second.dirty = true;
}

const BreakerState& NodeBreakers::StateOf(const std::string& pool) const {
  static const BreakerState kNone = core::admission::Assess({}, {});
  const auto it = boards_.find(pool);
  if (it == boards_.end()) return kNone;
  const Board& board = it->second;
  if (board.dirty) {
    board.state = core::admission::Assess(board.nodes, board.limits);
    board.dirty = false;
  }
  return board.state;
}

void NodeBreakers::SetWaiting(const std::string& pool, const std::string& node,
                              Decision::Waits waits) {
  if (waits == Decision::Waits::kNo) {
    const auto it = boards_.find(pool);
    if (it != boards_.end()) it->second.waiting.erase(node);
  } else {
    boards_[pool].waiting[node] = waits;
  }
}

std::vector<std::string> NodeBreakers::PoolsThatWait() const {
  std::vector<std::string> out;
  for (const auto& [name, board] : boards_) {
    if (!board.waiting.empty()) out.push_back(name);
  }
  return out;
}

std::vector<std::string> NodeBreakers::TurnOf(const std::string& pool) {
  std::vector<std::string> out;
  Board& board = boards_[pool];
  const BreakerState& state = StateOf(pool);
  const std::string text = state.Text(board.limits);
  const bool news = text != board.last_text || state.shut_share != board.last_shut_share;
  board.last_text = text;
  board.last_shut_share = state.shut_share;
  if (!news && state.free_slots == 0) return out;
  for (const auto& [node, waits] : board.waiting) {
    const bool queued = waits == Decision::Waits::kQueued;
    if (!news && !queued) continue;
    if (!news && out.size() == static_cast<std::size_t>(state.free_slots)) break;
    out.push_back(node);
  }
  return out;
}

}  // namespace bimetal::op
