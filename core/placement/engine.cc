#include "core/placement/engine.h"

#include <algorithm>
#include <set>
#include <utility>

#include "core/model/saturate.h"

namespace bimetal::core::placement {
namespace {

constexpr auto kWhole = static_cast<std::int32_t>(kWholeDevice.v);

std::vector<DeviceKind> KindsOf(const std::vector<EngineNode>& nodes) {
  std::set<DeviceKind> kinds;
  for (const EngineNode& node : nodes) kinds.insert(node.kind);
  return {kinds.begin(), kinds.end()};
}

}  // namespace

Result<Engine> Engine::Make(std::vector<EngineNode> nodes, const ScoreWeights& weights) {
  std::sort(nodes.begin(), nodes.end(),
            [](const EngineNode& a, const EngineNode& b) { return a.name < b.name; });
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const EngineNode& node = nodes[i];
    if (i > 0 && nodes[i - 1].name == node.name) {
      return Fail(ErrorCode::kInvalid,
                  "node " + node.name + " is given twice; give each node once");
    }
    const Resources& has = node.capacity;
    if (has.cpu_milli < 0 || has.memory_bytes < 0 || has.pods < 0) {
      return Fail(ErrorCode::kInvalid, "node " + node.name + " has a negative capacity");
    }
    if (node.devices < 0 || node.devices > kMaxDevices) {
      return Fail(ErrorCode::kInvalid, "node " + node.name + " has " +
                                           std::to_string(node.devices) +
                                           " devices; the engine takes 0 to 64");
    }
  }
  return Engine(std::move(nodes), weights);
}

Engine::Engine(std::vector<EngineNode> nodes, const ScoreWeights& weights)
    : weights_(weights),
      nodes_(std::move(nodes)),
      kind_names_(KindsOf(nodes_)),
      kinds_(kind_names_.size()),
      tables_({}, kind_names_, weights, 0) {
  for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
    const EngineNode& node = nodes_[i];
    const auto number = static_cast<std::uint32_t>(
        std::lower_bound(kind_names_.begin(), kind_names_.end(), node.kind) - kind_names_.begin());
    Kind& kind = kinds_[number];
    State state;
    state.left = node.capacity;
    state.kind = number;
    state.place = static_cast<std::uint32_t>(kind.nodes.size());
    state.first_device = static_cast<std::uint32_t>(idle_.size());
    state.devices = static_cast<std::uint32_t>(node.devices);
    state_.push_back(state);
    kind.nodes.push_back(i);
    kind.idle += node.devices * kWhole;
    idle_.insert(idle_.end(), static_cast<std::size_t>(node.devices), kWhole);
  }
  SetMix({});
}

void Engine::SetMix(const Mix& mix) {
  __int128 cpu = 0;
  for (const EngineNode& node : nodes_) cpu += node.capacity.cpu_milli;
  const std::int64_t devices = std::max<std::int64_t>(1, static_cast<std::int64_t>(idle_.size()));
  tables_ = ScoreTables(mix, kind_names_, weights_, Saturate(cpu / devices));
  for (State& state : state_) state.waste = tables_.Waste(View(state));
  for (Shape& shape : shapes_) {
    for (Ranking& ranking : shape.rankings) ranking.renewed = kNever;
  }
  SetPrices();
}

Result<std::uint32_t> Engine::Intern(const PodShape& shape) {
  if (const auto known = numbers_.find(shape); known != numbers_.end()) return known->second;
  if (!IsSane(shape)) {
    return Fail(ErrorCode::kInvalid,
                "a pod asks for a negative amount or for shares of several devices");
  }
  Shape added{.shape = shape,
              .need = {.cpu_milli = shape.need.cpu_milli,
                       .devices = shape.devices,
                       .each = static_cast<std::int32_t>(shape.each.v)},
              .kinds = {},
              .rankings = {}};
  for (const DeviceKind& kind : kind_names_) added.kinds.push_back(MayUse(shape, kind));
  shapes_.push_back(std::move(added));
  const auto number = static_cast<std::uint32_t>(shapes_.size() - 1);
  numbers_.emplace(shape, number);
  return number;
}

NodeView Engine::View(const State& state) const {
  return NodeView{.kind = state.kind,
                  .cpu_idle = state.left.cpu_milli,
                  .idle = {idle_.data() + state.first_device, state.devices}};
}

bool Engine::FitsOn(const State& state, const Shape& shape) const {
  const Resources& need = shape.shape.need;
  if (need.cpu_milli > state.left.cpu_milli || need.memory_bytes > state.left.memory_bytes ||
      need.pods > state.left.pods) {
    return false;
  }
  if (shape.need.devices == 0) return true;
  if (!shape.kinds[state.kind]) return false;
  std::int64_t fitting = 0;
  for (std::uint32_t i = 0; i < state.devices; ++i) {
    if (idle_[state.first_device + i] >= shape.need.each) ++fitting;
  }
  return fitting >= shape.need.devices;
}

std::int32_t Engine::Value(std::uint32_t node, const Shape& shape) const {
  const State& state = state_[node];
  if (!FitsOn(state, shape)) return MaxTree::kNone;
  return tables_.Score(View(state), state.waste, shape.need).score;
}

void Engine::StartRanking(Shape* shape) {
  if (ranked_ ==
      kMaxRanked) {  // those in use come back soon, at the price of one look at all nodes
    for (Shape& other : shapes_) other.rankings.clear();
    ranked_ = 0;
  }
  ++ranked_;
  for (const Kind& kind : kinds_) {
    shape->rankings.push_back(Ranking{.scores = MaxTree(kind.nodes.size()), .renewed = kNever});
  }
}

void Engine::Renew(Shape* shape, std::size_t index) {
  const Kind& kind = kinds_[index];
  Ranking& ranking = shape->rankings[index];
  const std::uint64_t now = kind.forgotten + kind.changed.size();
  if (ranking.renewed == now) return;
  const bool all = ranking.renewed == kNever || ranking.renewed < kind.forgotten ||
                   now - ranking.renewed >= kind.nodes.size();
  if (all) {
    ranking.scores.Fill(kind.nodes.size(),
                        [&](std::size_t place) { return Value(kind.nodes[place], *shape); });
  } else {
    for (std::uint64_t i = ranking.renewed - kind.forgotten; i < kind.changed.size(); ++i) {
      const std::uint32_t place = kind.changed[i];
      ranking.scores.Set(place, Value(kind.nodes[place], *shape));
    }
  }
  ranking.renewed = now;
}

std::int32_t Engine::Price(const Kind& kind, const Shape& shape) const {
  const std::int64_t points = kind.price * DevicesOf(shape.shape).v / kWhole;
  return static_cast<std::int32_t>(std::min(points, ScoreTables::kMaxPoints) * ScoreTables::kPoint);
}

// A device is dear where pods that may use no other kind will ask for more than their part of what
// is idle: the share of demand that a claim is, over the share of the idle capacity that serves it.
void Engine::SetPrices() {
  if (tables_.claims().empty()) return;
  constexpr __int128 kMost = ScoreTables::kMaxPoints;
  for (Kind& kind : kinds_) kind.price = 0;
  const __int128 all_idle = idle_milli();
  for (const ScoreTables::Claim& claim : tables_.claims()) {
    __int128 idle = 0;
    for (std::size_t i = 0; i < kinds_.size(); ++i) {
      if (claim.kinds[i]) idle += kinds_[i].idle;
    }
    const __int128 points = weights_.scarce * claim.demand * all_idle /
                            (std::max<__int128>(idle, kWhole) * ScoreTables::kOne * weights_.step);
    for (std::size_t i = 0; i < kinds_.size(); ++i) {
      if (!claim.kinds[i]) continue;
      kinds_[i].price = static_cast<std::int32_t>(std::min(kMost, kinds_[i].price + points));
    }
  }
}

std::optional<EnginePlace> Engine::Find(std::uint32_t number) {
  Shape& shape = shapes_[number];
  if (shape.rankings.empty()) StartRanking(&shape);
  std::optional<std::uint32_t> best;
  std::int32_t best_score = 0;
  for (std::size_t i = 0; i < kinds_.size(); ++i) {
    if (!shape.kinds[i]) continue;
    Renew(&shape, i);
    const MaxTree& scores = shape.rankings[i].scores;
    if (scores.Max() == MaxTree::kNone) continue;
    const std::int32_t score = scores.Max() - Price(kinds_[i], shape);
    if (best && score < best_score) continue;
    const std::uint32_t node = kinds_[i].nodes[scores.First()];
    if (best && score == best_score && node > *best) continue;
    best = node;
    best_score = score;
  }
  if (!best) return std::nullopt;
  return PlaceOn(*best, number);
}

std::optional<std::int32_t> Engine::ScoreOf(std::uint32_t node, std::uint32_t number) const {
  const Shape& shape = shapes_[number];
  const std::int32_t value = Value(node, shape);
  if (value == MaxTree::kNone) return std::nullopt;
  return value - Price(kinds_[state_[node].kind], shape);
}

std::optional<EnginePlace> Engine::PlaceOn(std::uint32_t node, std::uint32_t number) const {
  const Shape& shape = shapes_[number];
  const State& state = state_[node];
  if (!FitsOn(state, shape)) return std::nullopt;
  EnginePlace place{.node = node, .shape = number, .devices = 0};
  if (shape.need.devices == 0) return place;
  if (shape.need.each < kWhole) {
    const int device = tables_.Score(View(state), state.waste, shape.need).device;
    place.devices = std::uint64_t{1} << device;
    return place;
  }
  std::int64_t wanted = shape.need.devices;
  for (std::uint32_t i = 0; i < state.devices && wanted > 0; ++i) {
    if (idle_[state.first_device + i] < kWhole) continue;
    place.devices |= std::uint64_t{1} << i;
    --wanted;
  }
  return place;
}

void Engine::Changed(std::uint32_t node) {
  State& state = state_[node];
  state.waste = tables_.Waste(View(state));
  Kind& kind = kinds_[state.kind];
  if (kind.changed.size() > 2 * kind.nodes.size()) {  // older rankings start anew
    kind.forgotten += kind.changed.size();
    kind.changed.clear();
  }
  kind.changed.push_back(state.place);
  SetPrices();
}

void Engine::Move(const EnginePlace& place, int sign) {
  const Shape& shape = shapes_[place.shape];
  State& state = state_[place.node];
  const Resources& need = shape.shape.need;
  state.left.cpu_milli -= sign * need.cpu_milli;
  state.left.memory_bytes -= sign * need.memory_bytes;
  state.left.pods -= sign * need.pods;
  for (std::uint32_t i = 0; i < state.devices; ++i) {
    if ((place.devices >> i & 1) == 0) continue;
    std::int32_t& idle = idle_[state.first_device + i];
    idle -= sign * shape.need.each;
    BIMETAL_CHECK(idle >= 0 && idle <= kWhole);
    kinds_[state.kind].idle -= sign * shape.need.each;
  }
  Changed(place.node);
}

void Engine::Take(const EnginePlace& place) { Move(place, 1); }

void Engine::Release(const EnginePlace& place) { Move(place, -1); }

std::int64_t Engine::idle_milli() const {
  std::int64_t idle = 0;
  for (const Kind& kind : kinds_) idle += kind.idle;
  return idle;
}

std::vector<std::int32_t> Engine::IdleOf(std::uint32_t node) const {
  const State& state = state_[node];
  const auto first = idle_.begin() + state.first_device;
  return {first, first + state.devices};
}

}  // namespace bimetal::core::placement
