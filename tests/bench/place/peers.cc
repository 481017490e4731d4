#include "tests/bench/place/peers.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace bimetal::place {
namespace {

using core::placement::DeviceKind;
using core::placement::DevicesOf;
using core::placement::EngineNode;
using core::placement::EnginePlace;
using core::placement::Mix;
using core::placement::PodShape;

constexpr std::int32_t kWhole = 1000;

std::int64_t IdleOf(const PeerNode& node) {
  std::int64_t sum = 0;
  for (const std::int32_t milli : node.idle) sum += milli;
  return sum;
}

// FGD's fragmentation of one node, Weng et al., ATC 2023.
double Fragmentation(const PeerNode& node, const std::vector<TypicalPod>& typical) {
  const auto all = static_cast<double>(IdleOf(node));
  double sum = 0;
  for (const TypicalPod& pod : typical) {
    std::int64_t fit = 0, too_small = 0;
    for (const std::int32_t milli : node.idle) {
      if (milli >= pod.shape.each.v) {
        ++fit;
      } else {
        too_small += milli;
      }
    }
    const bool usable = pod.shape.devices > 0 && pod.kinds[node.kind_index] &&
                        pod.shape.need.cpu_milli <= node.cpu && fit >= pod.shape.devices;
    sum += pod.share * (usable ? static_cast<double>(too_small) : all);
  }
  return sum;
}

std::int64_t Sigmoid(double loss) {
  return static_cast<std::int64_t>(std::floor(100.0 / (1.0 + std::exp(-loss / 1000.0))));
}

PeerChoice Fgd(const PeerNode& node, const PodShape& shape,
               const std::vector<TypicalPod>& typical) {
  const double before = Fragmentation(node, typical);
  PeerNode after = node;
  after.cpu -= shape.need.cpu_milli;
  if (shape.devices == 0 || shape.each.v == kWhole) {
    std::int64_t left = shape.devices;
    for (std::int32_t& milli : after.idle) {
      if (left == 0 || milli < kWhole) continue;
      milli = 0;
      --left;
    }
    return {.score = Sigmoid(before - Fragmentation(after, typical))};
  }
  PeerChoice best{.score = -1};
  std::set<std::int32_t> seen;
  for (std::size_t i = 0; i < after.idle.size(); ++i) {
    if (after.idle[i] < shape.each.v || !seen.insert(after.idle[i]).second) continue;
    after.idle[i] -= static_cast<std::int32_t>(shape.each.v);
    const std::int64_t score = Sigmoid(before - Fragmentation(after, typical));
    after.idle[i] += static_cast<std::int32_t>(shape.each.v);
    if (score > best.score) best = {.score = score, .device = static_cast<int>(i)};
  }
  return best;
}

PeerChoice BestFit(const PeerNode& node, const PodShape& shape, const std::vector<TypicalPod>&) {
  const double cpu = static_cast<double>(node.cpu - shape.need.cpu_milli) / 128000;
  const double gpu = static_cast<double>(IdleOf(node) - DevicesOf(shape).v) / 8000;
  return {.score = static_cast<std::int64_t>(std::floor(100 * (1 - (0.5 * cpu + 0.5 * gpu))))};
}

// Used share of the node's devices after placement, as bin-packing plug-ins have it.
PeerChoice GpuBin(const PeerNode& node, const PodShape& shape, const std::vector<TypicalPod>&) {
  const auto capacity = static_cast<std::int64_t>(node.idle.size()) * kWhole;
  if (capacity == 0) return {};
  return {.score = 100 * (capacity - IdleOf(node) + DevicesOf(shape).v) / capacity};
}

PeerChoice FirstFit(const PeerNode&, const PodShape&, const std::vector<TypicalPod>&) { return {}; }

// The most frequent shapes until they cover 95 % of all pods.
std::vector<TypicalPod> TypicalOf(const Mix& mix, const std::vector<DeviceKind>& kinds) {
  std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t, std::optional<core::Vendor>,
                      std::vector<std::string>>,
           std::pair<PodShape, std::int64_t>>
      merged;  // memory does not count
  std::int64_t all = 0;
  for (const auto& [shape, pods] : mix) {
    auto& entry =
        merged[{shape.need.cpu_milli, shape.devices, shape.each.v, shape.vendor, shape.models}];
    entry.first = shape;
    entry.second += pods;
    all += pods;
  }
  std::vector<std::pair<PodShape, std::int64_t>> sorted;
  for (const auto& [key, entry] : merged) sorted.push_back(entry);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::vector<TypicalPod> typical;
  std::int64_t covered = 0;
  for (const auto& [shape, pods] : sorted) {
    if (covered * 100 >= all * 95) break;
    covered += pods;
    TypicalPod pod{.shape = shape, .kinds = {}, .share = static_cast<double>(pods)};
    for (const DeviceKind& kind : kinds) pod.kinds.push_back(MayUse(shape, kind));
    typical.push_back(std::move(pod));
  }
  for (TypicalPod& pod : typical) pod.share /= static_cast<double>(covered);
  return typical;
}

class Peer : public Policy {
 public:
  Peer(PeerRule rule, const PolicyOptions& options, std::vector<EngineNode> nodes, const Mix& mix)
      : rule_(rule), random_ties_(options.random_ties), random_(options.seed) {
    std::sort(nodes.begin(), nodes.end(),
              [](const EngineNode& a, const EngineNode& b) { return a.name < b.name; });
    std::set<DeviceKind> kinds;
    for (const EngineNode& node : nodes) kinds.insert(node.kind);
    kinds_.assign(kinds.begin(), kinds.end());
    for (const EngineNode& node : nodes) {
      nodes_.push_back(PeerNode{
          .cpu = node.capacity.cpu_milli,
          .memory = node.capacity.memory_bytes,
          .idle = std::vector<std::int32_t>(static_cast<std::size_t>(node.devices), kWhole),
          .kind = node.kind,
          .kind_index = static_cast<std::size_t>(
              std::lower_bound(kinds_.begin(), kinds_.end(), node.kind) - kinds_.begin())});
    }
    versions_.assign(nodes_.size(), 0);
    typical_ = TypicalOf(mix, kinds_);
  }

  std::optional<EnginePlace> Place(const PodShape& shape) override {
    std::vector<PeerChoice>& known = known_[shape];  // scores, while the node does not change
    if (known.empty()) {
      known.resize(nodes_.size());
      stamps_[shape].assign(nodes_.size(), 0);
    }
    std::vector<std::uint64_t>& stamps = stamps_[shape];
    std::vector<std::uint32_t> best;
    std::int64_t best_score = 0;
    for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
      if (!Fits(nodes_[i], shape)) continue;
      if (stamps[i] != versions_[i] + 1) {
        known[i] = rule_(nodes_[i], shape, typical_);
        stamps[i] = versions_[i] + 1;
      }
      const std::int64_t score = known[i].score;
      if (!best.empty() && (score < best_score || (score == best_score && !random_ties_))) continue;
      if (best.empty() || score != best_score) best.clear();
      best_score = score;
      best.push_back(i);
    }
    if (best.empty()) return std::nullopt;
    const std::uint32_t node = best[random_ties_ ? random_() % best.size() : 0];
    const EnginePlace place{.node = node,
                            .shape = Number(shape),
                            .devices = DevicesFor(node, shape, known[node].device)};
    Change(place, 1);
    return place;
  }

  void Release(const EnginePlace& place) override { Change(place, -1); }

 private:
  bool Fits(const PeerNode& node, const PodShape& shape) const {
    if (shape.need.cpu_milli > node.cpu || shape.need.memory_bytes > node.memory) return false;
    if (shape.devices == 0) return true;
    if (!MayUse(shape, node.kind)) return false;
    const auto fit = std::count_if(node.idle.begin(), node.idle.end(),
                                   [&](std::int32_t milli) { return milli >= shape.each.v; });
    return fit >= shape.devices;
  }

  std::uint64_t DevicesFor(std::uint32_t index, const PodShape& shape, int device) const {
    const std::vector<std::int32_t>& idle = nodes_[index].idle;
    if (shape.devices == 1 && shape.each.v < kWhole && device < 0) {
      for (std::size_t i = 0; i < idle.size(); ++i) {
        if (idle[i] < shape.each.v) continue;
        if (device < 0 || idle[i] < idle[static_cast<std::size_t>(device)]) {
          device = static_cast<int>(i);
        }
      }
    }
    if (device >= 0) return std::uint64_t{1} << device;
    std::uint64_t devices = 0;
    std::int64_t left = shape.devices;
    for (std::size_t i = 0; i < idle.size() && left > 0; ++i) {
      if (idle[i] < kWhole) continue;
      devices |= std::uint64_t{1} << i;
      --left;
    }
    return devices;
  }

  std::uint32_t Number(const PodShape& shape) {
    const auto [at, added] = numbers_.emplace(shape, static_cast<std::uint32_t>(shapes_.size()));
    if (added) shapes_.push_back(shape);
    return at->second;
  }

  void Change(const EnginePlace& place, int sign) {
    const PodShape& shape = shapes_[place.shape];
    PeerNode& node = nodes_[place.node];
    node.cpu -= sign * shape.need.cpu_milli;
    node.memory -= sign * shape.need.memory_bytes;
    for (std::size_t i = 0; i < node.idle.size(); ++i) {
      if (place.devices >> i & 1) node.idle[i] -= static_cast<std::int32_t>(sign * shape.each.v);
    }
    ++versions_[place.node];
  }

  PeerRule rule_;
  bool random_ties_;
  std::mt19937_64 random_;
  std::vector<DeviceKind> kinds_;
  std::vector<PeerNode> nodes_;
  std::vector<std::uint64_t> versions_;
  std::vector<TypicalPod> typical_;
  std::map<PodShape, std::vector<PeerChoice>> known_;
  std::map<PodShape, std::vector<std::uint64_t>> stamps_;
  std::map<PodShape, std::uint32_t> numbers_;
  std::vector<PodShape> shapes_;
};

}  // namespace

PeerRule PeerScore(const std::string& name) {
  if (name == "fgd") return Fgd;
  if (name == "bestfit") return BestFit;
  if (name == "gpubin") return GpuBin;
  if (name == "firstfit") return FirstFit;
  return nullptr;
}

std::unique_ptr<Policy> MakePeer(PeerRule rule, const PolicyOptions& options,
                                 const std::vector<EngineNode>& nodes, const Mix& mix) {
  return std::make_unique<Peer>(rule, options, nodes, mix);
}

}  // namespace bimetal::place
