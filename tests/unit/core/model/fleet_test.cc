#include "core/model/fleet.h"

#include <limits>

#include <gtest/gtest.h>

#include "tests/unit/core/builders.h"

namespace bimetal::core {
namespace {

using testing::NodeBuilder;

constexpr auto kMax = std::numeric_limits<std::int64_t>::max();

TEST(VendorTest, ParsesItsOwnNamesAndNamesWhatIsAllowed) {
  for (const Vendor vendor : kVendors) EXPECT_EQ(ParseVendor(VendorName(vendor)).value(), vendor);
  const auto unknown = ParseVendor("intel");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().message, "vendor \"intel\" is unknown; use \"amd\" or \"nvidia\"");
}

TEST(ResourcesTest, AbsurdSumsStayAbsurd) {
  const Resources huge{.cpu_milli = kMax, .memory_bytes = kMax, .pods = kMax};
  EXPECT_EQ(huge + huge, huge);
  EXPECT_FALSE(Fits(huge, Resources{.cpu_milli = 1000, .memory_bytes = 1000, .pods = 10}, huge));
}

TEST(ResourcesTest, FitsToTheLastUnitAndNotBeyond) {
  const Resources capacity{.cpu_milli = 10, .memory_bytes = 20, .pods = 3};
  const Resources used{.cpu_milli = 6, .memory_bytes = 15, .pods = 2};
  EXPECT_TRUE(Fits({.cpu_milli = 4, .memory_bytes = 5, .pods = 1}, capacity, used));
  EXPECT_FALSE(Fits({.cpu_milli = 5, .memory_bytes = 5, .pods = 1}, capacity, used));
  EXPECT_FALSE(Fits({.cpu_milli = 4, .memory_bytes = 6, .pods = 1}, capacity, used));
  EXPECT_FALSE(Fits({.cpu_milli = 4, .memory_bytes = 5, .pods = 2}, capacity, used));
}

TEST(ResourcesTest, NothingAskedForFitsOnAnOvercommittedNode) {
  const Resources capacity{.cpu_milli = 10, .memory_bytes = 0, .pods = 3};
  EXPECT_TRUE(Fits({.pods = 1}, capacity, {.cpu_milli = 50, .memory_bytes = 9, .pods = 2}));
}

TEST(ToleratesTest, FollowsKubernetesRule) {
  const Taint taint{.key = "k", .value = "v", .effect = "NoSchedule"};
  const auto tolerates = [&](Toleration t) { return Tolerates({t}, taint); };
  EXPECT_TRUE(tolerates({.key = "k", .op = "Exists", .value = "", .effect = ""}));
  EXPECT_TRUE(tolerates({.key = "", .op = "Exists", .value = "", .effect = ""}));
  EXPECT_TRUE(tolerates({.key = "k", .op = "Equal", .value = "v", .effect = "NoSchedule"}));
  EXPECT_TRUE(tolerates({.key = "k", .op = "", .value = "v", .effect = ""}));
  EXPECT_FALSE(tolerates({.key = "k", .op = "", .value = "w", .effect = ""}));
  EXPECT_FALSE(tolerates({.key = "k", .op = "Exists", .value = "", .effect = "NoExecute"}));
  EXPECT_FALSE(tolerates({.key = "other", .op = "Exists", .value = "", .effect = ""}));
  EXPECT_FALSE(tolerates({.key = "k", .op = "Gt", .value = "v", .effect = ""}));
  EXPECT_FALSE(Tolerates({}, taint));
}

TEST(UsableDevicesTest, CountsOpenDevicesButNoMoreThanTheKubeletOffers) {
  const auto usable = [](const Node& node) { return UsableDevices(node, Vendor::kAmd); };
  EXPECT_EQ(usable(NodeBuilder("n").Gpus(Vendor::kAmd, 8)), 8);
  EXPECT_EQ(usable(NodeBuilder("n").Gpus(Vendor::kAmd, 8).Shut(Vendor::kAmd, 3)), 5);
  EXPECT_EQ(usable(NodeBuilder("n").Gpus(Vendor::kAmd, 8).Offered(Vendor::kAmd, 2)), 2);
  EXPECT_EQ(usable(NodeBuilder("n").Gpus(Vendor::kAmd, 8).Offered(Vendor::kAmd, 0)), 0);
  EXPECT_EQ(usable(NodeBuilder("n").Gpus(Vendor::kNvidia, 8)), 0);
}

TEST(UsableDevicesTest, NotOfferedIsNeverUsable) {
  EXPECT_EQ(
      UsableDevices(NodeBuilder("n").Gpus(Vendor::kAmd, 8).Offered(Vendor::kAmd, {}), Vendor::kAmd),
      0);
}

TEST(DeviceClassOfTest, TheFirstClassThatNamesTheModelElseTheVendor) {
  Pool pool;
  pool.vendor = Vendor::kAmd;
  EXPECT_EQ(DeviceClassOf(pool, "MI300X"), "amd");
  pool.device_classes = {{"large", {"MI300X", "MI325X"}}, {"other", {"MI300X", "MI210"}}};
  EXPECT_EQ(DeviceClassOf(pool, "MI300X"), "large");
  EXPECT_EQ(DeviceClassOf(pool, "MI210"), "other");
  EXPECT_EQ(DeviceClassOf(pool, "MI100"), "amd");
}

TEST(WholeDevicesTest, AStartedDeviceCountsWhole) {
  EXPECT_EQ(WholeDevices(MilliDevice{-5}), 0);
  EXPECT_EQ(WholeDevices(MilliDevice{0}), 0);
  EXPECT_EQ(WholeDevices(MilliDevice{1}), 1);
  EXPECT_EQ(WholeDevices(MilliDevice{1000}), 1);
  EXPECT_EQ(WholeDevices(MilliDevice{1001}), 2);
}

}  // namespace
}  // namespace bimetal::core
