#include "core/queue/tree.h"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/queue/coverage.h"
#include "tests/unit/core/builders.h"

namespace bimetal::core::queue {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::QueueNamed;
using testing::Quota;

// amd, amd "mi300x", nvidia, nvidia "h100".
const std::vector<DeviceKind> kKinds = {{Vendor::kAmd, "amd"},
                                        {Vendor::kAmd, "mi300x"},
                                        {Vendor::kNvidia, "h100"},
                                        {Vendor::kNvidia, "nvidia"}};
constexpr std::size_t kAmdKind = 0, kMi300x = 1, kH100 = 2, kNvidiaKind = 3;

Queue Child(const std::string& name, const std::string& parent,
            std::vector<QuotaLine> quotas = {}) {
  Queue queue = QueueNamed(name);
  queue.parent = QueueName{parent};
  queue.quotas = std::move(quotas);
  return queue;
}

TEST(QueueTreeTest, AnUnknownParentAndACircleAreProblemsOfTheirOwnBranchAlone) {
  const std::vector<Queue> queues = {Child("a", "nowhere"), Child("b", "c"), Child("c", "b"),
                                     Child("d", "b"),       Child("e", ""),  Child("f", "e"),
                                     Child("g", "g")};
  const QueueTree tree(queues, kKinds);
  const auto problem = [&](const char* name) { return tree.ProblemOf(tree.Find(QueueName{name})); };
  EXPECT_THAT(problem("a"), HasSubstr("nowhere, which does not exist; create it"));
  EXPECT_THAT(problem("b"), HasSubstr("circle (b > c > b)"));
  EXPECT_THAT(problem("c"), HasSubstr("circle"));
  EXPECT_THAT(problem("d"), HasSubstr("circle"));
  EXPECT_THAT(problem("g"), HasSubstr("circle (g > g)"));
  EXPECT_EQ(problem("e"), "");
  EXPECT_EQ(problem("f"), "");
  EXPECT_EQ(tree.Parent(tree.Find(QueueName{"f"})), tree.Find(QueueName{"e"}));
  EXPECT_EQ(tree.Find(QueueName{"z"}), kNoQueue);
}

TEST(QueueTreeTest, ADeviceCountsOnTheLineOfItsClassElseOfItsVendor) {
  const std::vector<Queue> queues = {Child("q", "", {Quota("nvidia", 4), Quota("h100", 2)})};
  QueueTree tree(queues, kKinds);
  tree.Use(0, kH100, 2, 1);
  tree.Use(0, kNvidiaKind, 3, 1);
  tree.Use(0, kMi300x, 9, 1);
  EXPECT_EQ(tree.UsedOfLine(0, *tree.LineFor(0, kH100)), 2);
  EXPECT_EQ(tree.UsedOfLine(0, *tree.LineFor(0, kNvidiaKind)), 3);
  EXPECT_FALSE(tree.LineFor(0, kMi300x));
  EXPECT_EQ(tree.UsedInAll(0), 14);
  EXPECT_EQ(tree.JobsOf(0), 3);
  EXPECT_TRUE(tree.ShortageOf(0, kH100, 1, {}));
  EXPECT_FALSE(tree.ShortageOf(0, kNvidiaKind, 1, {}));
  EXPECT_FALSE(tree.ShortageOf(0, kAmdKind, 1000, {}));
}

TEST(QueueTreeTest, LimitsOfAllQueuesAboveHold) {
  std::vector<Queue> queues = {Child("a", "", {Quota("nvidia", 8)}), Child("b", "a"),
                               Child("c", "b", {Quota("nvidia", 100)})};
  queues[1].total_limit = 5;
  QueueTree tree(queues, kKinds);
  const int c = tree.Find(QueueName{"c"});
  EXPECT_FALSE(tree.ShortageOf(c, kH100, 5, {}));
  tree.Use(c, kH100, 3, 1);
  const auto shortage = tree.ShortageOf(c, kH100, 3, {});
  ASSERT_TRUE(shortage);
  EXPECT_EQ(shortage->obstacle, QuotaObstacle::kTotalLimit);
  EXPECT_EQ(tree.At(shortage->queue).name, QueueName{"b"});
  EXPECT_EQ(shortage->left, 2);
  EXPECT_EQ(tree.NeverMore(c, kH100, 6)->limit, 5);
  EXPECT_FALSE(tree.NeverMore(c, kH100, 5));
}

TEST(QueueTreeTest, RunningJobsAreCountedUpTheTree) {
  std::vector<Queue> queues = {Child("a", ""), Child("b", "a")};
  queues[0].max_running_jobs = 2;
  QueueTree tree(queues, kKinds);
  tree.Use(1, kH100, 1, 1);
  EXPECT_FALSE(tree.ShortageOf(1, kH100, 1, {}));
  tree.Use(0, kH100, 1, 1);
  EXPECT_EQ(tree.ShortageOf(1, kH100, 1, {})->obstacle, QuotaObstacle::kRunningJobs);
}

TEST(QueueTreeTest, WhatIsNotLentStaysFreeForItsQueue) {
  const std::vector<Queue> queues = {Child("keeper", "", {Quota("nvidia", {}, 6, 2)}),
                                     Child("other", "")};
  QueueTree tree(queues, kKinds);
  const int keeper = tree.Find(QueueName{"keeper"}), other = tree.Find(QueueName{"other"});
  const FreeByKind free = {8, 0, 3, 5};  // 8 of nvidia
  EXPECT_TRUE(tree.asks_for_free());
  EXPECT_FALSE(tree.ShortageOf(other, kNvidiaKind, 4, free));  // leaves 4, as kept
  const auto shortage = tree.ShortageOf(other, kNvidiaKind, 5, free);
  ASSERT_TRUE(shortage);
  EXPECT_EQ(shortage->obstacle, QuotaObstacle::kLending);
  EXPECT_EQ(shortage->left, 4);
  EXPECT_FALSE(tree.ShortageOf(other, kAmdKind, 8, free));
  EXPECT_FALSE(tree.ShortageOf(keeper, kNvidiaKind, 8, free));  // nobody keeps from the keeper
  tree.Use(keeper, kNvidiaKind, 4, 1);                          // uses what it keeps
  EXPECT_FALSE(tree.ShortageOf(other, kNvidiaKind, 1, {8, 0, 1, 0}));
}

TEST(QueueTreeTest, HugeAmountsSaturate) {
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  const std::vector<Queue> queues = {Child("q", "", {Quota("nvidia", kMost, kMost, 0)}),
                                     Child("other", "")};
  QueueTree tree(queues, kKinds);
  const int other = tree.Find(QueueName{"other"}), q = tree.Find(QueueName{"q"});
  tree.Use(other, kH100, kMost, 1);
  tree.Use(other, kH100, kMost, 1);
  EXPECT_EQ(tree.UsedInAll(other), kMost);
  EXPECT_TRUE(tree.ShortageOf(other, kH100, 1, {kMost, kMost, kMost, kMost}));
  EXPECT_TRUE(tree.IsGuaranteed(q, kH100, kMost));
  tree.Use(q, kH100, kMost, 1);
  EXPECT_EQ(tree.ShortageOf(q, kH100, 1, {})->left, 0);
}

Claim ClaimOf(const std::string& job, int queue, std::int64_t devices, std::int64_t priority = 0) {
  return {.rank = {priority, TimePoint{0}, Uid{job}},
          .queue = queue,
          .kind = kH100,
          .devices = devices};
}

std::vector<int> Rounds(const QueueTree& tree, std::vector<Claim> claims) {
  return Coverage(tree, std::move(claims)).rounds();
}

TEST(CoverageTest, AQueueCoversItsFirstJobsAndAParentTheRest) {
  // p guarantees 6; its children x 4 and y 0.
  const std::vector<Queue> queues = {Child("p", "", {Quota("nvidia", {}, 6)}),
                                     Child("x", "p", {Quota("nvidia", {}, 4)}), Child("y", "p")};
  const QueueTree tree(queues, kKinds);
  const int x = tree.Find(QueueName{"x"}), y = tree.Find(QueueName{"y"});
  EXPECT_THAT(Rounds(tree, {ClaimOf("a", x, 3), ClaimOf("b", x, 3), ClaimOf("c", y, 3),
                            ClaimOf("d", x, 1)}),
              ElementsAre(0, kUncovered, kUncovered, 0));  // a and d by x; 2 of p left, no job fits
  EXPECT_THAT(Rounds(tree, {ClaimOf("a", x, 3), ClaimOf("c", y, 3)}), ElementsAre(0, 1));
  EXPECT_THAT(Rounds(tree, {ClaimOf("c", y, 3, 9), ClaimOf("a", x, 4)}),
              ElementsAre(kUncovered, 0));  // the parent covers what its children leave
  const Coverage some(tree, {ClaimOf("a", x, 3), ClaimOf("c", y, 3)});
  for (const Claim& more : {ClaimOf("b", x, 3), ClaimOf("d", x, 1), ClaimOf("e", y, 2, 9)}) {
    EXPECT_EQ(some.RoundWith(more),
              Rounds(tree, {ClaimOf("a", x, 3), ClaimOf("c", y, 3), more}).back());
  }
}

}  // namespace
}  // namespace bimetal::core::queue
