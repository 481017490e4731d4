#include "core/placement/engine.h"

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace bimetal::core::placement {
namespace {

constexpr std::int64_t kGi = std::int64_t{1} << 30;

EngineNode NodeWith(const std::string& name, std::int64_t devices, std::int64_t cores,
                    const std::string& model = "X", Vendor vendor = Vendor::kNvidia) {
  return EngineNode{.name = name,
                    .capacity = {.cpu_milli = cores * 1000, .memory_bytes = 512 * kGi, .pods = 100},
                    .kind = {.vendor = vendor, .model = model},
                    .devices = devices};
}

PodShape Asking(std::int64_t devices, std::int64_t cores, std::int64_t each = 1000) {
  PodShape shape;
  shape.need = {.cpu_milli = cores * 1000, .memory_bytes = kGi, .pods = 1};
  shape.devices = devices;
  shape.each = MilliDevice{each};
  return shape;
}

PodShape Only(PodShape shape, std::vector<std::string> models) {
  shape.models = std::move(models);
  return shape;
}

Engine EngineOf(std::vector<EngineNode> nodes, const Mix& mix = {}) {
  auto engine = Engine::Make(std::move(nodes));
  EXPECT_TRUE(engine.has_value());
  engine->SetMix(mix);
  return std::move(*engine);
}

// The name of the node that the pod gets; empty where it gets none.
std::string Put(Engine& engine, const PodShape& shape) {
  const auto number = engine.Intern(shape);
  EXPECT_TRUE(number.has_value());
  const auto place = engine.Find(*number);
  if (!place) return "";
  engine.Take(*place);
  return engine.nodes()[place->node].name;
}

TEST(EngineTest, RefusesNodesThatItCannotCount) {
  const auto message = [](std::vector<EngineNode> nodes) {
    const auto engine = Engine::Make(std::move(nodes));
    return engine ? std::string() : engine.error().message;
  };
  EXPECT_EQ(message({NodeWith("a", 1, 1), NodeWith("a", 2, 2)}),
            "node a is given twice; give each node once");
  EXPECT_EQ(message({NodeWith("a", 65, 1)}), "node a has 65 devices; the engine takes 0 to 64");
  EXPECT_EQ(message({NodeWith("a", 1, -1)}), "node a has a negative capacity");
  EXPECT_EQ(message({}), "");
}

TEST(EngineTest, RefusesShapesThatAskForTheImpossible) {
  Engine engine = EngineOf({NodeWith("a", 4, 64)});
  for (const PodShape& shape :
       {Asking(-1, 1), Asking(1, -1), Asking(2, 1, 500), Asking(1, 1, 0), Asking(1, 1, 1001)}) {
    EXPECT_FALSE(engine.Intern(shape).has_value());
  }
}

TEST(EngineTest, AbsurdAmountsFitNowhereAndBreakNothing) {
  constexpr auto kMax = std::numeric_limits<std::int64_t>::max();
  PodShape huge = Asking(1, 1);
  huge.need = {.cpu_milli = kMax, .memory_bytes = kMax, .pods = 1};
  PodShape many = Asking(kMax, 1);
  EngineNode vast = NodeWith("vast", 64, 1);
  vast.capacity = {.cpu_milli = kMax, .memory_bytes = kMax, .pods = kMax};
  Engine engine =
      EngineOf({NodeWith("a", 4, 64), vast}, {{huge, kMax}, {many, kMax}, {Asking(2, 9), kMax}});
  EXPECT_EQ(Put(engine, many), "");
  EXPECT_EQ(Put(engine, huge), "vast");
  EXPECT_EQ(Put(engine, huge), "");
}

TEST(EngineTest, PutsAShareOnTheFullestDeviceThatTakesIt) {
  Engine engine = EngineOf({NodeWith("a", 3, 64)});
  const auto put = [&](std::int64_t milli) {
    const auto place = engine.Find(*engine.Intern(Asking(1, 1, milli)));
    engine.Take(*place);
    return place->devices;
  };
  EXPECT_EQ(put(700), 1u);
  EXPECT_EQ(put(400), 2u);
  EXPECT_EQ(put(300), 1u);
  EXPECT_EQ(put(600), 2u);
  EXPECT_EQ(put(1), 4u);
}

TEST(EngineTest, PrefersTheLeftoverThatTheMixCanUse) {
  // The first leaves 200, of which nothing can be made; the other 300.
  Engine engine = EngineOf({NodeWith("a", 1, 64), NodeWith("b", 1, 64)}, {{Asking(1, 1, 300), 1}});
  engine.Take(*engine.PlaceOn(0, *engine.Intern(Asking(1, 1, 300))));
  engine.Take(*engine.PlaceOn(1, *engine.Intern(Asking(1, 1, 200))));
  EXPECT_EQ(Put(engine, Asking(1, 1, 500)), "b");
}

TEST(EngineTest, KeepsWholeNodesForPodsThatNeedThem) {
  const Mix mix = {{Asking(1, 4), 8}, {Asking(8, 32), 2}};
  Engine engine = EngineOf({NodeWith("a", 8, 96), NodeWith("b", 8, 96)}, mix);
  engine.Take(*engine.PlaceOn(1, *engine.Intern(Asking(1, 4))));
  for (int i = 0; i < 7; ++i) EXPECT_EQ(Put(engine, Asking(1, 4)), "b");
  EXPECT_EQ(Put(engine, Asking(8, 32)), "a");
}

TEST(EngineTest, LeavesAScarceModelToPodsThatMayUseNoOther) {
  const Mix mix = {{Asking(1, 4), 1}, {Only(Asking(1, 4), {"Rare"}), 1}};
  Engine engine = EngineOf({NodeWith("a", 2, 64, "Rare"), NodeWith("b", 8, 64, "Common")}, mix);
  for (int i = 0; i < 8; ++i) EXPECT_EQ(Put(engine, Asking(1, 4)), "b");
  EXPECT_EQ(Put(engine, Only(Asking(1, 4), {"Rare"})), "a");
  EXPECT_EQ(Put(engine, Asking(1, 4)), "a");  // dear is not forbidden
}

TEST(EngineTest, HoldsVendorsApart) {
  Engine engine = EngineOf({NodeWith("a", 1, 64), NodeWith("b", 1, 64, "X", Vendor::kAmd)});
  PodShape amd = Asking(1, 1);
  amd.vendor = Vendor::kAmd;
  EXPECT_EQ(Put(engine, amd), "b");
  EXPECT_EQ(Put(engine, amd), "");
  EXPECT_EQ(Put(engine, Asking(1, 1)), "a");
}

TEST(EngineTest, SendsPodsWithoutDevicesToWhereCoresAreToSpare) {
  const Mix mix = {{Asking(1, 10), 1}};
  Engine engine = EngineOf({NodeWith("full", 8, 96), NodeWith("spare", 2, 104)}, mix);
  for (int i = 0; i < 8; ++i) engine.Take(*engine.PlaceOn(0, *engine.Intern(Asking(1, 10))));
  EXPECT_EQ(Put(engine, Asking(0, 16)), "spare");
}

TEST(EngineTest, FeedsDevicesWithTheCoresTheyNeed) {
  // 24 cores beside each device: the node with few cores a device would strand one.
  const Mix mix = {{Asking(1, 12), 8}, {Asking(1, 24), 1}};
  Engine engine = EngineOf({NodeWith("a", 4, 48), NodeWith("b", 4, 96)}, mix);
  EXPECT_EQ(Put(engine, Asking(1, 24)), "b");
}

TEST(EngineTest, EqualNodesGoByName) {
  Engine engine = EngineOf({NodeWith("c", 1, 8), NodeWith("a", 1, 8), NodeWith("b", 1, 8)});
  EXPECT_EQ(Put(engine, Asking(1, 1)), "a");
  EXPECT_EQ(Put(engine, Asking(1, 1)), "b");
  EXPECT_EQ(Put(engine, Asking(1, 1)), "c");
  EXPECT_EQ(Put(engine, Asking(1, 1)), "");
}

TEST(MixLearnerTest, IsDueWhenAQuarterMoreWasSeen) {
  MixLearner learner;
  EXPECT_FALSE(learner.IsDue());
  learner.Saw(Asking(1, 1), 8);
  EXPECT_TRUE(learner.IsDue());
  EXPECT_EQ(learner.Take().at(Asking(1, 1)), 8);
  learner.Saw(Asking(2, 1), 2);
  EXPECT_FALSE(learner.IsDue());
  learner.Saw(Asking(2, 1), -5);  // nothing was seen
  EXPECT_FALSE(learner.IsDue());
  learner.Saw(Asking(2, 1));
  EXPECT_TRUE(learner.IsDue());
  EXPECT_EQ(learner.Take().at(Asking(2, 1)), 3);
}

}  // namespace
}  // namespace bimetal::core::placement
