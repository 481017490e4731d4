#include <gtest/gtest.h>

#include "agent/devices/inventory.h"

namespace bimetal::agent {
namespace {

Device MakeDevice(const std::string& id) {
  Device device;
  device.id = DeviceId{id};
  device.driver = Reading<std::string>::Of("565.57.01");
  device.healthy = Reading<bool>::Of(true);
  return device;
}

SourceReport Before() {
  SourceReport report;
  report.devices = {MakeDevice("GPU-a"), MakeDevice("GPU-b")};
  report.facts["driver"] = Reading<std::string>::Of("565.57.01");
  report.simulated = true;
  return report;
}

SourceReport CutShort() {
  SourceReport report;
  report.findings.push_back({"VendorLibraryHung", Severity::kError, "", "", "", ""});
  return report;
}

TEST(KeepUnseenTest, DevicesOfAHungLibraryStayWithUnknownHealth) {
  SourceReport now = CutShort();
  KeepUnseen(Before(), now);
  ASSERT_EQ(now.devices.size(), 2U);
  EXPECT_EQ(now.devices[0].driver.value, "565.57.01");
  EXPECT_FALSE(now.devices[0].healthy.known()) << "unknown is never healthy";
  EXPECT_EQ(now.facts["driver"].value, "565.57.01");
  EXPECT_TRUE(now.simulated);
}

TEST(KeepUnseenTest, ADeviceThatACutLookShowedPoorlyKeepsWhatItsFingerprintIsMadeOf) {
  SourceReport now = CutShort();
  Device poor;
  poor.id = DeviceId{"GPU-a"};
  poor.healthy = Reading<bool>::Of(false, "fallen off the bus");
  now.devices.push_back(poor);
  KeepUnseen(Before(), now);
  ASSERT_EQ(now.devices.size(), 2U);
  EXPECT_EQ(now.devices[0].driver.value, "565.57.01");
  ASSERT_TRUE(now.devices[0].healthy.known());
  EXPECT_FALSE(now.devices[0].healthy.value);
}

TEST(KeepUnseenTest, ACompleteLookThatShowsADeviceNoMoreMeansThatItIsGone) {
  SourceReport now;
  now.devices = {MakeDevice("GPU-b")};
  KeepUnseen(Before(), now);
  EXPECT_EQ(now.devices.size(), 1U);
}

}  // namespace
}  // namespace bimetal::agent
