#include "agent/inventory/to_api.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "agent/devices/fingerprint.h"

namespace bimetal::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Device MakeDevice(Vendor vendor, const std::string& id) {
  Device device;
  device.vendor = vendor;
  device.id = DeviceId{id};
  device.model = Reading<std::string>::Of("MI300X");
  device.driver = Reading<std::string>::Of("6.8");
  device.healthy = Reading<bool>::Of(true);
  return device;
}

Inventory TwoAmd() {
  Inventory inventory;
  inventory.kernel = Reading<std::string>::Of("6.1.0");
  inventory.devices = {MakeDevice(Vendor::kAmd, "GPU-1"), MakeDevice(Vendor::kAmd, "GPU-2")};
  return inventory;
}

api::VendorOrder OpenFirst(const Inventory& inventory) {
  api::VendorOrder order;
  order.set_vendor("amd");
  order.set_open_fingerprint(Fingerprint(inventory, Vendor::kAmd));
  order.add_open_devices("GPU-1");
  return order;
}

std::vector<std::string> OpenIds(const Inventory& inventory, const api::VendorOrder* order) {
  std::vector<std::string> out;
  for (const auto& device : OfferedDevices(inventory, Vendor::kAmd, order)) {
    if (device.open) out.push_back(device.id);
  }
  return out;
}

TEST(OfferedDevicesTest, EverythingIsOfferedAndNothingIsOpenWithoutAnOrder) {
  EXPECT_EQ(OfferedDevices(TwoAmd(), Vendor::kAmd, nullptr).size(), 2U);
  EXPECT_THAT(OpenIds(TwoAmd(), nullptr), IsEmpty());
}

TEST(OfferedDevicesTest, TheOrderOpensItsDevicesUnderThePresentFingerprint) {
  const auto inventory = TwoAmd();
  const auto order = OpenFirst(inventory);
  EXPECT_THAT(OpenIds(inventory, &order), ElementsAre("GPU-1"));
}

TEST(OfferedDevicesTest, AnotherFingerprintOpensNothing) {
  auto inventory = TwoAmd();
  const auto order = OpenFirst(inventory);
  inventory.kernel = Reading<std::string>::Of("6.9.0");
  EXPECT_THAT(OpenIds(inventory, &order), IsEmpty());
}

TEST(OfferedDevicesTest, EmptyFingerprintMatchesNothing) {
  api::VendorOrder order;
  order.add_open_devices("GPU-1");
  Inventory nothing;
  EXPECT_THAT(OfferedDevices(nothing, Vendor::kAmd, &order), IsEmpty());
  EXPECT_THAT(OpenIds(TwoAmd(), &order), IsEmpty());
}

TEST(OfferedDevicesTest, SickOrUnknownDeviceIsShutAlsoWhereItPassed) {
  auto inventory = TwoAmd();
  inventory.devices[0].healthy = Reading<bool>::Of(false, "ring timeout");
  auto order = OpenFirst(inventory);
  EXPECT_THAT(OpenIds(inventory, &order), IsEmpty());
  inventory.devices[0].healthy = Reading<bool>::Failed("driver hangs");
  order = OpenFirst(inventory);
  order.set_observe(true);
  EXPECT_THAT(OpenIds(inventory, &order), ElementsAre("GPU-2"));
}

TEST(OfferedDevicesTest, ObserveOpensWhatIsHealthyWithoutAPass) {
  api::VendorOrder order;
  order.set_observe(true);
  EXPECT_THAT(OpenIds(TwoAmd(), &order), ElementsAre("GPU-1", "GPU-2"));
}

TEST(OfferedDevicesTest, EachVendorIsByItself) {
  auto inventory = TwoAmd();
  inventory.devices.push_back(MakeDevice(Vendor::kNvidia, "GPU-n"));
  const auto offered = OfferedDevices(inventory, Vendor::kNvidia, nullptr);
  ASSERT_EQ(offered.size(), 1U);
  EXPECT_EQ(offered[0].id, "GPU-n");
}

TEST(ToApiTest, UnknownStaysUnknown) {
  Inventory inventory = TwoAmd();
  inventory.devices[0].healthy = Reading<bool>::Unknown("no counter");
  inventory.devices[0].model = Reading<std::string>::Unknown("no name");
  const auto out = ToApi(inventory);
  EXPECT_EQ(out.devices(0).health(), api::HEALTH_UNKNOWN);
  EXPECT_EQ(out.devices(0).health_reason(), "no counter");
  EXPECT_EQ(out.devices(0).model(), "");
  EXPECT_FALSE(out.devices(0).has_memory_bytes());
  EXPECT_FALSE(out.devices(0).has_numa_node());
  EXPECT_EQ(out.devices(0).index(), 0);
}

TEST(ToApiTest, EachVendorWithDevicesHasAStack) {
  auto inventory = TwoAmd();
  inventory.facts[Vendor::kAmd]["driver"] = Reading<std::string>::Of("6.8.5");
  inventory.facts[Vendor::kNvidia]["driver"] = Reading<std::string>::Of("580");
  const auto out = ToApi(inventory);
  ASSERT_EQ(out.stacks_size(), 1);
  EXPECT_EQ(out.stacks(0).vendor(), "amd");
  EXPECT_EQ(out.stacks(0).driver_version(), "6.8.5");
  EXPECT_EQ(out.stacks(0).fingerprint(), Fingerprint(inventory, Vendor::kAmd));
}

TEST(ToApiTest, WhatTheOperatorWouldRefuseIsCleanedOrCut) {
  auto inventory = TwoAmd();
  inventory.devices[0].model = Reading<std::string>::Of("MI\x01\xff" + std::string(500, 'x'));
  inventory.devices[0].serial = Reading<std::string>::Of("12 34");
  inventory.devices[0].memory_bytes = Reading<std::int64_t>::Of(-1);
  for (int i = 0; i < 1000; ++i) {
    inventory.findings.push_back(
        {"Xid", Severity::kError, "", "line\n" + std::to_string(i), "", ""});
  }
  const auto out = ToApi(inventory);
  EXPECT_EQ(out.devices(0).model().size(), 128U);
  EXPECT_EQ(out.devices(0).model().substr(0, 4), "MI??");
  EXPECT_EQ(out.devices(0).serial(), "12-34");
  EXPECT_FALSE(out.devices(0).has_memory_bytes());
  EXPECT_EQ(out.findings_size(), kMaxReportedFindings);
  EXPECT_EQ(out.findings(0).severity(), "Critical");
}

TEST(ToApiTest, CarriesIdentityLinksAndGaps) {
  auto inventory = TwoAmd();
  Device& device = inventory.devices[0];
  device.pci_id = Reading<std::string>::Of("1002:74a1");
  device.cpus = Reading<std::string>::Of("0-31,64-95");
  device.ecc = Reading<std::string>::Of("on");
  device.link_generation = Reading<std::int64_t>::Of(1);
  device.link_generation_max = Reading<std::int64_t>::Of(5);
  device.link_width = Reading<std::int64_t>::Of(8);
  device.link_width_max = Reading<std::int64_t>::Of(16);
  device.links = Reading<std::vector<DeviceLink>>::Of({{"xgmi", "GPU-2", 4, 3}});
  device.serial = Reading<std::string>::Failed("reading\x01 it: permission denied");
  device.architecture = Reading<std::string>::Of("gfx942", std::string(kLastRead) + "i/o error");
  const auto out = ToApi(inventory).devices(0);
  EXPECT_EQ(out.architecture(), "gfx942");
  EXPECT_EQ(out.unread().at("architecture"), "error: as last read; now: i/o error");
  EXPECT_EQ(out.pci_id(), "1002:74a1");
  EXPECT_EQ(out.cpus(), "0-31,64-95");
  EXPECT_EQ(out.ecc(), "on");
  EXPECT_EQ(out.link_generation(), 1);
  EXPECT_EQ(out.link_generation_max(), 5);
  EXPECT_EQ(out.link_width(), 8);
  EXPECT_EQ(out.link_width_max(), 16);
  ASSERT_EQ(out.links_size(), 1);
  EXPECT_EQ(out.links(0).kind(), "xgmi");
  EXPECT_EQ(out.links(0).peer(), "GPU-2");
  EXPECT_EQ(out.links(0).count(), 4);
  EXPECT_EQ(out.links(0).active(), 3);
  EXPECT_FALSE(out.has_in_use());
  EXPECT_EQ(out.unread().at("serial"), "error: reading? it: permission denied");
  EXPECT_EQ(out.unread().at("memory_bytes"), "unknown: not read");
  EXPECT_FALSE(out.unread().contains("model"));    // known
  EXPECT_FALSE(out.unread().contains("parent"));   // a whole GPU has none
  EXPECT_FALSE(out.unread().contains("healthy"));  // has a place of its own
}

TEST(ToApiTest, ManyLinksAreCut) {
  auto inventory = TwoAmd();
  inventory.devices[0].links = Reading<std::vector<DeviceLink>>::Of(
      std::vector<DeviceLink>(500, DeviceLink{"xgmi", std::string(400, 'x'), -1, INT64_MAX}));
  const auto out = ToApi(inventory).devices(0);
  EXPECT_EQ(out.links_size(), kMaxReportedLinks);
  EXPECT_EQ(out.links(0).peer().size(), 253U);
  EXPECT_EQ(out.links(0).count(), 0);
  EXPECT_EQ(out.links(0).active(), 0);
}

TEST(ToApiTest, TheStackShowsWhatWasHashed) {
  auto inventory = TwoAmd();
  inventory.facts[Vendor::kAmd]["flavor"] = Reading<std::string>::Of("dkms");
  inventory.facts[Vendor::kAmd]["toolkit"] = Reading<std::string>::Unknown("none");
  const auto stack = ToApi(inventory).stacks(0);
  EXPECT_EQ(stack.driver_flavor(), "dkms");
  EXPECT_EQ(stack.toolkit_version(), "");
  EXPECT_EQ(stack.fingerprint_text(), FingerprintText(inventory, Vendor::kAmd));
  // Many sorts of devices: whole lines up to the bound.
  for (int i = 0; i < 250; ++i) {
    inventory.devices.push_back(MakeDevice(Vendor::kAmd, "GPU-x" + std::to_string(i)));
    inventory.devices.back().model = Reading<std::string>::Of("model " + std::to_string(i));
  }
  const std::string text = ToApi(inventory).stacks(0).fingerprint_text();
  EXPECT_LE(text.size(), kMaxFingerprintText);
  EXPECT_GT(text.size(), kMaxFingerprintText / 2);
  EXPECT_TRUE(text.ends_with("\n"));
  EXPECT_EQ(FingerprintText(inventory, Vendor::kAmd).substr(0, text.size()), text);
}

TEST(ToApiTest, TooManyDevicesAreCutAndSaid) {
  Inventory inventory;
  for (int i = 0; i < 300; ++i) {
    inventory.devices.push_back(MakeDevice(Vendor::kAmd, "GPU-" + std::to_string(i)));
  }
  const auto out = ToApi(inventory);
  EXPECT_EQ(out.devices_size(), kMaxReportedDevices);
  ASSERT_EQ(out.findings_size(), 1);
  EXPECT_EQ(out.findings(0).code(), "TooManyDevices");
}

}  // namespace
}  // namespace bimetal::agent
