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

TEST(KeepUnseenTest, WhatACutLookDidReadHolds) {
  SourceReport now = CutShort();
  now.devices = {MakeDevice("GPU-b")};
  now.devices[0].driver = Reading<std::string>::Of("580.00");
  now.devices[0].uncorrected_errors = Reading<std::int64_t>::Of(3);
  KeepUnseen(Before(), now);
  ASSERT_EQ(now.devices.size(), 2U);
  EXPECT_EQ(now.devices[0].driver.value, "580.00");
  EXPECT_EQ(now.devices[0].uncorrected_errors.value, 3);
  EXPECT_TRUE(now.devices[0].healthy.value);
}

TEST(KeepUnseenTest, AHealthThatACutLookDidNotReadIsNotTheOldOne) {
  SourceReport now = CutShort();
  now.devices = {MakeDevice("GPU-b")};
  now.devices[0].healthy = Reading<bool>::Unknown("not asked");
  KeepUnseen(Before(), now);
  EXPECT_FALSE(now.devices[0].healthy.known());
}

TEST(KeepUnseenTest, FirmwareOfACutLookIsFilledUpOnlyWhereItAgrees) {
  using Firmware = Reading<std::map<std::string, std::string>>;
  SourceReport before = Before();
  before.devices[0].firmware = Firmware::Of({{"gsp", "1"}, {"vbios", "96"}});
  before.devices[1].firmware = before.devices[0].firmware;
  SourceReport now = CutShort();
  now.devices = {MakeDevice("GPU-a"), MakeDevice("GPU-b")};
  now.devices[0].firmware = Firmware::Of({{"vbios", "96"}});
  now.devices[1].firmware = Firmware::Of({{"vbios", "97"}});
  KeepUnseen(before, now);
  EXPECT_EQ(now.devices[0].firmware.value.size(), 2U);
  EXPECT_EQ(now.devices[1].firmware.value.size(), 1U);
}

// R03: no silicon in two classes at once, a hang elsewhere or not.
TEST(KeepUnseenTest, AGpuThatWasCutMeanwhileIsNotKeptWhole) {
  SourceReport now = CutShort();
  now.devices = {MakeDevice("MIG-1"), MakeDevice("MIG-2")};
  for (Device& slice : now.devices) slice.parent = Reading<std::string>::Of("GPU-a");
  SourceReport again = now;
  KeepUnseen(Before(), now);
  ASSERT_EQ(now.devices.size(), 3U);
  EXPECT_EQ(now.devices[2].id.value, "GPU-b");
  // And back: the slices are gone with the whole one in sight.
  SourceReport whole = CutShort();
  whole.devices = {MakeDevice("GPU-a")};
  KeepUnseen(again, whole);
  EXPECT_EQ(whole.devices.size(), 1U);
}

TEST(KeepUnseenTest, ACompleteLookThatShowsADeviceNoMoreMeansThatItIsGone) {
  SourceReport now;
  now.devices = {MakeDevice("GPU-b")};
  KeepUnseen(Before(), now);
  EXPECT_EQ(now.devices.size(), 1U);
}

SourceReport Complete(const Device& device) {
  SourceReport report = Before();
  report.devices[0] = device;
  return report;
}

Device Rich() {
  Device device = MakeDevice("GPU-a");
  device.model = Reading<std::string>::Of("H100");
  device.firmware =
      Reading<std::map<std::string, std::string>>::Of({{"gsp", "1"}, {"vbios", "96"}});
  device.uncorrected_errors = Reading<std::int64_t>::Of(0);
  device.retired_rows = Reading<std::int64_t>::Of(2);
  return device;
}

// A GPU that falls off the bus is still the GPU that it was.
TEST(KeepUnseenTest, ASickDeviceKeepsWhatItIsButNotHowItFares) {
  Device lost;
  lost.id = DeviceId{"GPU-a"};
  lost.firmware = Reading<std::map<std::string, std::string>>::Of({{"vbios", "96"}});
  lost.healthy = Reading<bool>::Of(false, "the GPU is lost");
  SourceReport now = Complete(lost);
  KeepUnseen(Complete(Rich()), now);
  EXPECT_EQ(now.devices[0].model,
            Reading<std::string>::Of("H100", std::string(kLastRead) + "not read"));
  EXPECT_EQ(now.devices[0].firmware.value.at("gsp"), "1");
  EXPECT_FALSE(now.devices[0].healthy.value);
  EXPECT_FALSE(now.devices[0].uncorrected_errors.known());
  EXPECT_FALSE(now.devices[0].retired_rows.known());
  EXPECT_EQ(now.devices[1], Before().devices[1]);
  // The reason does not grow from look to look.
  SourceReport again = Complete(lost);
  KeepUnseen(now, again);
  EXPECT_EQ(again.devices[0].model, now.devices[0].model);
}

TEST(KeepUnseenTest, AReadingThatFailsKeepsTheLastValueAndALostFactDoesNot) {
  Device now_device = Rich();
  now_device.model = Reading<std::string>::Failed("i/o error");
  now_device.firmware = Reading<std::map<std::string, std::string>>::Unknown("not supported");
  SourceReport now = Complete(now_device);
  KeepUnseen(Complete(Rich()), now);
  EXPECT_EQ(now.devices[0].model.value, "H100");
  EXPECT_FALSE(now.devices[0].firmware.known());
  // What is read anew holds at once.
  now_device.model = Reading<std::string>::Of("H200");
  SourceReport later = Complete(now_device);
  KeepUnseen(now, later);
  EXPECT_EQ(later.devices[0].model, Reading<std::string>::Of("H200"));
}

TEST(KeepUnseenTest, ASickDevicesNewFirmwareHolds) {
  Device sick = Rich();
  sick.firmware = Reading<std::map<std::string, std::string>>::Of({{"vbios", "97"}});
  sick.healthy = Reading<bool>::Of(false, "x");
  SourceReport now = Complete(sick);
  KeepUnseen(Complete(Rich()), now);
  EXPECT_EQ(now.devices[0].firmware.value.size(), 1U);
  EXPECT_EQ(now.devices[0].firmware.value.at("vbios"), "97");
}

}  // namespace
}  // namespace bimetal::agent
