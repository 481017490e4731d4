// Random gangs of other owners on one node, with patches that arrive late, pods that vanish and an
// operator that starts again at any moment.
#include <random>

#include <gtest/gtest.h>

#include "tests/unit/operator/controllers/gated_world.h"

namespace bimetal::test {
namespace {

constexpr int kDevices = 8;

class Story {
 public:
  explicit Story(unsigned seed) : random_(seed) { w_.AdmitNodes(kDevices, 0); }

  void Step() {
    switch (Below(10)) {
      case 0:
      case 1:
        NewGang();
        break;
      case 2:
      case 3:
      case 4:
        NewPod();
        break;
      case 5:
        if (const auto pod = AnyPod(); !pod.empty()) w_.Remove(pod);
        break;
      case 6:
        if (const auto pod = AnyPod(); !pod.empty() && Ungated(w_.pods.at(pod))) {
          w_.Run(pod);
          w_.End(pod, Below(2) ? "Succeeded" : "Failed");
        }
        break;
      case 7:
        w_.TakePatches();
        break;
      case 8:
        if (Below(4) == 0) {
          w_.Restart();  // what was not sent is lost
        }
        break;
      default:
        w_.world.clock.Advance(Seconds(Below(30)));
    }
    Decide();
    Check();
  }

  // Everybody who is left gets what he waits for, one after the other.
  void Drain() {
    for (int i = 0; i < 80; ++i) {
      w_.TakePatches();
      w_.world.clock.Advance(Seconds(61));
      for (const auto& [name, pod] : std::map(w_.pods)) {
        if (!Ungated(pod) || Ended(pod)) continue;
        w_.Run(name);
        w_.End(name, "Succeeded");
        break;
      }
      Decide();
      Check();
    }
    for (const auto& [name, pod] : w_.pods) {
      const auto& gang = gangs_.at(Owner(pod));
      if (gang.made < gang.size) continue;  // never whole
      EXPECT_TRUE(Ungated(pod) || gang.lost) << name << " waits for ever: " << w_.Words(name);
    }
    EXPECT_TRUE(w_.gated->AssumedPods().empty());
  }

 private:
  struct Gang {
    int size = 1, devices = 1, made = 0;
    bool lost = false;  // a pod of it was deleted, and nobody makes another
  };

  int Below(int n) { return std::uniform_int_distribution<int>(0, n - 1)(random_); }
  static bool Ungated(const api::Pod& pod) { return pod.spec().scheduling_gates().empty(); }
  static bool Ended(const api::Pod& pod) {
    return pod.status().phase() == "Succeeded" || pod.status().phase() == "Failed";
  }
  static std::string Owner(const api::Pod& pod) { return pod.metadata().owner_references(0).name(); }

  void NewGang() {
    const std::string name = "g" + std::to_string(gangs_.size());
    gangs_[name] = {1 + Below(4), 1 + Below(2), 0, false};
  }
  void NewPod() {
    for (auto& [name, gang] : gangs_) {
      if (gang.made == gang.size || Below(2) == 0) continue;
      w_.Show(PodMaker(name + "-" + std::to_string(gang.made++))
                  .Devices(kNvidia, gang.devices)
                  .OfGang(name, gang.size));
      return;
    }
  }
  std::string AnyPod() {
    if (w_.pods.empty()) return "";
    auto it = w_.pods.begin();
    std::advance(it, Below(static_cast<int>(w_.pods.size())));
    gangs_.at(Owner(it->second)).lost = true;
    return it->first;
  }

  // A cycle; what it opens of a gang of which nothing runs must be the whole gang.
  void Decide() {
    const std::size_t before = w_.world.writes.writes.size();
    w_.Turn();
    std::map<std::string, int> opened;
    for (std::size_t i = before; i < w_.world.writes.writes.size(); ++i) {
      const auto& write = w_.world.writes.writes[i];
      if (write.body.find("schedulingGates") == std::string::npos) continue;
      ++opened[write.name.substr(0, write.name.find('-'))];
    }
    for (const auto& [name, count] : opened) {
      int there = 0, runs = 0;
      for (const auto& [pod_name, pod] : w_.pods) {
        if (Owner(pod) != name) continue;
        runs += Ungated(pod) && !Ended(pod) ? 1 : 0;
        there += pod.status().phase() == "Succeeded" ? 1 : 0;
      }
      if (runs == 0) {
        EXPECT_EQ(count + there, gangs_.at(name).size) << "half of gang " << name;
      }
    }
  }

  void Check() {
    int held = 0;
    for (const auto& [name, pod] : w_.pods) {
      if (Ungated(pod) && !Ended(pod)) held += gangs_.at(Owner(pod)).devices;
    }
    ASSERT_LE(held, kDevices) << "a device was given twice";
    std::int64_t assumed = 0;
    for (const auto& pod : w_.gated->AssumedPods())
      assumed += pod.devices.at(core::Vendor::kNvidia).v / kWholeDevice.v;
    ASSERT_LE(held + assumed, kDevices);
    ASSERT_EQ(w_.Used("default", core::Vendor::kNvidia), held + assumed);
  }

  std::mt19937 random_;
  GatedWorld w_;
  std::map<std::string, Gang> gangs_;
};

TEST(GatedPodsPropertyTest, NothingIsGivenTwiceGangsGoWholeAndNobodyWaitsForEver) {
  for (unsigned seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Story story(seed);
    for (int i = 0; i < 60 && !testing::Test::HasFailure(); ++i) story.Step();
    story.Drain();
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace bimetal::test
