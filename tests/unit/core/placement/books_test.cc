#include "core/placement/books.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "tests/unit/core/builders.h"

namespace bimetal::core::placement {
namespace {

using testing::NodeBuilder;
using testing::PodOn;

TEST(BooksTest, SumsPodsByNodeWhoeverMadeThem) {
  const Books books =
      MakeBooks({PodOn("a", "n1", Vendor::kAmd, 2, 500), PodOn("b", "n1", Vendor::kNvidia, 1, 250),
                 PodOn("c", "n2", Vendor::kAmd, 8)});
  const NodeUse& n1 = books.at(NodeName{"n1"});
  EXPECT_EQ(n1.used, (Resources{.cpu_milli = 750, .memory_bytes = 0, .pods = 2}));
  EXPECT_EQ(n1.held.at(Vendor::kAmd), MilliDevice{2000});
  EXPECT_EQ(n1.held.at(Vendor::kNvidia), MilliDevice{1000});
  EXPECT_EQ(books.at(NodeName{"n2"}).held.at(Vendor::kAmd), MilliDevice{8000});
}

TEST(BooksTest, APodGivenTwiceCountsOnceAndOneOnNoNodeHoldsNothing) {
  const Pod pod = PodOn("a", "n1", Vendor::kAmd, 2);
  EXPECT_EQ(MakeBooks({pod, pod, PodOn("b", "", Vendor::kAmd, 2)}), MakeBooks({pod}));
}

TEST(BooksTest, AssumedPodsWithoutUidAreToldApartByName) {
  Pod one = PodOn("", "n1", Vendor::kAmd, 1), two = one;
  one.name = "job-0";
  two.name = "job-1";
  EXPECT_EQ(MakeBooks({one, two, one}).at(NodeName{"n1"}).held.at(Vendor::kAmd), MilliDevice{2000});
}

TEST(BooksTest, OrderDoesNotMatterEvenForContradictoryCopies) {
  std::vector<Pod> pods = {PodOn("a", "n1", Vendor::kAmd, 2), PodOn("a", "n2", Vendor::kAmd, 1),
                           PodOn("b", "n1", Vendor::kAmd, 1), PodOn("a", "", Vendor::kAmd, 1)};
  const Books forward = MakeBooks(pods);
  std::reverse(pods.begin(), pods.end());
  EXPECT_EQ(MakeBooks(pods), forward);
}

TEST(FreeDevicesTest, NeverNegativeWhenMoreIsHeldThanIsUsable) {
  // A device in use turns unhealthy: allocatable becomes 7, then 0, then the key disappears.
  const Books books = MakeBooks({PodOn("a", "n", Vendor::kNvidia, 8)});
  for (const std::optional<std::int64_t> offered :
       {std::optional<std::int64_t>(7), std::optional<std::int64_t>(0),
        std::optional<std::int64_t>()}) {
    const Node node = NodeBuilder("n").Gpus(Vendor::kNvidia, 8).Offered(Vendor::kNvidia, offered);
    EXPECT_EQ(FreeDevices(node, books, Vendor::kNvidia), 0);
    EXPECT_EQ(FreeDevices(node, {}, Vendor::kNvidia), offered.value_or(0));
  }
}

TEST(FreeDevicesTest, ADeviceHeldInPartIsNotFree) {
  Pod pod = PodOn("a", "n", Vendor::kAmd, 0);
  pod.devices[Vendor::kAmd] = MilliDevice{1};
  EXPECT_EQ(FreeDevices(NodeBuilder("n").Gpus(Vendor::kAmd, 4), MakeBooks({pod}), Vendor::kAmd), 3);
}

}  // namespace
}  // namespace bimetal::core::placement
