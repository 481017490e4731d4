#include <algorithm>
#include <random>
#include <set>
#include <tuple>

#include <gtest/gtest.h>

#include "core/admission/decide.h"

namespace bimetal::core::admission {
namespace {

constexpr int kHistories = 200, kSteps = 60;

// A node with a life of its own: reboots, driver changes, faults, silent agents, lost pods, late
// and wrong results, restarts of the operator. It keeps the truth beside what Decide is told.
class World {
 public:
  explicit World(std::uint64_t seed) : random_(seed) {
    policy.enforce = !OneIn(8);
    policy.retries = Up(4);
    if (OneIn(3)) policy.expires_after = Minutes(2 + Up(5));
    facts.report = Report{.received = now,
                          .boot_id = "boot-0",
                          .fingerprint = "fp-0",
                          .devices = {{DeviceId{"d0"}, DeviceHealth::kHealthy},
                                      {DeviceId{"d1"}, DeviceHealth::kHealthy},
                                      {DeviceId{"d2"}, DeviceHealth::kHealthy}}};
  }

  void Happen() {
    now = now + Millis{OneIn(4) ? Up(120'000) : Up(4'000)};
    if (!OneIn(6)) facts.report->received = now;
    switch (Up(14)) {
      case 0:
        facts.report->boot_id = "boot-" + std::to_string(Up(3));
        break;
      case 1:
        facts.report->fingerprint = "fp-" + std::to_string(Up(3));
        break;
      case 2:
        facts.report->devices[Index()].health = static_cast<DeviceHealth>(Up(3));
        break;
      case 3:
        for (auto& device : facts.report->devices) device.health = DeviceHealth::kHealthy;
        break;
      case 4:
        facts.hold = OneIn(2);
        break;
      case 5:
        facts.revalidate = std::to_string(Up(4));
        break;
      case 6:
        facts.node_exists = !OneIn(3);
        break;
      case 7:
        if (facts.pod) facts.pod->ended = true;
        break;
      case 8:  // the operator restarts with what the status keeps
        memory.seen_boot_id.clear();
        memory.seen_fingerprint.clear();
        memory.pod_ended_at.reset();
        break;
      default:
        if (facts.pod && !facts.run) HandIn();
    }
  }

  void Act(const Decision& decision) {
    memory = decision.memory;
    if (!decision.end_run.empty()) {
      facts.run.reset();
      if (!OneIn(3)) facts.pod.reset();  // else it takes its time to go
    }
    if (decision.start_run && !OneIn(5)) {
      EXPECT_FALSE(facts.pod);
      facts.pod = RunPod{
          .id = "pod-" + std::to_string(++pods_), .created = now, .ended = false, .trouble = ""};
      made_under_ = Situation();
    }
  }

  std::pair<std::string, std::string> Situation() const {
    return {facts.report->boot_id, facts.report->fingerprint};
  }
  bool Passed(const DeviceId& device) const {
    return passes.contains({Situation().first, Situation().second, device});
  }

  TimePoint now{1'000'000'000'000};
  Facts facts;
  Memory memory;
  Policy policy;
  // Devices that the pod of the day said Pass of, by the boot and fingerprint it was made under.
  std::set<std::tuple<std::string, std::string, DeviceId>> passes;

  int Up(int n) { return static_cast<int>(random_() % static_cast<std::uint64_t>(n)); }
  bool OneIn(int n) { return Up(n) == 0; }
  std::uint64_t Next() { return random_(); }

 private:
  std::size_t Index() { return static_cast<std::size_t>(Up(3)); }

  void HandIn() {
    Run run{.id = OneIn(8) ? "pod-0" : facts.pod->id,
            .fingerprint = OneIn(10) ? "" : made_under_.second,
            .verdicts = {}};
    for (const auto& device : facts.report->devices) {
      if (OneIn(12)) continue;
      const Verdict verdict = OneIn(9) ? static_cast<Verdict>(Up(5)) : Verdict::kPass;
      run.verdicts.push_back(CheckVerdict{"memory", device.id, verdict, ""});
      const bool bad = verdict == Verdict::kFail || verdict == Verdict::kInconclusive;
      if (!bad && run.id == facts.pod->id && !run.fingerprint.empty()) {
        passes.insert({made_under_.first, made_under_.second, device.id});
      }
    }
    facts.run = run;
  }

  std::mt19937_64 random_;
  int pods_ = 0;
  std::pair<std::string, std::string> made_under_;
};

template <class Check>
void Live(Check check) {
  for (std::uint64_t seed = 0; seed < kHistories; ++seed) {
    World world(seed);
    for (int step = 0; step < kSteps; ++step) {
      world.Happen();
      const Decision decision = Decide(world.facts, world.memory, world.policy, world.now);
      SCOPED_TRACE("seed " + std::to_string(seed) + " step " + std::to_string(step));
      check(world, decision);
      if (::testing::Test::HasFailure()) return;
      world.Act(decision);
    }
  }
}

TEST(AdmissionProperty, UnderEnforceNothingOpensWithoutAPassForThePresentBootAndFingerprint) {
  int opened = 0;
  Live([&](World& world, const Decision& decision) {
    if (!world.policy.enforce) return;
    EXPECT_EQ(decision.shut, decision.open.empty());
    for (const DeviceId& device : decision.open) {
      ++opened;
      EXPECT_EQ(decision.memory.validated_boot_id, world.Situation().first);
      EXPECT_EQ(decision.memory.validated_fingerprint, world.Situation().second);
      EXPECT_TRUE(world.Passed(device));
      EXPECT_FALSE(decision.memory.failed_devices.contains(device));
    }
  });
  EXPECT_GT(opened, kHistories);
}

TEST(AdmissionProperty, OnlyHealthyDevicesOfAReportingAgentAreEverOpen) {
  Live([](World& world, const Decision& decision) {
    if (!decision.open.empty()) {
      EXPECT_TRUE(world.facts.node_exists && !world.facts.hold);
      EXPECT_LE(world.now - world.facts.report->received, world.policy.stale_after);
    }
    for (const DeviceId& device : decision.open) {
      EXPECT_TRUE(std::any_of(
          world.facts.report->devices.begin(), world.facts.report->devices.end(),
          [&](const auto& d) { return d.id == device && d.health == DeviceHealth::kHealthy; }));
    }
    EXPECT_TRUE(world.policy.enforce || !decision.shut);
  });
}

TEST(AdmissionProperty, DecidingAgainChangesNothing) {
  Live([](World& world, const Decision& decision) {
    const Decision again = Decide(world.facts, decision.memory, world.policy, world.now);
    EXPECT_EQ(again.memory, decision.memory);
    EXPECT_EQ(std::tie(again.phase, again.reason, again.message, again.shut, again.start_run,
                       again.end_run, again.open, again.wake),
              std::tie(decision.phase, decision.reason, decision.message, decision.shut,
                       decision.start_run, decision.end_run, decision.open, decision.wake));
  });
}

TEST(AdmissionProperty, TheOrderOfDevicesAndVerdictsDoesNotMatter) {
  Live([](World& world, const Decision& decision) {
    Facts shuffled = world.facts;
    std::mt19937_64 random(world.now.ms);
    std::shuffle(shuffled.report->devices.begin(), shuffled.report->devices.end(), random);
    if (shuffled.run) {
      std::shuffle(shuffled.run->verdicts.begin(), shuffled.run->verdicts.end(), random);
    }
    const Decision other = Decide(shuffled, world.memory, world.policy, world.now);
    EXPECT_EQ(other.memory, decision.memory);
    EXPECT_EQ(std::tie(other.phase, other.reason, other.open),
              std::tie(decision.phase, decision.reason, decision.open));
  });
}

TEST(AdmissionProperty, EveryDecisionSaysWhyAndWakesLater) {
  std::set<std::string> reasons;
  Live([&](World& world, const Decision& decision) {
    reasons.insert(decision.reason);
    EXPECT_FALSE(decision.reason.empty() || decision.message.empty());
    EXPECT_GT(decision.wake.value_or(world.now + Millis{1}), world.now);
    EXPECT_FALSE(decision.start_run && world.facts.pod);
  });
  for (const char* reason :
       {"NotValidated", "Rebooted", "FingerprintChanged", "Expired", "Revalidating", "Passed",
        "DeviceUnhealthy", "HealthUnknown", "CheckFailed", "RunInconclusive", "RetriesExhausted",
        "AgentSilent", "NodeGone", "Held"}) {
    EXPECT_TRUE(reasons.contains(reason)) << reason;
  }
}

TEST(AdmissionProperty, AFailedDeviceStaysFailedUntilARunPassesIt) {
  int cleared = 0;
  Live([&](World& world, const Decision& decision) {
    for (const DeviceId& device : world.memory.failed_devices) {
      if (decision.memory.failed_devices.contains(device)) continue;
      ++cleared;
      ASSERT_TRUE(world.facts.run);
      EXPECT_TRUE(world.Passed(device));
    }
  });
  EXPECT_GT(cleared, 10);
}

}  // namespace
}  // namespace bimetal::core::admission
