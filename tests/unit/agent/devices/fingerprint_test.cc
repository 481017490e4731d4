#include "agent/devices/fingerprint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

namespace bimetal::agent {
namespace {

using Text = Reading<std::string>;
using Number = Reading<std::int64_t>;

Device Gpu(const std::string& id) {
  Device d;
  d.vendor = Vendor::kAmd;
  d.id.value = id;
  d.model = Text::Of("AMD Instinct MI300X OAM");
  d.architecture = Text::Of("gfx942");
  d.firmware = Reading<std::map<std::string, std::string>>::Of({{"vbios", "113"}, {"mec", "7"}});
  d.partition = Text::Of("SPX/NPS1");
  d.link_generation = Number::Of(5);
  d.link_generation_max = Number::Of(5);
  d.link_width = Number::Of(16);
  d.link_width_max = Number::Of(16);
  d.healthy = Reading<bool>::Of(true);
  return d;
}

Inventory Node() {
  Inventory inventory;
  inventory.devices = {Gpu("GPU-1"), Gpu("GPU-2")};
  inventory.kernel = Text::Of("6.8.0");
  inventory.boot_id = Text::Of("b1");
  inventory.facts[Vendor::kAmd]["driver"] = Text::Of("6.12.12");
  inventory.facts[Vendor::kAmd]["runtime"] = Text::Of("6.4.0");
  return inventory;
}

std::string Changed(const std::function<void(Inventory&)>& change) {
  Inventory inventory = Node();
  change(inventory);
  return Fingerprint(inventory, Vendor::kAmd);
}

TEST(FingerprintTest, IsSixteenHexDigitsAndPinned) {
  EXPECT_EQ(FingerprintText(Node(), Vendor::kAmd),
            "bimetal-fingerprint 1\nvendor amd\nkernel 6.8.0\ndriver 6.12.12\nruntime 6.4.0\n"
            "device GPU-1|model=AMD Instinct MI300X OAM|architecture=gfx942|"
            "firmware=mec:7,vbios:113|partition=SPX/NPS1|link=gen5 x16 of x16\n"
            "device GPU-2|model=AMD Instinct MI300X OAM|architecture=gfx942|"
            "firmware=mec:7,vbios:113|partition=SPX/NPS1|link=gen5 x16 of x16\n");
  EXPECT_EQ(Fingerprint(Node(), Vendor::kAmd).size(), 16u);
}

TEST(FingerprintTest, DoesNotChangeWithWhatMovesByItself) {
  const std::string same = Fingerprint(Node(), Vendor::kAmd);
  EXPECT_EQ(Changed([](Inventory& i) { std::reverse(i.devices.begin(), i.devices.end()); }), same);
  EXPECT_EQ(Changed([](Inventory& i) { i.boot_id = Text::Of("b2"); }), same);
  EXPECT_EQ(Changed([](Inventory& i) { i.devices[0].index = 7; }), same);
  EXPECT_EQ(Changed([](Inventory& i) { i.devices[0].device_nodes = {"/dev/dri/card9"}; }), same);
  EXPECT_EQ(Changed([](Inventory& i) { i.devices[0].healthy = Reading<bool>::Of(false, "x"); }),
            same);
  EXPECT_EQ(Changed([](Inventory& i) { i.devices[0].uncorrected_errors = Number::Of(3); }), same);
  EXPECT_EQ(Changed([](Inventory& i) { i.findings.emplace_back(); }), same);
  // An idle GPU lowers its link speed.
  EXPECT_EQ(Changed([](Inventory& i) { i.devices[0].link_generation = Number::Of(1); }), same);
  // The other vendor's devices have their own.
  EXPECT_EQ(Changed([](Inventory& i) {
              i.devices.push_back(Gpu("GPU-n"));
              i.devices.back().vendor = Vendor::kNvidia;
            }),
            same);
}

TEST(FingerprintTest, ChangesWithWhatAResultHoldsFor) {
  const std::string same = Fingerprint(Node(), Vendor::kAmd);
  const std::vector<std::function<void(Inventory&)>> changes = {
      [](Inventory& i) { i.kernel = Text::Of("6.8.1"); },
      [](Inventory& i) { i.facts[Vendor::kAmd]["driver"] = Text::Of("6.14"); },
      [](Inventory& i) { i.facts[Vendor::kAmd]["runtime"] = Text::Of("7.0"); },
      [](Inventory& i) { i.devices[0].firmware.value["mec"] = "8"; },
      [](Inventory& i) { i.devices[0].partition = Text::Of("CPX/NPS4"); },
      [](Inventory& i) { i.devices[0].link_width = Number::Of(8); },
      [](Inventory& i) { i.devices[0].link_generation_max = Number::Of(4); },
      [](Inventory& i) { i.devices[0].model = Text::Of("AMD Instinct MI325X"); },
      [](Inventory& i) { i.devices.pop_back(); },
      [](Inventory& i) { i.devices[1].id.value = "GPU-3"; },
      // A fact that is lost is a change too: unknown matches nothing that was known.
      [](Inventory& i) { i.devices[0].firmware = {}; },
      [](Inventory& i) { i.kernel = Text::Failed("io"); }};
  std::set<std::string> seen = {same};
  for (std::size_t i = 0; i < changes.size(); ++i) {
    EXPECT_TRUE(seen.insert(Changed(changes[i])).second) << "change " << i;
  }
}

TEST(FingerprintTest, IsEmptyWithoutDevicesOfTheVendor) {
  EXPECT_EQ(Fingerprint(Node(), Vendor::kNvidia), "");
  EXPECT_EQ(FingerprintText(Inventory{}, Vendor::kAmd), "");
}

}  // namespace
}  // namespace bimetal::agent
