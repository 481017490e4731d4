#include "tests/bench/place/policy.h"

#include <array>
#include <utility>

#include "tests/bench/place/peers.h"

namespace bimetal::place {
namespace {

using core::placement::Engine;
using core::placement::EngineNode;
using core::placement::EnginePlace;
using core::placement::Mix;
using core::placement::MixLearner;
using core::placement::PodShape;

class EnginePolicy : public Policy {
 public:
  EnginePolicy(Engine engine, const PolicyOptions& options)
      : engine_(std::move(engine)), options_(options), random_(options.seed) {}

  std::optional<EnginePlace> Place(const PodShape& shape) override {
    if (options_.learn) {
      learner_.Saw(shape);
      if (learner_.IsDue()) engine_.SetMix(learner_.Take());
    }
    const auto number = engine_.Intern(shape);
    BIMETAL_CHECK(number.has_value());
    const auto place = options_.random_ties ? AnyOfTheBest(*number) : engine_.Find(*number);
    if (place) engine_.Take(*place);
    return place;
  }
  void Release(const EnginePlace& place) override { engine_.Release(place); }

 private:
  std::optional<EnginePlace> AnyOfTheBest(std::uint32_t shape) {
    std::vector<std::uint32_t> best;
    std::int32_t best_score = 0;
    for (std::uint32_t node = 0; node < engine_.nodes().size(); ++node) {
      const auto score = engine_.ScoreOf(node, shape);
      if (!score || (!best.empty() && *score < best_score)) continue;
      if (*score != best_score) best.clear();
      best_score = *score;
      best.push_back(node);
    }
    if (best.empty()) return std::nullopt;
    return engine_.PlaceOn(best[random_() % best.size()], shape);
  }

  Engine engine_;
  PolicyOptions options_;
  MixLearner learner_;
  std::mt19937_64 random_;
};

}  // namespace

bool IsPolicy(const std::string& name) { return name == "bimetal" || PeerScore(name) != nullptr; }

Result<std::unique_ptr<Policy>> MakePolicy(const PolicyOptions& options,
                                           const std::vector<EngineNode>& nodes, const Mix& mix) {
  if (const PeerRule rule = PeerScore(options.name)) {
    return MakePeer(rule, options, nodes, mix);
  }
  BIMETAL_TRY_ASSIGN(Engine engine, Engine::Make(nodes, options.weights));
  if (!options.learn) engine.SetMix(mix);
  return std::make_unique<EnginePolicy>(std::move(engine), options);
}

}  // namespace bimetal::place
