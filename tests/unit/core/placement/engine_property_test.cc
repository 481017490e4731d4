#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "core/placement/engine.h"
#include "core/placement/max_tree.h"
#include "tests/unit/core/random_fleet.h"

namespace bimetal::core::placement {
namespace {

using testing::Random;

std::vector<EngineNode> RandomNodes(Random& random) {
  std::vector<EngineNode> nodes;
  const int count = 1 + random.Up(12);
  for (int i = 0; i < count; ++i) {
    nodes.push_back(
        EngineNode{.name = "n" + std::to_string(i),
                   .capacity = {.cpu_milli = 1000 * random.Up(64),
                                .memory_bytes = random.Up(64),
                                .pods = random.Up(20)},
                   .kind = {.vendor = random.AnyVendor(), .model = random.OneIn(3) ? "Y" : "X"},
                   .devices = random.Up(9)});
  }
  return nodes;
}

PodShape RandomShape(Random& random) {
  PodShape shape;
  shape.need = {.cpu_milli = 500 * random.Up(24), .memory_bytes = random.Up(8), .pods = 1};
  shape.devices = random.OneIn(5) ? 0 : 1;
  if (shape.devices == 1 && random.OneIn(2)) shape.each = MilliDevice{1 + random.Up(1000)};
  if (shape.each == kWholeDevice && random.OneIn(4)) shape.devices = 2 + random.Up(7);
  if (random.OneIn(4)) shape.vendor = random.AnyVendor();
  if (random.OneIn(4)) shape.models = {"X"};
  return shape;
}

Mix RandomMix(Random& random) {
  Mix mix;
  const int count = random.Up(8);
  for (int i = 0; i < count; ++i) mix[RandomShape(random)] += 1 + random.Up(9);
  return mix;
}

// What is left, recounted from what is held.
void ExpectBooksOf(const Engine& engine, const std::vector<EnginePlace>& held,
                   const std::vector<PodShape>& shapes) {
  for (std::uint32_t node = 0; node < engine.nodes().size(); ++node) {
    const EngineNode& has = engine.nodes()[node];
    Resources left = has.capacity;
    std::vector<std::int32_t> idle(static_cast<std::size_t>(has.devices), 1000);
    for (const EnginePlace& place : held) {
      if (place.node != node) continue;
      const PodShape& shape = shapes[place.shape];
      left.cpu_milli -= shape.need.cpu_milli;
      left.memory_bytes -= shape.need.memory_bytes;
      left.pods -= shape.need.pods;
      std::int64_t devices = 0;
      for (std::size_t i = 0; i < idle.size(); ++i) {
        if ((place.devices >> i & 1) == 0) continue;
        idle[i] -= static_cast<std::int32_t>(shape.each.v);
        ++devices;
      }
      ASSERT_EQ(devices, shape.devices);
      ASSERT_TRUE(MayUse(shape, has.kind));
    }
    ASSERT_EQ(engine.LeftOf(node), left);
    ASSERT_EQ(engine.IdleOf(node), idle);
    ASSERT_GE(std::min({left.cpu_milli, left.memory_bytes, left.pods}), 0);
    for (const std::int32_t milli : idle) ASSERT_TRUE(milli >= 0 && milli <= 1000);
  }
}

// The best by a look at every node, the first of equal ones.
std::optional<std::uint32_t> BestByScan(const Engine& engine, std::uint32_t shape) {
  std::optional<std::uint32_t> best;
  std::int32_t best_score = 0;
  for (std::uint32_t node = 0; node < engine.nodes().size(); ++node) {
    const auto score = engine.ScoreOf(node, shape);
    if (!score || (best && *score <= best_score)) continue;
    best = node;
    best_score = *score;
  }
  return best;
}

class EnginePropertyTest : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(EnginePropertyTest, RemembersScoresRightAndKeepsItsBooks) {
  Random random(GetParam());
  auto engine = Engine::Make(RandomNodes(random));
  ASSERT_TRUE(engine.has_value());
  engine->SetMix(RandomMix(random));
  std::vector<PodShape> shapes;
  std::vector<EnginePlace> held;
  for (int step = 0; step < 300; ++step) {
    if (random.OneIn(60)) engine->SetMix(RandomMix(random));
    if (!held.empty() && random.OneIn(3)) {
      const auto at = static_cast<std::size_t>(random.Up(static_cast<int>(held.size())));
      engine->Release(held[at]);
      held.erase(held.begin() + static_cast<std::ptrdiff_t>(at));
      continue;
    }
    const PodShape shape =
        !shapes.empty() && random.OneIn(2)
            ? shapes[static_cast<std::size_t>(random.Up(static_cast<int>(shapes.size())))]
            : RandomShape(random);
    const auto number = engine->Intern(shape);
    ASSERT_TRUE(number.has_value());
    if (*number == shapes.size()) shapes.push_back(shape);
    const auto place = engine->Find(*number);
    const auto best = BestByScan(*engine, *number);
    ASSERT_EQ(place.has_value(), best.has_value()) << "step " << step;
    if (!place) continue;
    ASSERT_EQ(place->node, *best) << "step " << step;
    engine->Take(*place);
    held.push_back(*place);
    if (step % 10 == 0) ExpectBooksOf(*engine, held, shapes);
  }
  ExpectBooksOf(*engine, held, shapes);
  random.Shuffle(held);
  for (const EnginePlace& place : held) engine->Release(place);
  ExpectBooksOf(*engine, {}, shapes);
}

TEST_P(EnginePropertyTest, DoesNotDependOnTheOrderOfItsNodes) {
  Random random(GetParam());
  std::vector<EngineNode> nodes = RandomNodes(random);
  const Mix mix = RandomMix(random);
  auto one = Engine::Make(nodes);
  random.Shuffle(nodes);
  auto other = Engine::Make(nodes);
  ASSERT_TRUE(one.has_value() && other.has_value());
  one->SetMix(mix);
  other->SetMix(mix);
  for (int i = 0; i < 60; ++i) {
    const PodShape shape = RandomShape(random);
    const auto a = one->Find(*one->Intern(shape));
    const auto b = other->Find(*other->Intern(shape));
    ASSERT_EQ(a, b) << "pod " << i;
    if (!a) continue;
    one->Take(*a);
    other->Take(*b);
  }
}

TEST_P(EnginePropertyTest, ForgetsRankingsWithoutChangingItsChoice) {
  Random random(GetParam());
  auto engine = Engine::Make(RandomNodes(random));
  ASSERT_TRUE(engine.has_value());
  const std::uint32_t first = *engine->Intern(RandomShape(random));
  const auto before = engine->Find(first);
  for (std::size_t i = 0; i < Engine::kMaxRanked + 5; ++i) {
    PodShape other;
    other.need.memory_bytes = static_cast<std::int64_t>(i);
    engine->Find(*engine->Intern(other));
  }
  EXPECT_EQ(engine->Find(first), before);
}

TEST_P(EnginePropertyTest, MaxTreeIsTheFirstOfTheGreatest) {
  Random random(GetParam());
  const auto size = static_cast<std::size_t>(1 + random.Up(20));
  std::vector<std::int32_t> values(size, MaxTree::kNone);
  MaxTree tree(size);
  for (int step = 0; step < 200; ++step) {
    const auto at = static_cast<std::size_t>(random.Up(static_cast<int>(size)));
    values[at] = random.OneIn(4) ? MaxTree::kNone : random.Up(5);
    tree.Set(at, values[at]);
    const auto most = std::max_element(values.begin(), values.end());
    ASSERT_EQ(tree.Max(), *most);
    if (*most == MaxTree::kNone) continue;
    ASSERT_EQ(tree.First(), static_cast<std::size_t>(most - values.begin()));
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, EnginePropertyTest, ::testing::Range<std::uint64_t>(1, 41));

}  // namespace
}  // namespace bimetal::core::placement
