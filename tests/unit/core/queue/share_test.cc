#include "core/queue/share.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "tests/unit/core/builders.h"

namespace bimetal::core::queue {
namespace {

constexpr std::int64_t kHour = 3'600'000;

PastUse Use(std::int64_t devices, std::int64_t from, std::int64_t to) {
  return {
      .queue = QueueName{"q"}, .devices = devices, .from = TimePoint{from}, .to = TimePoint{to}};
}

// Against the formula in floating point: halfLife/ln2 * (2^-(end age) - 2^-(begin age)).
TEST(DecayedUseTest, AgreesWithTheFormula) {
  for (const std::int64_t half_life : {kHour / 60, kHour, 24 * kHour, 720 * kHour}) {
    for (const auto& [from, to] : std::initializer_list<std::pair<std::int64_t, std::int64_t>>{
             {0, kHour}, {0, 100 * kHour}, {90 * kHour, 100 * kHour}, {99 * kHour, 100 * kHour}}) {
      const std::int64_t now = 100 * kHour;
      const double h = static_cast<double>(half_life);
      const double want = 8 * h / std::log(2.0) *
                          (std::exp2(-static_cast<double>(now - to) / h) -
                           std::exp2(-static_cast<double>(now - from) / h));
      const auto got =
          static_cast<double>(DecayedUse(Use(8, from, to), TimePoint{now}, Millis{half_life}));
      EXPECT_NEAR(got, want, 8 * h * 5e-5) << half_life << " " << from << " " << to;
    }
  }
}

TEST(DecayedUseTest, OddInputsCountAsNothingAndNothingOverflows) {
  const Millis hour{kHour};
  EXPECT_EQ(DecayedUse(Use(8, 5, 5), TimePoint{9}, hour), 0);
  EXPECT_EQ(DecayedUse(Use(8, 9, 5), TimePoint{9}, hour), 0);
  EXPECT_EQ(DecayedUse(Use(-8, 0, 5), TimePoint{9}, hour), 0);
  EXPECT_EQ(DecayedUse(Use(8, 20, 30), TimePoint{9}, hour), 0);  // not yet
  EXPECT_EQ(DecayedUse(Use(8, 0, kHour), TimePoint{kHour}, Millis{0}), 0);
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  EXPECT_GE(DecayedUse(Use(kMost, -kMost, kMost), TimePoint{kMost}, Millis{kMost}), 0);
}

TEST(ShareTest, WeightsDivideAndZeroComesLast) {
  EXPECT_TRUE((Share{10, 2} < Share{6, 1}));
  EXPECT_FALSE((Share{10, 2} < Share{5, 1}));
  EXPECT_FALSE((Share{5, 1} < Share{10, 2}));
  EXPECT_TRUE((Share{1'000'000, 1} < Share{0, 0}));
  EXPECT_TRUE((Share{1, 0} < Share{2, 0}));
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  EXPECT_TRUE((Share{kMost, 10'000'000} < Share{kMost, 9'999'999}));
}

TEST(SharesTest, AreOnAmongTheChildrenOfOneParentTogether) {
  std::vector<Queue> queues = {testing::QueueNamed("a"), testing::QueueNamed("b"),
                               testing::QueueNamed("c")};
  queues[1].fair_share = FairShare{.weight = 3, .half_life = Millis{kHour}};
  queues[2].parent = QueueName{"a"};
  const std::vector<DeviceKind> kinds = {{Vendor::kAmd, "amd"}};
  QueueTree tree(queues, kinds);
  tree.Use(tree.Find(QueueName{"c"}), 0, 2, 1);
  const std::vector<PastUse> past = {
      {.queue = QueueName{"c"}, .devices = 4, .from = TimePoint{0}, .to = TimePoint{kHour}}};
  const Shares shares(tree, past, TimePoint{kHour});
  EXPECT_TRUE(shares.IsOn(kNoQueue));
  EXPECT_FALSE(shares.IsOn(0));
  EXPECT_GT(shares.Of(0).value, 2 * kHour);  // what is held below counts, and the past
  EXPECT_EQ(shares.Of(0).weight, 1);
  EXPECT_EQ(shares.Of(1).value, 0);
  EXPECT_EQ(shares.Of(1).weight, 3);
}

}  // namespace
}  // namespace bimetal::core::queue
