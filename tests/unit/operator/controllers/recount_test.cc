#include "operator/controllers/recount.h"

#include <gtest/gtest.h>

namespace bimetal::op {
namespace {

core::Pod MakePod(const std::string& uid, const std::string& node, std::int64_t devices) {
  core::Pod pod;
  pod.uid = Uid{uid};
  pod.node = NodeName{node};
  pod.devices[core::Vendor::kAmd] = MilliDevice{devices * kWholeDevice.v};
  return pod;
}

TEST(BooksDifferenceTest, IsZeroForTheSamePodsInAnyOrder) {
  EXPECT_EQ(BooksDifference({MakePod("a", "n1", 2), MakePod("b", "n2", 1)},
                            {MakePod("b", "n2", 1), MakePod("a", "n1", 2)}),
            0);
}

TEST(BooksDifferenceTest, SeesAPodThatOnlyOneSideHasAndOneOnAnotherNode) {
  EXPECT_EQ(BooksDifference({MakePod("a", "n1", 2)}, {}), 2000);
  EXPECT_EQ(BooksDifference({}, {MakePod("a", "n1", 2)}), 2000);
  EXPECT_EQ(BooksDifference({MakePod("a", "n1", 2)}, {MakePod("a", "n2", 2)}), 4000);
}

}  // namespace
}  // namespace bimetal::op
