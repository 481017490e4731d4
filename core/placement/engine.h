#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/placement/max_tree.h"
#include "core/placement/mix.h"
#include "core/placement/score.h"

namespace bimetal::core::placement {

// A node with devices of one kind (or none) as the engine is given it, all of it idle.
struct EngineNode {
  std::string name;  // unique; ties between equally good nodes go to the smaller name
  Resources capacity;
  DeviceKind kind;
  std::int64_t devices = 0;  // 0 .. Engine::kMaxDevices
};

// Where one pod is.
struct EnginePlace {
  std::uint32_t node = 0;     // index into Engine::nodes()
  std::uint32_t shape = 0;    // of Intern
  std::uint64_t devices = 0;  // bit i: device i of the node
  auto operator<=>(const EnginePlace&) const = default;
};

// The one choice of node and device for one pod. Keeps every node's score for every shape that it
// has been asked for and renews only what changed since, so that a choice costs microseconds.
// Deterministic: the same nodes (in any order), mix and sequence of calls give the same places.
// Loop thread only.
class Engine {
 public:
  static constexpr std::int64_t kMaxDevices = 64;  // of one node
  static constexpr std::size_t kMaxRanked = 512;   // shapes whose scores are kept

  // Errors: kInvalid names the node: a name given twice, negative capacity, too many devices.
  static Result<Engine> Make(std::vector<EngineNode> nodes, const ScoreWeights& weights = {});

  // What pods to expect. Renews all scores.
  void SetMix(const Mix& mix);

  // A number for `shape`, to ask by; of this engine for as long as it lives.
  // Error kInvalid: the shape asks for something impossible.
  Result<std::uint32_t> Intern(const PodShape& shape);

  // The best place for one more pod, or nothing where it fits nowhere. Changes no books.
  std::optional<EnginePlace> Find(std::uint32_t shape);
  // The node's score for the pod, nothing where it does not fit. Greater is better.
  std::optional<std::int32_t> ScoreOf(std::uint32_t node, std::uint32_t shape) const;
  // The place that the pod would get on that node, nothing where it does not fit.
  std::optional<EnginePlace> PlaceOn(std::uint32_t node, std::uint32_t shape) const;

  // Takes and gives back what `place` holds. REQUIRES: Take: just found, nothing taken since;
  // Release: taken and not released.
  void Take(const EnginePlace& place);
  void Release(const EnginePlace& place);

  const std::vector<EngineNode>& nodes() const { return nodes_; }  // by name
  std::int64_t idle_milli() const;
  // Idle milli of each device of the node.
  std::vector<std::int32_t> IdleOf(std::uint32_t node) const;
  Resources LeftOf(std::uint32_t node) const { return state_[node].left; }

 private:
  struct State {
    Resources left;
    std::uint32_t kind = 0, place = 0;  // index into kinds_, and into its nodes
    std::uint32_t first_device = 0;     // into idle_
    std::uint32_t devices = 0;
    std::int64_t waste = 0;
  };
  struct Kind {
    std::vector<std::uint32_t> nodes;    // ascending
    std::vector<std::uint32_t> changed;  // places whose scores are no longer true, oldest first
    std::uint64_t forgotten = 0;         // entries dropped from the front of `changed`
    std::int64_t idle = 0;               // milli
    std::int32_t price = 0;              // of a device, in points
  };
  // Scores of the nodes of one kind for one shape.
  struct Ranking {
    MaxTree scores;
    std::uint64_t renewed = 0;  // entries of `changed` seen; kNever: none
  };
  struct Shape {
    PodShape shape;
    Need need;
    std::vector<bool> kinds;        // that it may use
    std::vector<Ranking> rankings;  // by kind; empty until asked for
  };
  static constexpr std::uint64_t kNever = ~std::uint64_t{0};

  Engine(std::vector<EngineNode> nodes, const ScoreWeights& weights);
  NodeView View(const State& state) const;
  bool FitsOn(const State& state, const Shape& shape) const;
  std::int32_t Value(std::uint32_t node, const Shape& shape) const;
  void StartRanking(Shape* shape);
  void Renew(Shape* shape, std::size_t kind);
  std::int32_t Price(const Kind& kind, const Shape& shape) const;
  void Move(const EnginePlace& place, int sign);
  void SetPrices();
  void Changed(std::uint32_t node);

  ScoreWeights weights_;
  std::vector<EngineNode> nodes_;
  std::vector<State> state_;
  std::vector<std::int32_t> idle_;  // of all devices
  std::vector<DeviceKind> kind_names_;
  std::vector<Kind> kinds_;
  ScoreTables tables_;
  std::map<PodShape, std::uint32_t> numbers_;
  std::vector<Shape> shapes_;
  std::size_t ranked_ = 0;  // shapes with rankings
};

}  // namespace bimetal::core::placement
