#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "tests/bench/queue/benches.h"
#include "tests/bench/queue/fair.h"
#include "tests/bench/queue/line_sim.h"
#include "tests/bench/queue/python_random.h"
#include "tests/bench/queue/rounds_sim.h"
#include "tests/bench/queue/slices_sim.h"
#include "tests/bench/queue/trace.h"

// The yardsticks themselves: what a bench measures with must be right.
namespace bimetal::bench {
namespace {

TraceJob JobOf(double arrival, double work, int devices, std::vector<double> rate) {
  return TraceJob{
      .arrival = arrival, .work = work, .devices = devices, .rate = std::move(rate), .queue = "q"};
}

// A day of small and large jobs, more than the nodes can take at once.
std::vector<TraceJob> Crowd(std::uint32_t seed, int count) {
  PythonRandom random(seed);
  std::vector<TraceJob> jobs;
  for (int i = 0; i < count; ++i) {
    constexpr int kSizes[] = {1, 1, 1, 2, 4, 8, 16};
    jobs.push_back(JobOf(random.Uniform(0, 20'000), random.Uniform(60, 6000),
                         kSizes[random.Choice(7)], {1, random.Uniform(0.3, 2)}));
    jobs.back().queue = std::string(1, static_cast<char>('a' + random.Choice(3)));
  }
  std::sort(jobs.begin(), jobs.end(),
            [](const TraceJob& a, const TraceJob& b) { return a.arrival < b.arrival; });
  return jobs;
}

TEST(PythonRandomTest, GivesTheNumbersOfPython) {
  PythonRandom two(2);
  EXPECT_DOUBLE_EQ(two.Random(), 0.9560342718892494);
  EXPECT_DOUBLE_EQ(two.Uniform(3, 4), 3.9478274870593495);
  EXPECT_EQ(two.Choice(26), 1U);
  EXPECT_EQ(two.Choice(26), 2U);
  EXPECT_DOUBLE_EQ(two.Random(), 0.08487199515892163);
  PythonRandom five(5);
  for (int i = 0; i < 700; ++i) five.Random();
  EXPECT_DOUBLE_EQ(five.Random(), 0.9569111041768784);
  EXPECT_EQ(five.Choice(26), 11U);
}

TEST(ShareTimesTest, AVirtualClusterHasItsShareAndNoMore) {
  std::vector<TraceJob> jobs = {JobOf(0, 100, 4, {1, 1}), JobOf(0, 100, 4, {1, 1}),
                                JobOf(0, 100, 1, {1, 0.5})};
  jobs[2].queue = "other";
  // Four of the eight devices are theirs: two jobs of four share them. The other has room.
  const auto times = ShareTimes(jobs, 8);
  EXPECT_NEAR(times[0], 200, 1e-6);
  EXPECT_NEAR(times[1], 200, 1e-6);
  EXPECT_NEAR(times[2], 100 / 0.75, 1e-6);
}

TEST(FairProgramTest, ServesWhoeverIsFurthestBehind) {
  const auto fluid = [](std::size_t job, double elapsed) {
    return Fluid{.job = job,
                 .devices = 8,
                 .elapsed = elapsed,
                 .left = 100,
                 .share_time = 200,
                 .rate = {1, 0.01}};
  };
  FairProgram program(8);
  const auto where = program.Round({fluid(0, 0), fluid(1, 150)});
  EXPECT_EQ(where[1], 0U);
}

TEST(LeastMakespanTest, IsTheLongestJobOrTheWork) {
  EXPECT_DOUBLE_EQ(LeastMakespan({JobOf(0, 100, 1, {1, 2, 0})}, {4, 4, 4}), 50);
  EXPECT_NEAR(LeastMakespan(std::vector<TraceJob>(24, JobOf(0, 10, 1, {1, 1, 1})), {4, 4, 4}), 20,
              1e-6);
}

TEST(SimulateRoundsTest, NoScheduleIsShorterThanTheLeast) {
  std::vector<TraceJob> jobs = Crowd(3, 60);
  for (TraceJob& job : jobs) {
    job.arrival = 0;
    job.rate.push_back(0.25);
  }
  RoundsSetup setup;
  setup.objective = core::queue::order::Objective::kMakespan;
  setup.known = Known::kExactly;
  const double least = LeastMakespan(jobs, {36, 36, 36});
  const double makespan = SimulateRounds(jobs, setup).makespan;
  EXPECT_GE(makespan, least * 0.999);
  EXPECT_LE(makespan, least * 2 + setup.round);
}

// Devices in use at any time, of one class, as the starts and ends say.
std::int64_t Peak(const std::vector<TraceJob>& jobs, const LineResult& result) {
  std::map<double, std::int64_t> change;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    change[result.start[i]] += jobs[i].devices;
    change[result.finish[i]] -= jobs[i].devices;
  }
  std::int64_t now = 0, peak = 0;
  for (const auto& [time, devices] : change) peak = std::max(peak, now += devices);
  return peak;
}

TEST(SimulateLineTest, EveryJobRunsAndNoMoreThanThereIs) {
  for (std::uint32_t seed = 0; seed < 4; ++seed) {
    const auto jobs = Crowd(seed, 150);
    for (const bool exact : {false, true}) {
      const LineResult result = SimulateLine(jobs, {.nodes = 2, .exact = exact});
      for (std::size_t i = 0; i < jobs.size(); ++i) {
        EXPECT_GE(result.start[i], jobs[i].arrival) << "seed " << seed;
        EXPECT_GT(result.finish[i], result.start[i]) << "seed " << seed;
      }
      EXPECT_LE(Peak(jobs, result), 32) << "seed " << seed;
      EXPECT_GT(result.promises, 0) << "seed " << seed;
      if (exact) {
        EXPECT_EQ(result.late, 0) << "seed " << seed;
      }
    }
  }
}

TEST(SimulateSlicesTest, EveryJobEndsNoSoonerThanItCanAndRestartsCost) {
  const auto jobs = Crowd(1, 150);
  const auto mean = [&](const SlicesResult& result) {
    double sum = 0;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      const double least = jobs[i].work / std::max(jobs[i].rate[0], jobs[i].rate[1]);
      EXPECT_GE(result.finish[i] - jobs[i].arrival, least - 1e-3);
      sum += result.finish[i] - jobs[i].arrival;
    }
    return sum;
  };
  SlicesSetup free{.nodes = 2}, dear{.nodes = 2};
  free.restart = 0;
  dear.restart = 300;
  const SlicesResult result = SimulateSlices(jobs, free);
  EXPECT_GT(result.restarts, 0);
  EXPECT_LT(mean(result), mean(SimulateSlices(jobs, dear)));
}

TEST(FindBenchTest, KnowsItsNames) {
  for (const char* name :
       {"queue-gavel", "queue-makespan", "queue-philly-2v", "queue-promise", "fair-2v"}) {
    EXPECT_NE(FindBench(name), nullptr) << name;
  }
  EXPECT_EQ(FindBench("queue"), nullptr);
}

}  // namespace
}  // namespace bimetal::bench
