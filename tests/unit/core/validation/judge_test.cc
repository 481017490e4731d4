#include "core/validation/judge.h"

#include <limits>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace bimetal::core::validation {
namespace {

using ::testing::HasSubstr;

class JudgeTest : public ::testing::Test {
 protected:
  JudgeTest() {
    DeviceFacts device;
    device.id = "GPU-1";
    device.model = "NVIDIA H100 80GB HBM3";
    device.pci_id = "10de:2330";
    device.link_generation = 5;
    device.link_width = 16;
    devices_.push_back(device);
  }

  api::Verdict& Add(const std::string& check, const std::string& verdict) {
    api::Verdict& added = *run_.add_verdicts();
    added.set_check(check);
    added.set_device("GPU-1");
    added.set_verdict(verdict);
    return added;
  }
  api::Verdict& AddRate(const std::string& check, double p5, const std::string& unit = "GB/s") {
    api::Verdict& added = Add(check, "NoProfile");
    added.set_unit(unit);
    auto* spread = added.mutable_distribution();
    spread->set_samples(20);
    spread->set_min(p5 * 0.99);
    spread->set_p5(p5);
    spread->set_median(p5 * 1.01);
    spread->set_max(p5 * 1.02);
    return added;
  }
  std::vector<Judged> All() const {
    return Judge(run_, devices_, {table_, overrides_, fleet_, percent_, ""});
  }
  Judged One() const {
    const auto all = All();
    EXPECT_EQ(all.size(), 1u);
    return all.at(0);
  }
  void Fleet(std::int64_t triad) {
    fleet_[KeyFor(devices_[0], "hbm-triad")] = {Milli{triad}, 24, 3};
  }

  const FloorTable table_ = FloorTable::BuiltIn();
  std::vector<DeviceFacts> devices_;
  std::vector<FloorOverride> overrides_;
  FleetMedians fleet_;
  int percent_ = 5;
  api::ValidationRun run_;
};

TEST_F(JudgeTest, TheFloorItselfPassesAndTheNextThousandthFails) {
  AddRate("hbm-triad", 2512.5);
  EXPECT_EQ(One().verdict, Verdict::kPass);
  run_.clear_verdicts();
  AddRate("hbm-triad", 2512.499);
  const Judged failed = One();
  EXPECT_EQ(failed.verdict, Verdict::kFail);
  EXPECT_THAT(failed.evidence, HasSubstr("2512.499 GB/s of 20 is below the floor 2512.5 GB/s"));
}

TEST_F(JudgeTest, TheBestRunDoesNotSaveALowPercentile) {
  api::Verdict& verdict = AddRate("hbm-triad", 2000);
  verdict.mutable_distribution()->set_median(3000);
  verdict.mutable_distribution()->set_max(3300);
  EXPECT_EQ(One().verdict, Verdict::kFail);
}

TEST_F(JudgeTest, BelowTheFleetIsDegraded) {
  Fleet(3'000'000);
  AddRate("hbm-triad", 2850);
  EXPECT_EQ(One().verdict, Verdict::kPass);
  run_.clear_verdicts();
  AddRate("hbm-triad", 2849.999);
  EXPECT_EQ(One().verdict, Verdict::kDegraded);
  EXPECT_THAT(One().evidence, HasSubstr("24 devices on 3 nodes"));
  percent_ = 10;
  EXPECT_EQ(One().verdict, Verdict::kPass);
}

TEST_F(JudgeTest, AFloorThatFailsIsMoreThanAFleetThatDegrades) {
  Fleet(3'000'000);
  AddRate("hbm-triad", 2000);
  EXPECT_EQ(One().verdict, Verdict::kFail);
}

TEST_F(JudgeTest, WithoutAFloorThereIsNoProfile) {
  AddRate("hbm-copy", 2800);
  EXPECT_EQ(One().verdict, Verdict::kNoProfile);
  EXPECT_THAT(One().evidence, HasSubstr("no floor is known for NVIDIA H100 80GB HBM3"));
}

TEST_F(JudgeTest, AnAdvisoryFloorIsShownAndNeverFails) {
  AddRate("gemm-rate-fp32", 1, "TFLOPS");
  EXPECT_EQ(One().verdict, Verdict::kNoProfile);
  EXPECT_THAT(One().evidence, HasSubstr("misses the advisory floor 29.3 TFLOPS"));
}

TEST_F(JudgeTest, AFloorOfTheProfileBinds) {
  overrides_.push_back({"10de:2330", "gemm-rate-fp32", Milli{40'000}, "measured"});
  AddRate("gemm-rate-fp32", 30, "TFLOPS");
  EXPECT_EQ(One().verdict, Verdict::kFail);
}

TEST_F(JudgeTest, ALatencyFailsAboveItsFloor) {
  overrides_.push_back({"10de:2330", "launch-latency", Milli{10'000}, "measured"});
  AddRate("launch-latency", 9, "us").set_value("9.15");
  EXPECT_EQ(One().verdict, Verdict::kPass);
  run_.clear_verdicts();
  AddRate("launch-latency", 10, "us").set_value("10.15");
  EXPECT_EQ(One().verdict, Verdict::kFail);
}

TEST_F(JudgeTest, FasterThanTheHardwareIsAWrongMeasurement) {
  AddRate("hbm-triad", 50'000);
  EXPECT_EQ(One().verdict, Verdict::kInconclusive);
  EXPECT_THAT(One().evidence, HasSubstr("more than the hardware can reach"));
}

TEST_F(JudgeTest, ARateThatCannotBeReadIsInconclusive) {
  AddRate("hbm-triad", 3000).mutable_distribution()->set_samples(19);
  AddRate("hbm-triad", std::numeric_limits<double>::quiet_NaN());
  AddRate("hbm-triad", std::numeric_limits<double>::infinity());
  AddRate("hbm-triad", -1);
  AddRate("hbm-triad", 3000).set_unit("furlongs");
  Add("hbm-triad", "Pass").set_value("3000");
  // A floor binds, and nothing was measured.
  Add("hbm-triad", "Pass");
  Add("hbm-triad", "NoProfile");
  for (const Judged& judged : All()) {
    EXPECT_EQ(judged.verdict, Verdict::kInconclusive) << judged.evidence;
    EXPECT_FALSE(judged.evidence.empty());
  }
}

TEST_F(JudgeTest, NothingToMeasureIsNoProfileWhereNothingIsOwed) {
  Add("peer-to-peer", "NoProfile");
  EXPECT_EQ(One().verdict, Verdict::kNoProfile);
}

TEST_F(JudgeTest, WhatTheProgramProvedStands) {
  AddRate("hbm-triad", 3000).set_verdict("Fail");
  AddRate("hbm-triad", 3000).set_verdict("Inconclusive");
  AddRate("hbm-triad", 3000).set_verdict("Degraded");
  Add("memory-pattern", "Fail").set_evidence("first mismatch");
  Add("memory-pattern", "Pass");
  const auto all = All();
  EXPECT_EQ(all[0].verdict, Verdict::kFail);
  EXPECT_EQ(all[1].verdict, Verdict::kInconclusive);
  EXPECT_EQ(all[2].verdict, Verdict::kDegraded);
  EXPECT_EQ(all[3].verdict, Verdict::kFail);
  EXPECT_EQ(all[3].evidence, "first mismatch");
  EXPECT_EQ(all[4].verdict, Verdict::kPass);
}

TEST_F(JudgeTest, UnknownWordsAndUnknownDevicesAreInconclusive) {
  Add("memory-pattern", "pass");
  Add("memory-pattern", "");
  Add("memory-pattern", "Pass").set_device("GPU-2");
  for (const Judged& judged : All()) {
    EXPECT_EQ(judged.verdict, Verdict::kInconclusive) << judged.evidence;
  }
}

TEST_F(JudgeTest, ACapabilityNeedsAPass) {
  Add("gemm-bf16", "Pass").set_capability("bf16");
  Add("gemm-fp8-ocp", "Fail").set_capability("fp8-ocp");
  Add("gemm-fp64", "Inconclusive").set_capability("fp64");
  Add("gemm-fp16", "NoProfile").set_capability("fp16");
  const auto all = All();
  EXPECT_EQ(all[0].capability, "bf16");
  EXPECT_EQ(all[1].capability, "");
  EXPECT_EQ(all[2].capability, "");
  EXPECT_EQ(all[3].capability, "");
}

TEST_F(JudgeTest, APartIsNotHeldAgainstTheWhole) {
  devices_[0].partition = "1g.10gb";
  AddRate("hbm-triad", 300);
  EXPECT_EQ(One().verdict, Verdict::kNoProfile);
  EXPECT_THAT(One().evidence, HasSubstr("in mode 1g.10gb"));
}

// Whatever numbers a program sends: the order and number of verdicts stay, nothing crashes, a Pass
// of a bound rate reaches its floor, and a Fail misses it.
TEST_F(JudgeTest, NoNumberTurnsIntoAPassByAccident) {
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    std::mt19937_64 random(seed);
    const auto number = [&] {
      switch (random() % 6) {
        case 0:
          return std::numeric_limits<double>::quiet_NaN();
        case 1:
          return -std::numeric_limits<double>::infinity();
        case 2:
          return 1e300;
        default:
          return static_cast<double>(random() % 6'000'000) / 1000.0;
      }
    };
    run_.clear_verdicts();
    api::Verdict& verdict = Add("hbm-triad", random() % 2 == 0 ? "Pass" : "NoProfile");
    verdict.set_unit(random() % 8 == 0 ? "MB/s" : "GB/s");
    auto* spread = verdict.mutable_distribution();
    spread->set_samples(static_cast<int>(random() % 40));
    spread->set_min(number());
    spread->set_p5(number());
    spread->set_median(number());
    spread->set_max(number());
    const Judged judged = One();
    if (judged.verdict == Verdict::kPass || judged.verdict == Verdict::kFail) {
      ASSERT_TRUE(judged.rate) << "seed " << seed;
      EXPECT_GE(spread->samples(), kMinSamples) << "seed " << seed;
      EXPECT_EQ(judged.verdict == Verdict::kPass, judged.rate->p5.v >= 2'512'500)
          << "seed " << seed;
    } else {
      EXPECT_EQ(judged.verdict, Verdict::kInconclusive) << "seed " << seed;
    }
  }
}

TEST_F(JudgeTest, ASummaryIsOverDevicesOfOneModel) {
  devices_.push_back(devices_[0]);
  devices_[1].id = "GPU-2";
  devices_.push_back(devices_[0]);
  devices_[2].id = "GPU-3";
  devices_[2].model = "NVIDIA L4";
  devices_[2].pci_id = "10de:27b8";
  AddRate("hbm-triad", 3000);
  AddRate("hbm-triad", 2900).set_device("GPU-2");
  AddRate("hbm-triad", 280).set_device("GPU-3");
  AddRate("hbm-triad", -1).set_device("GPU-3");
  const auto summaries = Summarize(All(), devices_, "565");
  ASSERT_EQ(summaries.size(), 2u);
  EXPECT_EQ(summaries[0].key.model, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(summaries[0].key.driver, "565");
  EXPECT_EQ(summaries[0].devices, 2);
  EXPECT_EQ(summaries[0].lowest.v, 2'900'000);
  EXPECT_EQ(summaries[0].median.v, 2'900'000);
  EXPECT_THAT(summaries[0].floor, HasSubstr("2512.5 GB/s (0.75"));
  EXPECT_EQ(summaries[1].key.model, "NVIDIA L4");
}

}  // namespace
}  // namespace bimetal::core::validation
