#include "core/queue/elastic.h"

#include <gtest/gtest.h>

#include "tests/unit/core/builders.h"

namespace bimetal::core::queue {
namespace {

Job Gang(std::int64_t replicas, std::optional<std::int64_t> minimum) {
  Job job = testing::JobBuilder("j").On(Vendor::kAmd).Pods(1, 1000, "head").Pods(replicas);
  job.roles[1].min_replicas = minimum;
  return job;
}

TEST(Elastic, AJobWithoutMinimaHasNoSmallerSize) {
  EXPECT_FALSE(IsElastic(Gang(8, std::nullopt)));
  EXPECT_FALSE(IsElastic(Gang(8, 8)));
  EXPECT_FALSE(LargestThatFits(Gang(8, 8), [](const Job&) { return true; }));
}

TEST(Elastic, SizesGoFromTheMinimumToOneLessThanAllAndFixedRolesStay) {
  const Job job = Gang(8, 3);
  EXPECT_EQ(SmallerSizes(job), 5);
  for (std::int64_t size = 0; size < 5; ++size) {
    EXPECT_EQ(AtSize(job, size).roles[1].replicas, 3 + size);
    EXPECT_EQ(AtSize(job, size).roles[0].replicas, 1);
  }
}

TEST(Elastic, RolesGrowTogetherAndNeverShrink) {
  Job job = Gang(4096, 1);
  job.roles[0].replicas = 16;
  job.roles[0].min_replicas = 4;
  std::int64_t head = 0, worker = 0;
  for (std::int64_t size = 0; size < SmallerSizes(job); ++size) {
    const Job at = AtSize(job, size);
    ASSERT_GE(at.roles[0].replicas, std::max<std::int64_t>(4, head));
    ASSERT_LE(at.roles[0].replicas, 16);
    ASSERT_GT(at.roles[1].replicas, worker);
    head = at.roles[0].replicas;
    worker = at.roles[1].replicas;
  }
  EXPECT_EQ(worker, 4095);
}

TEST(Elastic, TheLargestThatFitsIsFoundWithFewQuestions) {
  const Job job = Gang(4096, 1);
  for (const std::int64_t room : {1, 2, 3, 1000, 4094, 4095, 5000}) {
    int asked = 0;
    const auto found = LargestThatFits(job, [&](const Job& at) {
      ++asked;
      return PodCount(at) <= room;
    });
    EXPECT_LE(asked, 13);
    if (room < 2) {
      EXPECT_FALSE(found) << "the head and one worker are the least";
    } else {
      ASSERT_TRUE(found);
      EXPECT_EQ(PodCount(*found), std::min<std::int64_t>(room, 4096));
    }
  }
}

}  // namespace
}  // namespace bimetal::core::queue
