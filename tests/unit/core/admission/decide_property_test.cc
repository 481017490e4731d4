#include <algorithm>
#include <random>
#include <set>
#include <tuple>

#include <gtest/gtest.h>

#include "core/admission/decide.h"

namespace bimetal::core::admission {
namespace {

constexpr int kHistories = 80, kSteps = 60, kEvents = 24, kKinds = 16;

// A node with a life of its own: reboots, driver changes, faults, jobs, silent agents, lost pods,
// late and wrong results, breakers, restarts of the operator. It keeps the truth beside what Decide
// is told.
class World {
 public:
  explicit World(std::uint64_t seed) : random_(seed) {
    policy.enforce = !OneIn(8);
    policy.retries = Up(4);
    policy.by_device = OneIn(2);
    policy.quarantine_node = OneIn(4);
    policy.path_check = OneIn(2);
    if (OneIn(3)) policy.expires_after = Minutes(2 + Up(5));
    if (OneIn(4)) policy.expect.partition = "off";
    facts.report = Report{.received = now,
                          .boot_id = "boot-0",
                          .fingerprint = "fp-0",
                          .devices = {{DeviceId{"d0"}, DeviceHealth::kHealthy},
                                      {DeviceId{"d1"}, DeviceHealth::kHealthy},
                                      {DeviceId{"d2"}, DeviceHealth::kHealthy}}};
  }

  void Happen(int event) {
    now = now + Millis{OneIn(4) ? Up(120'000) : Up(4'000)};
    if (!OneIn(6)) facts.report->received = now;
    auto& device = facts.report->devices[static_cast<std::size_t>(Up(3))];
    switch (event) {
      case 0:
        facts.report->boot_id = "boot-" + std::to_string(Up(3));
        break;
      case 1:
        facts.report->fingerprint = "fp-" + std::to_string(Up(3));
        break;
      case 2:
        device.health = static_cast<DeviceHealth>(Up(3));
        break;
      case 3:
        for (auto& d : facts.report->devices) d.health = DeviceHealth::kHealthy;
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
      case 8:  // the operator restarts; now and then the situation is lost, too
        if (OneIn(2)) memory.seen_boot_id.clear(), memory.seen_fingerprint.clear();
        memory.pod_ended_at.reset();
        break;
      case 9:
        device.in_use = OneIn(3) ? std::nullopt : std::optional(OneIn(2));
        break;
      case 10:
        for (auto& d : facts.report->devices) d.in_use = false;
        break;
      case 11:
        facts.report->faults.clear();
        if (OneIn(2)) AddFault(device.id);
        break;
      case 12:
        facts.no_slot = OneIn(2) ? "no slot" : "";
        facts.breaker = OneIn(3) ? "breaker" : "";
        facts.breaker_planned = OneIn(2) || !facts.breaker.empty() ? "breaker" : "";
        break;
      case 13:
        device.partition = OneIn(2) ? "" : "SPX/NPS1";
        break;
      case 14:  // a device is exchanged for a new one of the same kind
        device.id = DeviceId{"d" + std::to_string(Up(3)) + std::string(Up(2), 'x')};
        Distinct();
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
      facts.pod = RunPod{.id = "pod-" + std::to_string(++pods_),
                         .created = now,
                         .ended = false,
                         .trouble = "",
                         .kind = decision.run_kind,
                         .devices = {decision.run_devices.begin(), decision.run_devices.end()}};
      made_under_ = Situation();
      since_.clear();
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
  // Devices that the pod of the day said Pass of, by the boot and fingerprint it was made under; a
  // Fail of the device, or a fault that wants it proven, takes them away.
  std::set<std::tuple<std::string, std::string, DeviceId>> passes;
  std::set<std::pair<std::string, std::string>> ways;  // proven by a path pod

  int Up(int n) { return static_cast<int>(random_() % static_cast<std::uint64_t>(n)); }
  bool OneIn(int n) { return Up(n) == 0; }

 private:
  void Distinct() {
    auto& devices = facts.report->devices;
    std::set<DeviceId> seen;
    for (auto& d : devices) {
      while (!seen.insert(d.id).second) d.id.value += "y";
    }
    std::sort(devices.begin(), devices.end(),
              [](const auto& a, const auto& b) { return a.id < b.id; });
  }

  void Forget(const DeviceId& device) {
    std::erase_if(passes, [&](const auto& pass) { return std::get<2>(pass) == device; });
    since_.insert(device);  // nor does the run under way say anything of it
  }

  void AddFault(const DeviceId& device) {
    Fault fault{.code = "xid",
                .device = device,
                .effect = Effect::kCordon,
                .event = "",
                .evidence = "line"};
    if (OneIn(3)) fault.effect = Effect::kRevalidate;
    if (OneIn(2)) fault.event = "e" + std::to_string(++faults_);
    if (OneIn(6)) fault.device = DeviceId{};
    if (fault.effect == Effect::kCordon) {
      for (const auto& d : facts.report->devices) {
        if (fault.device.value.empty() || fault.device == d.id) Forget(d.id);
      }
    }
    facts.report->faults.push_back(fault);
  }

  void HandIn() {
    Run run{.id = OneIn(8) ? "pod-0" : facts.pod->id,
            .fingerprint = OneIn(10) ? "" : made_under_.second,
            .verdicts = {}};
    const bool counts =
        run.id == facts.pod->id && !run.fingerprint.empty() && made_under_ == Situation();
    bool all = true;
    for (const auto& device : facts.report->devices) {
      if (!facts.pod->devices.contains(device.id) || OneIn(12)) continue;
      const Verdict verdict = OneIn(9)    ? static_cast<Verdict>(Up(5))
                              : OneIn(14) ? Verdict::kFail
                                          : Verdict::kPass;
      run.verdicts.push_back(CheckVerdict{"memory", device.id, verdict, ""});
      const bool bad = verdict == Verdict::kFail || verdict == Verdict::kInconclusive;
      all = all && !bad;
      if (facts.pod->kind == RunKind::kPath) continue;
      if (!bad && counts && !since_.contains(device.id)) {
        passes.insert({made_under_.first, made_under_.second, device.id});
      }
    }
    if (facts.pod->kind == RunKind::kPath && all && counts) ways.insert(made_under_);
    facts.run = run;
  }

  std::mt19937_64 random_;
  int pods_ = 0, faults_ = 0;
  std::pair<std::string, std::string> made_under_;
  std::set<DeviceId> since_;
};

template <class Check>
void Live(Check check) {
  for (std::uint64_t seed = 0; seed < kHistories; ++seed) {
    World world(seed);
    for (int step = 0; step < kSteps; ++step) {
      world.Happen(world.Up(kEvents));
      const Decision decision = Decide(world.facts, world.memory, world.policy, world.now);
      SCOPED_TRACE("seed " + std::to_string(seed) + " step " + std::to_string(step));
      check(world, decision);
      if (::testing::Test::HasFailure()) return;
      world.Act(decision);
    }
  }
}

bool InUse(const World& world) {
  return std::any_of(world.facts.report->devices.begin(), world.facts.report->devices.end(),
                     [](const auto& d) { return d.in_use.value_or(false); });
}

TEST(AdmissionProperty, UnderEnforceNothingOpensWithoutAPassForThePresentBootAndFingerprint) {
  int opened = 0, partly = 0;
  Live([&](World& world, const Decision& decision) {
    if (!world.policy.enforce) return;
    EXPECT_EQ(decision.shut, decision.open.empty());
    for (const DeviceId& device : decision.offer) {
      ++opened;
      EXPECT_TRUE(world.Passed(device)) << device.value;
      const DeviceRecord& record = decision.memory.records.at(device);
      EXPECT_EQ(std::pair(record.boot_id, record.fingerprint), world.Situation());
      EXPECT_EQ(record.failed_check + record.cordoned, "");
    }
    if (decision.open.empty()) return;
    EXPECT_EQ(decision.offer, decision.open);
    EXPECT_TRUE(!world.policy.path_check || InUse(world) || world.ways.contains(world.Situation()));
    if (decision.open.size() < 3) ++partly;
    bool failed = false;
    for (const auto& d : world.facts.report->devices) {
      const auto it = decision.memory.records.find(d.id);
      failed = failed || (it != decision.memory.records.end() && !it->second.failed_check.empty());
    }
    EXPECT_FALSE(failed && (world.policy.quarantine_node || !world.policy.by_device));
  });
  EXPECT_GT(opened, kHistories);
  EXPECT_GT(partly, kHistories / 2);
}

TEST(AdmissionProperty, OnlyHealthyDevicesOfAReportingAgentAreEverOpen) {
  Live([](World& world, const Decision& decision) {
    if (!decision.offer.empty()) {
      EXPECT_TRUE(world.facts.node_exists && !world.facts.hold);
      EXPECT_LE(world.now - world.facts.report->received, world.policy.stale_after);
    }
    for (const DeviceId& device : decision.offer) {
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
                       again.run_devices, again.end_run, again.open, again.offer, again.wake),
              std::tie(decision.phase, decision.reason, decision.message, decision.shut,
                       decision.start_run, decision.run_devices, decision.end_run, decision.open,
                       decision.offer, decision.wake));
  });
}

TEST(AdmissionProperty, TheOrderOfDevicesVerdictsAndFaultsDoesNotMatter) {
  Live([](World& world, const Decision& decision) {
    Facts shuffled = world.facts;
    std::mt19937_64 random(world.now.ms);
    if (shuffled.run) {
      std::shuffle(shuffled.run->verdicts.begin(), shuffled.run->verdicts.end(), random);
    }
    const Decision other = Decide(shuffled, world.memory, world.policy, world.now);
    EXPECT_EQ(other.memory, decision.memory);
    EXPECT_EQ(std::tie(other.phase, other.reason, other.open),
              std::tie(decision.phase, decision.reason, decision.open));
  });
}

TEST(AdmissionProperty, ADeviceThatAPodHoldsIsNeverRun) {
  int runs = 0;
  Live([&](World& world, const Decision& decision) {
    if (!decision.start_run || decision.run_kind == RunKind::kPath) return;
    ++runs;
    EXPECT_FALSE(decision.run_devices.empty());
    EXPECT_TRUE(world.facts.no_slot.empty());
    for (const auto& d : world.facts.report->devices) {
      const bool run =
          std::binary_search(decision.run_devices.begin(), decision.run_devices.end(), d.id);
      EXPECT_FALSE(run && d.in_use.value_or(false));
      EXPECT_FALSE(run && std::binary_search(decision.open.begin(), decision.open.end(), d.id) &&
                   world.policy.enforce);
    }
  });
  EXPECT_GT(runs, kHistories);
}

const std::map<Phase, std::set<std::string>>& Documented() {
  static const std::map<Phase, std::set<std::string>> kReasons = {
      {Phase::kDiscovered, {"WaitingForReport", "NoDevices"}},
      {Phase::kValidating,
       {"NotValidated", "FingerprintChanged", "Rebooted", "Expired", "Revalidating", "FaultSeen",
        "ProfileChanged", "DevicesBusy", "RunQueued", "BreakerOpen", "ProvingPath", "Held"}},
      {Phase::kAdmitted,
       {"Passed", "PartlyOpen", "DeviceCordoned", "DeviceUnhealthy", "HealthUnknown", "Held"}},
      {Phase::kQuarantined, {"CheckFailed", "DeviceQuarantined", "Held"}},
      {Phase::kInconclusive,
       {"RunInconclusive", "RetriesExhausted", "PathFailed", "InventoryUnknown", "Held"}},
      {Phase::kLost, {"AgentSilent", "NodeGone"}},
  };
  return kReasons;
}

// A bad verdict says what clears it: a next try, a cause to remove, a person's word.
bool SaysTheWayBack(const std::string& message) {
  for (const char* word : {"next try at", "bimetal validate NODE", "validating again", "run again",
                           "opens when", "hold", "agent has", "not run again yet"}) {
    if (message.find(word) != std::string::npos) return true;
  }
  return false;
}

// Every state that the histories reach, met by every event.
TEST(AdmissionProperty, EveryStateAnswersEveryEventWithADocumentedReasonAndAWayBack) {
  std::map<std::pair<std::string, int>, int> pairs;
  std::set<std::string> reasons;
  Live([&](World& world, const Decision& decision) {
    reasons.insert(decision.reason);
    if (world.Up(3) != 0) return;  // a third of the steps is plenty
    for (int event = 0; event < kKinds; ++event) {
      World next = world;
      next.Act(decision);
      next.Happen(event);
      const Decision after = Decide(next.facts, next.memory, next.policy, next.now);
      ++pairs[{decision.reason, event}];
      EXPECT_TRUE(Documented().at(after.phase).contains(after.reason)) << after.reason;
      EXPECT_FALSE(after.message.empty());
      EXPECT_GT(after.wake.value_or(next.now + Millis{1}), next.now);
      EXPECT_FALSE(after.start_run && next.facts.pod);
      if (after.phase == Phase::kQuarantined || after.phase == Phase::kInconclusive) {
        EXPECT_TRUE(SaysTheWayBack(after.message)) << after.message;
      }
    }
  });
  for (const auto& [phase, documented] : Documented()) {
    for (const auto& reason : documented) {
      if (reason == "WaitingForReport" || reason == "NoDevices" || reason == "InventoryUnknown" ||
          reason == "ProfileChanged") {
        continue;  // the examples in decide_test.cc have them
      }
      EXPECT_TRUE(reasons.contains(reason)) << reason;
      for (int event = 0; event < kKinds; ++event) {
        EXPECT_GT((pairs[{reason, event}]), 0) << reason << " never met event " << event;
      }
    }
  }
}

TEST(AdmissionProperty, AFailedDeviceStaysFailedUntilARunPassesIt) {
  int cleared = 0;
  Live([&](World& world, const Decision& decision) {
    for (const auto& [device, record] : world.memory.records) {
      if (record.failed_check.empty()) continue;
      const auto it = decision.memory.records.find(device);
      ASSERT_NE(it, decision.memory.records.end());
      if (!it->second.failed_check.empty()) continue;
      ++cleared;
      ASSERT_TRUE(world.facts.run);
      EXPECT_EQ(it->second.passed_at->ms, world.now.ms - world.now.ms % 1000);
      EXPECT_TRUE(world.Passed(device) || !it->second.cordoned.empty());
    }
  });
  EXPECT_GT(cleared, 10);
}

TEST(AdmissionProperty, ARestartThatKeepsTheSituationChangesNothing) {
  Live([](World& world, const Decision& decision) {
    Memory restarted = world.memory;
    restarted.pod_ended_at.reset();
    const Decision other = Decide(world.facts, restarted, world.policy, world.now);
    if (!world.facts.pod || !world.facts.pod->ended) {
      EXPECT_EQ(other.memory, decision.memory);
      EXPECT_EQ(std::tie(other.phase, other.reason, other.open, other.start_run),
                std::tie(decision.phase, decision.reason, decision.open, decision.start_run));
    }
  });
}

}  // namespace
}  // namespace bimetal::core::admission
