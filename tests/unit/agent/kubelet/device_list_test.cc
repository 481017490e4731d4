#include "agent/kubelet/device_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace bimetal::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

constexpr char kFirst[] = "GPU-00000000000000a1";
constexpr char kSecond[] = "GPU-00000000000000a2";

PluginDevice Open(const std::string& id, std::vector<std::string> nodes = {}) {
  PluginDevice device;
  device.id = id;
  device.open = true;
  device.nodes = std::move(nodes);
  return device;
}

TEST(DeviceListTest, AmdContainersGetTheirFilesOnceAndTheirIds) {
  DeviceList list(Vendor::kAmd);
  list.Set({Open(kSecond, {"/dev/dri/renderD129", "/dev/kfd"}),
            Open(kFirst, {"/dev/dri/renderD128", "/dev/kfd"})},
           false);
  const auto grant = list.Allocate({kSecond, kFirst});
  ASSERT_TRUE(grant) << grant.error().message;
  const std::string both = std::string(kFirst) + "," + kSecond;
  EXPECT_THAT(grant->environment, UnorderedElementsAre(Pair("BIMETAL_DEVICES", both),
                                                       Pair("ROCR_VISIBLE_DEVICES", both)));
  EXPECT_THAT(grant->nodes, ElementsAre("/dev/dri/renderD128", "/dev/dri/renderD129", "/dev/kfd"));
}

TEST(DeviceListTest, IdsThatTheRocmRuntimeDoesNotKnowAreLeftToTheFiles) {
  DeviceList list(Vendor::kAmd);
  list.Set({Open(std::string(kFirst) + "-p1", {"/dev/kfd"})}, false);
  const auto grant = list.Allocate({std::string(kFirst) + "-p1"});
  ASSERT_TRUE(grant);
  EXPECT_FALSE(grant->environment.contains("ROCR_VISIBLE_DEVICES"));
  EXPECT_THAT(grant->nodes, ElementsAre("/dev/kfd"));
}

TEST(DeviceListTest, NvidiaContainersGetTheVariableOfTheirRuntimeAndNoFiles) {
  DeviceList list(Vendor::kNvidia);
  list.Set({Open("GPU-x", {"/dev/nvidia0"})}, false);
  const auto grant = list.Allocate({"GPU-x"});
  ASSERT_TRUE(grant);
  EXPECT_EQ(grant->environment.at("NVIDIA_VISIBLE_DEVICES"), "GPU-x");
  EXPECT_EQ(grant->environment.at("BIMETAL_DEVICES"), "GPU-x");
  EXPECT_THAT(grant->nodes, IsEmpty());
}

TEST(DeviceListTest, SimulatedDevicesSaySoAndBringNoFiles) {
  DeviceList list(Vendor::kAmd);
  list.Set({Open(kFirst, {"/dev/kfd"})}, true);
  const auto grant = list.Allocate({kFirst});
  ASSERT_TRUE(grant);
  EXPECT_EQ(grant->environment.at("BIMETAL_SIMULATED"), "1");
  EXPECT_THAT(grant->nodes, IsEmpty());
}

TEST(DeviceListTest, ShutMissingAndDoubleDevicesAreRefusedByName) {
  DeviceList list(Vendor::kAmd);
  PluginDevice shut = Open(kSecond);
  shut.open = false;
  list.Set({Open(kFirst), shut}, false);
  const auto refused = list.Allocate({kSecond});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kForbidden);
  EXPECT_THAT(refused.error().message, HasSubstr(kSecond));
  EXPECT_EQ(list.Allocate({"GPU-none"}).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(list.Allocate({kFirst, kFirst}).error().code, ErrorCode::kInvalid);
  EXPECT_EQ(list.Allocate({}).error().code, ErrorCode::kInvalid);
}

TEST(DeviceListTest, VersionGrowsWithChangesOnly) {
  DeviceList list(Vendor::kAmd);
  list.Set({Open(kFirst), Open(kSecond)}, false);
  const auto version = list.Get().version;
  list.Set({Open(kSecond), Open(kFirst)}, false);
  EXPECT_EQ(list.Get().version, version);
  list.Set({Open(kFirst)}, false);
  EXPECT_GT(list.Get().version, version);
}

TEST(DeviceListTest, CloseEndsEveryWait) {
  DeviceList list(Vendor::kAmd);
  list.Set({}, false);
  list.Close();
  EXPECT_EQ(list.WaitForChange(list.Get().version, Minutes(10)).version, list.Get().version);
}

}  // namespace
}  // namespace bimetal::agent
