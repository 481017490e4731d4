#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/placement/engine.h"
#include "core/placement/mix.h"

// Who chooses a node: the product's engine, or a rule from the literature to hold it against.
namespace bimetal::place {

class Policy {
 public:
  virtual ~Policy() = default;
  // A place for one pod, taken at once; nothing where it fits nowhere.
  virtual std::optional<core::placement::EnginePlace> Place(
      const core::placement::PodShape& shape) = 0;
  virtual void Release(const core::placement::EnginePlace& place) = 0;
};

struct PolicyOptions {
  std::string name = "bimetal";  // bimetal | fgd | bestfit | gpubin | firstfit
  bool random_ties = false;      // instead of the first of equally good nodes
  bool learn = false;            // the mix from the pods that arrive, instead of from the list
  std::uint64_t seed = 0;        // of random ties
  core::placement::ScoreWeights weights;
};

// REQUIRES: a known name. Error: what Engine::Make says.
Result<std::unique_ptr<Policy>> MakePolicy(const PolicyOptions& options,
                                           const std::vector<core::placement::EngineNode>& nodes,
                                           const core::placement::Mix& mix);
bool IsPolicy(const std::string& name);

}  // namespace bimetal::place
