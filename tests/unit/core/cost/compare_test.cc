#include "core/cost/compare.h"

#include <limits>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace bimetal::core::cost {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Side SideOf(std::vector<std::int64_t> costs, std::int64_t units = 1'000'000) {
  Side side{.key = {.weights_digest = "sha256:1",
                    .weight_format = "bf16",
                    .activation_format = "bf16",
                    .cache_format = "bf16",
                    .length_mix = "1024/256",
                    .unit = "output tokens",
                    .first_token_p99_ms = 2000,
                    .inter_token_p99_ms = 50},
            .quality_passed = true,
            .warmup_excluded = true,
            .engine_version = "0.12",
            .runs = {}};
  for (const std::int64_t cost : costs) side.runs.push_back({{cost}, units});
  return side;
}

TEST(CompareTest, SaysCheaperOnlyWhereTheWholeIntervalIsBelowOne) {
  const auto result = Compare(SideOf({800, 810, 790}), SideOf({1000, 1010, 990}), 1);
  EXPECT_EQ(result.verdict, Verdict::kCheaper);
  EXPECT_EQ(result.ratio, 800'000);
  EXPECT_LE(result.low, result.ratio);
  EXPECT_GE(result.high, result.ratio);
  EXPECT_GE(result.low, 782'000);   // 790 / 1010
  EXPECT_LE(result.high, 818'500);  // 810 / 990
  EXPECT_EQ(Compare(SideOf({1000, 1010, 990}), SideOf({800, 810, 790}), 1).verdict,
            Verdict::kDearer);
}

TEST(CompareTest, ShowsNoDifferenceWhereTheIntervalHoldsOne) {
  const auto result = Compare(SideOf({800, 1200, 950}), SideOf({1000, 900, 1050}), 1);
  EXPECT_EQ(result.verdict, Verdict::kNoDifference);
  EXPECT_LT(result.low, 1'000'000);
  EXPECT_GT(result.high, 1'000'000);
  EXPECT_EQ(Compare(SideOf({5, 5, 5}), SideOf({5, 5, 5}), 1).verdict, Verdict::kNoDifference);
}

TEST(CompareTest, RunsWithoutSpreadHaveAnIntervalOfOnePoint) {
  const auto result = Compare(SideOf({9, 9, 9}), SideOf({10, 10, 10}), 1);
  EXPECT_EQ(result.low, 900'000);
  EXPECT_EQ(result.high, 900'000);
}

TEST(CompareTest, TheSameSeedGivesTheSameAnswer) {
  const Side a = SideOf({800, 900, 850, 700}), b = SideOf({1000, 900, 1050});
  const auto one = Compare(a, b, 42), two = Compare(a, b, 42);
  EXPECT_EQ(one.low, two.low);
  EXPECT_EQ(one.high, two.high);
}

TEST(CompareTest, RefusesConditionsThatDifferAndNamesThem) {
  const Side good = SideOf({8, 8, 8});
  const auto refusals = [&](auto spoil) {
    Side other = good;
    spoil(other);
    const auto result = Compare(good, other, 1);
    EXPECT_EQ(result.verdict, Verdict::kRefused);
    EXPECT_EQ(result.ratio, 0);
    return result.refusals;
  };
  EXPECT_THAT(Compare(good, good, 1).refusals, IsEmpty());
  EXPECT_THAT(refusals([](Side& s) { s.key.weights_digest = "sha256:2"; }),
              ElementsAre(HasSubstr("weights digest differs (sha256:1, sha256:2)")));
  EXPECT_THAT(refusals([](Side& s) { s.key.weight_format = "fp8_e4m3fnuz"; }),
              ElementsAre(HasSubstr("format of weights differs")));
  EXPECT_THAT(refusals([](Side& s) { s.key.activation_format = "fp8"; }),
              ElementsAre(HasSubstr("format of activations")));
  EXPECT_THAT(refusals([](Side& s) { s.key.cache_format = ""; }),
              ElementsAre(HasSubstr("format of the cache")));
  EXPECT_THAT(refusals([](Side& s) { s.key.length_mix = "128/128"; }),
              ElementsAre(HasSubstr("mix of lengths")));
  EXPECT_THAT(refusals([](Side& s) { s.key.unit = "requests"; }),
              ElementsAre(HasSubstr("unit of work")));
  EXPECT_THAT(refusals([](Side& s) { s.key.first_token_p99_ms = 1; }),
              ElementsAre(HasSubstr("p99 to the first token differs (2000ms, 1ms)")));
  EXPECT_THAT(refusals([](Side& s) { s.key.inter_token_p99_ms = 1; }),
              ElementsAre(HasSubstr("p99 between tokens")));
  EXPECT_THAT(refusals([](Side& s) { s.quality_passed = false; }),
              ElementsAre(HasSubstr("second side: quality did not pass")));
  EXPECT_THAT(refusals([](Side& s) { s.warmup_excluded = false; }),
              ElementsAre(HasSubstr("warm-up")));
  EXPECT_THAT(refusals([](Side& s) { s.engine_version.clear(); }),
              ElementsAre(HasSubstr("engine's version")));
  EXPECT_THAT(refusals([](Side& s) { s.runs.pop_back(); }),
              ElementsAre(HasSubstr("2 runs; measure at least 3")));
  EXPECT_THAT(refusals([](Side& s) { s.runs[1].units = 0; }), ElementsAre(HasSubstr("no units")));
}

TEST(CompareTest, RefusesConditionsThatNobodyRecorded) {
  Side side = SideOf({8, 8, 8});
  side.key.weights_digest.clear();
  EXPECT_THAT(Compare(side, side, 1).refusals, Contains(HasSubstr("weights digest is not known")));
}

TEST(CompareTest, EnginesMayDifferForTheyMust) {
  Side other = SideOf({8, 8, 8});
  other.engine_version = "0.12-rocm";
  EXPECT_THAT(Compare(SideOf({8, 8, 8}), other, 1).refusals, IsEmpty());
}

TEST(CompareTest, StandsTheLargestAmounts) {
  constexpr auto kMax = std::numeric_limits<std::int64_t>::max();
  const auto result =
      Compare(SideOf({kMax, kMax, kMax}, kMax), SideOf({kMax, kMax, kMax}, kMax), 1);
  EXPECT_EQ(result.ratio, 1'000'000);
}

// Where both sides are drawn from one distribution, a difference is shown seldom. A bootstrap of
// few runs is known to be narrow: with ten runs a side it errs in about 8 of 100, not 5.
TEST(CompareProperty, EqualSidesAreSeldomCalledDifferent) {
  std::mt19937_64 random(12);
  std::normal_distribution<double> noise(1'000'000, 50'000);
  int called = 0;
  constexpr int kRounds = 400;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<std::int64_t> a, b;
    for (int i = 0; i < 10; ++i) {
      a.push_back(static_cast<std::int64_t>(noise(random)));
      b.push_back(static_cast<std::int64_t>(noise(random)));
    }
    const auto result = Compare(SideOf(a), SideOf(b), static_cast<std::uint64_t>(round), 400);
    if (result.verdict != Verdict::kNoDifference) ++called;
  }
  EXPECT_LT(called, kRounds * 14 / 100);
}

}  // namespace
}  // namespace bimetal::core::cost
