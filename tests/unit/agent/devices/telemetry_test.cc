#include "agent/devices/telemetry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/devices/nvidia/nvml_telemetry.h"

namespace bimetal::agent {
namespace {

using testing::ElementsAre;
using Counts = Reading<std::map<std::string, std::int64_t>>;

Telemetry WithCounts(std::map<std::string, std::int64_t> counts) {
  Telemetry out;
  out.throttle_counts = Counts::Of(std::move(counts));
  return out;
}

TEST(ThrottleFromCountsTest, ACounterThatGrewIsAReason) {
  Telemetry now = WithCounts({{"power-cap", 8}, {"thermal", 3}, {"memory-thermal", 1}});
  ThrottleFromCounts(WithCounts({{"power-cap", 5}, {"thermal", 3}, {"memory-thermal", 0}}), now);
  EXPECT_THAT(now.throttle.value, ElementsAre("memory-thermal", "power-cap"));
  EXPECT_TRUE(now.throttle.known());
}

TEST(ThrottleFromCountsTest, NoGrowthIsNoThrottling) {
  Telemetry now = WithCounts({{"power-cap", 5}});
  ThrottleFromCounts(WithCounts({{"power-cap", 5}}), now);
  EXPECT_TRUE(now.throttle.known());
  EXPECT_THAT(now.throttle.value, ElementsAre());
}

TEST(ThrottleFromCountsTest, CountersOfAReloadedDriverSayNothing) {
  Telemetry now = WithCounts({{"power-cap", 1}, {"thermal", 9}});
  ThrottleFromCounts(WithCounts({{"power-cap", 5}}), now);
  EXPECT_THAT(now.throttle.value, ElementsAre());
}

TEST(ThrottleFromCountsTest, StaysUnknownWithoutTwoLooksAndKeepsWhatTheDriverSays) {
  Telemetry now = WithCounts({{"power-cap", 5}});
  ThrottleFromCounts(Telemetry{}, now);
  EXPECT_FALSE(now.throttle.known());
  now.throttle = Reading<std::vector<std::string>>::Of({"thermal"});
  ThrottleFromCounts(WithCounts({{"power-cap", 1}}), now);
  EXPECT_THAT(now.throttle.value, ElementsAre("thermal"));
}

TEST(ClockReasonsTest, LeavesOutIdlenessAndWhatAUserChose) {
  EXPECT_THAT(ClockReasons(0x1 | 0x2 | 0x10 | 0x100), ElementsAre());
  EXPECT_THAT(
      ClockReasons(0x4 | 0x8 | 0x20 | 0x40 | 0x80),
      ElementsAre("hardware-slowdown", "hardware-thermal", "power-brake", "power-cap", "thermal"));
}

}  // namespace
}  // namespace bimetal::agent
