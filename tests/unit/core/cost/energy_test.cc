#include "core/cost/energy.h"

#include <cmath>
#include <functional>
#include <limits>
#include <numbers>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/model/saturate.h"

namespace bimetal::core::cost {
namespace {

constexpr EnergyLimits kLimits{.power_limit_mw = 700'000, .idle_floor_mw = 70'000};

EnergySample At(std::int64_t ms, std::optional<std::int64_t> counter_mj,
                std::optional<std::int64_t> power_mw = std::nullopt, std::string epoch = "boot-1") {
  return {.monotonic = Millis{ms},
          .wall = TimePoint{1'000'000 + ms},
          .epoch = std::move(epoch),
          .counter_mj = counter_mj,
          .power_mw = power_mw};
}

EnergyState Fold(const std::vector<EnergySample>& samples, const EnergyLimits& limits = kLimits) {
  EnergyState state;
  for (const auto& sample : samples) Take(state, sample, limits);
  return state;
}

std::int64_t Count(const EnergyState& state, EnergyAnomaly anomaly) {
  return state.anomalies[static_cast<std::size_t>(anomaly)];
}

std::int64_t AllAnomalies(const EnergyState& state) {
  std::int64_t sum = 0;
  for (const auto count : state.anomalies) sum += count;
  return sum;
}

// Power read every `step_ms` from watts as a function of seconds.
EnergyState Sampled(const std::function<double(double)>& watts, std::int64_t until_ms,
                    std::int64_t step_ms) {
  std::vector<EnergySample> samples;
  for (std::int64_t ms = 0; ms <= until_ms; ms += step_ms) {
    const double w = watts(static_cast<double>(ms) / 1000);
    samples.push_back(At(ms, std::nullopt, std::llround(w * 1000)));
  }
  return Fold(samples);
}

TEST(EnergyTest, FiveHundredWattsForAnHourAre1800000JoulesByBothWays) {
  std::vector<EnergySample> counted, powered;
  for (std::int64_t s = 0; s <= 3600; ++s) {
    counted.push_back(At(s * 1000, 7'000 + s * 500'000, 500'000));
    powered.push_back(At(s * 1000, std::nullopt, 500'000));
  }
  EXPECT_EQ(Fold(counted).measured_mj, 1'800'000'000);
  EXPECT_EQ(Fold(powered).integrated_mj, 1'800'000'000);
  EXPECT_EQ(AllAnomalies(Fold(counted)) + AllAnomalies(Fold(powered)), 0);
}

TEST(EnergyTest, ARampFrom100To700WattsOver600SecondsIs240000JoulesExactly) {
  const auto ramp = [](double s) { return 100 + s; };
  EXPECT_EQ(Sampled(ramp, 600'000, 1000).integrated_mj, 240'000'000);
  EXPECT_EQ(Sampled(ramp, 600'000, 1500).integrated_mj, 240'000'000);
}

TEST(EnergyTest, StepsOfOneMillisecondLoseNothingToRounding) {
  std::vector<EnergySample> samples;
  for (std::int64_t ms = 0; ms <= 10'000; ++ms) samples.push_back(At(ms, std::nullopt, 333));
  EXPECT_EQ(Fold(samples).integrated_mj, 3'330);
}

TEST(EnergyTest, ASineWhosePeriodIsNoMultipleOfTheStepIsWithinTwoTenThousandths) {
  const double pi = std::numbers::pi;
  const double period = 37.3, seconds = 600;
  const auto sine = [&](double s) { return 400 + 200 * std::sin(2 * pi * s / period); };
  const double exact =
      400 * seconds + 200 * period / (2 * pi) * (1 - std::cos(2 * pi * seconds / period));
  const double got = static_cast<double>(Sampled(sine, 600'000, 1000).integrated_mj) / 1000;
  EXPECT_NEAR(got, exact, exact * 0.0002);
}

TEST(EnergyTest, ASquareWaveOfIncommensuratePeriodIsWithinOneStepPerEdge) {
  // Half of each 7.3 s at 600 W, half at 100 W. The trapezoid is wrong by half a step at each edge
  // at most: 250 J an edge.
  const double period = 7.3;
  const auto square = [&](double s) { return std::fmod(s, period) < period / 2 ? 600.0 : 100.0; };
  const double seconds = 730;
  const double exact = seconds * 350;
  const double edges = seconds / period * 2;
  const double got = static_cast<double>(Sampled(square, 730'000, 1000).integrated_mj) / 1000;
  EXPECT_NEAR(got, exact, edges * 250);
  EXPECT_NEAR(got, exact, exact * 0.02);  // the errors are of both signs
}

TEST(EnergyTest, InstantsOfAFastLoadAliasWhichIsWhyTheCounterComesFirst) {
  // On for a quarter of each half second, read once a second, always while it is on.
  const auto fast = [](double s) { return std::fmod(s, 0.5) < 0.125 ? 400.0 : 0.0; };
  const EnergyState aliased = Sampled(fast, 60'000, 1000);
  EXPECT_EQ(aliased.integrated_mj, 24'000'000);  // the truth is 6,000 J
  std::vector<EnergySample> counted;
  for (std::int64_t s = 0; s <= 60; ++s) counted.push_back(At(s * 1000, s * 100'000, 400'000));
  EXPECT_EQ(Fold(counted).Total(), 6'000'000);
}

TEST(EnergyTest, AStepBackwardCostsOneStepNotTheCounter) {
  // amdsmi: -213 J in one second on a counter of 1 GJ, under a load of 300 W.
  std::vector<EnergySample> samples;
  std::int64_t counter = 1'000'000'000'000;
  for (std::int64_t s = 0; s <= 100; ++s) {
    samples.push_back(At(s * 1000, counter, 300'000));
    counter += s == 49 ? -213'000 : 300'000;
  }
  const EnergyState state = Fold(samples);
  EXPECT_EQ(Count(state, EnergyAnomaly::kBackward), 1);
  EXPECT_EQ(AllAnomalies(state), 1);
  EXPECT_EQ(state.Total(), 30'000'000);
  EXPECT_EQ(state.integrated_mj, 300'000);
}

TEST(EnergyTest, ADriverReloadAddsTheNewValueAndCountsTheTimeBetweenAsAGap) {
  const EnergyState state = Fold({At(0, 5'000'000, 300'000), At(1000, 5'300'000, 300'000),
                                  At(4000, 200'000, 300'000, "boot-1/driver-2"),
                                  At(5000, 500'000, 300'000, "boot-1/driver-2")});
  EXPECT_EQ(state.measured_mj, 300'000 + 200'000 + 300'000);
  EXPECT_EQ(state.gap_ms, 3000);
  EXPECT_EQ(Count(state, EnergyAnomaly::kGap), 1);
}

TEST(EnergyTest, ARebootStartsTheNodesClockAgain) {
  EnergySample after = At(2000, 400'000, 300'000, "boot-2");
  after.wall = TimePoint{1'000'000 + 60'000 + 2000};
  const EnergyState state = Fold({At(50'000, 9'000'000), At(60'000, 9'100'000), after});
  EXPECT_EQ(state.measured_mj, 100'000 + 400'000);
  EXPECT_EQ(state.gap_ms, 2000);
}

TEST(EnergyTest, ASmallerValueWithoutEvidenceOfAResetIsNoReset) {
  const EnergyState state = Fold({At(0, 5'000'000, 300'000), At(1000, 100, 300'000)});
  EXPECT_EQ(Count(state, EnergyAnomaly::kBackward), 1);
  EXPECT_EQ(state.Total(), 300'000);
}

TEST(EnergyTest, ACounterThatOutlivesItsDriverIsNotAddedAgain) {
  const EnergyState state =
      Fold({At(0, 900'000'000, 300'000), At(2000, 900'600'000, 300'000, "boot-1/driver-2")});
  EXPECT_EQ(state.measured_mj, 600'000);
  EXPECT_EQ(AllAnomalies(state), 0);
}

TEST(EnergyTest, AValueNoDeviceCanHaveDrawnSinceItsResetIsNotBelieved) {
  const EnergyState state =
      Fold({At(0, 900'000'000, 300'000), At(2000, 800'000'000, 300'000, "boot-2")});
  EXPECT_EQ(Count(state, EnergyAnomaly::kJump), 1);
  EXPECT_EQ(state.integrated_mj, 600'000);
  EXPECT_EQ(state.measured_mj, 0);
}

TEST(EnergyTest, AStuckCounterIsReplacedByPower) {
  std::vector<EnergySample> samples;
  for (std::int64_t s = 0; s <= 10; ++s) samples.push_back(At(s * 1000, 42, 200'000));
  const EnergyState state = Fold(samples);
  EXPECT_EQ(Count(state, EnergyAnomaly::kStuck), 10);
  EXPECT_EQ(state.integrated_mj, 2'000'000);
}

TEST(EnergyTest, ACounterMayStandStillBetweenReadingsThatAreClose) {
  const EnergyState state = Fold({At(0, 42, 200'000), At(50, 42, 200'000), At(100, 20'042)});
  EXPECT_EQ(AllAnomalies(state), 0);
  EXPECT_EQ(state.measured_mj, 20'000);
}

TEST(EnergyTest, NumbersThatMeanNotAvailableAreDroppedAndCounted) {
  for (const std::int64_t sentinel :
       {std::int64_t{9223372036854775794}, std::int64_t{9223372036854775792}, std::int64_t{-1},
        std::int64_t{140737488355328}, std::numeric_limits<std::int64_t>::max()}) {
    const EnergyState state =
        Fold({At(0, 1000, 100'000), At(1000, sentinel, 100'000), At(2000, 201'000, 100'000),
              At(3000, 301'000, sentinel), At(4000, 401'000, 100'000)});
    EXPECT_EQ(Count(state, EnergyAnomaly::kSentinel), 2) << sentinel;
    EXPECT_EQ(AllAnomalies(state), 2) << sentinel;
    EXPECT_EQ(state.Total(), 400'000) << sentinel;
    EXPECT_EQ(state.integrated_mj, 200'000) << sentinel;
  }
}

TEST(EnergyTest, TheBoundOfAStepIsTheLimitOverTheTimePlusAFifthOfASecondTimesSixFifths) {
  // 700 W x 1.2 s x 1.2 = 1,008 J.
  EXPECT_EQ(Fold({At(0, 0, 100'000), At(1000, 1'008'000, 100'000)}).measured_mj, 1'008'000);
  const EnergyState over = Fold({At(0, 0, 100'000), At(1000, 1'008'001, 100'000)});
  EXPECT_EQ(Count(over, EnergyAnomaly::kJump), 1);
  EXPECT_EQ(over.integrated_mj, 100'000);
}

TEST(EnergyTest, TheCounterSpansMissedReadingsExactly) {
  const EnergyState state = Fold({At(0, 0, 100'000), At(3'600'000, 1'234'567'890, 100'000)});
  EXPECT_EQ(state.measured_mj, 1'234'567'890);
  EXPECT_EQ(state.gap_ms, 0);
}

TEST(EnergyTest, PowerOverMoreThanTheGapLimitIsTheIdleFloorAndSaysSo) {
  EXPECT_EQ(Fold({At(0, {}, 500'000), At(3000, {}, 500'000)}).integrated_mj, 1'500'000);
  const EnergyState state = Fold({At(0, {}, 500'000), At(3001, {}, 500'000)});
  EXPECT_EQ(state.estimated_mj, 210'070);  // 70 W
  EXPECT_EQ(state.gap_ms, 3001);
  EXPECT_EQ(Count(state, EnergyAnomaly::kGap), 1);
}

TEST(EnergyTest, ADeviceThatTellsNothingIsEstimated) {
  const EnergyState state = Fold({At(0, {}), At(1000, {}), At(2000, {})});
  EXPECT_EQ(state.estimated_mj, 140'000);
  EXPECT_EQ(state.gap_ms, 2000);
}

TEST(EnergyTest, ReadingsTwiceOrLateChangeNothing) {
  const auto once = Fold({At(0, 0), At(1000, 1000), At(2000, 3000)});
  const auto twice =
      Fold({At(0, 0), At(1000, 1000), At(1000, 1000), At(0, 0), At(2000, 3000), At(1000, 1000)});
  EXPECT_EQ(twice.Total(), once.Total());
  EXPECT_EQ(AllAnomalies(twice), 0);
}

TEST(EnergyTest, SpansFollowOneAnotherAlsoWhereTheWallClockIsSetBack) {
  EnergyState state;
  EXPECT_FALSE(Take(state, At(0, 0), kLimits));
  EXPECT_EQ(Take(state, At(1000, 500), kLimits).value(),
            (EnergySpan{TimePoint{1'000'000}, TimePoint{1'001'000}, 500}));
  EnergySample back = At(2000, 900);
  back.wall = TimePoint{5};
  EXPECT_EQ(Take(state, back, kLimits).value(),
            (EnergySpan{TimePoint{1'001'000}, TimePoint{1'001'000}, 400}));
  EXPECT_EQ(Take(state, At(3000, 1000), kLimits).value(),
            (EnergySpan{TimePoint{1'001'000}, TimePoint{1'003'000}, 100}));
}

TEST(EnergyTest, ASumIsAsGoodAsItsWorstPart) {
  EXPECT_EQ(Worse(EnergySource::kMeasured, EnergySource::kIntegrated), EnergySource::kIntegrated);
  EXPECT_EQ(Worse(EnergySource::kEstimated, EnergySource::kIntegrated), EnergySource::kEstimated);
  EXPECT_EQ(EnergySourceName(EnergySource::kEstimated), "estimated");
  EXPECT_EQ(EnergyAnomalyName(EnergyAnomaly::kBackward), "backward");
}

TEST(EnergyProperty, HostileReadingsNeverTakeBackAndAlwaysAddUp) {
  std::mt19937_64 random(11);
  const auto any = [&]() -> std::optional<std::int64_t> {
    switch (random() % 4) {
      case 0:
        return std::nullopt;
      case 1:
        return static_cast<std::int64_t>(random());
      default:
        return static_cast<std::int64_t>(random() % 2'000'000);
    }
  };
  for (int round = 0; round < 2000; ++round) {
    EnergyState state;
    std::int64_t sum = 0;
    for (int i = 0; i < 30; ++i) {
      EnergySample sample = At(static_cast<std::int64_t>(random() % 100'000), any(), any(),
                               random() % 8 == 0 ? "b" : "a");
      if (random() % 20 == 0) sample.monotonic.v = static_cast<std::int64_t>(random());
      if (random() % 20 == 0) sample.wall.ms = static_cast<std::int64_t>(random());
      const auto span = Take(state, sample, kLimits);
      if (!span) continue;
      ASSERT_GE(span->millijoules, 0);
      ASSERT_LE(span->begin, span->end);
      sum = SaturatingAdd(sum, span->millijoules);
    }
    ASSERT_EQ(state.Total(), sum) << round;
  }
}

}  // namespace
}  // namespace bimetal::core::cost
