#include "agent/devices/fingerprint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>
#include <set>

namespace bimetal::agent {
namespace {

using Text = Reading<std::string>;
using Number = Reading<std::int64_t>;
using Links = Reading<std::vector<DeviceLink>>;

Device Gpu(const std::string& id) {
  Device d;
  d.vendor = Vendor::kAmd;
  d.id.value = id;
  d.model = Text::Of("AMD Instinct MI300X OAM");
  d.architecture = Text::Of("gfx942");
  d.pci_id = Text::Of("1002:74a1");
  d.pci_address = Text::Of("0000:05:00.0");
  d.serial = Text::Of("1");
  d.firmware = Reading<std::map<std::string, std::string>>::Of({{"vbios", "113"}, {"mec", "7"}});
  d.partition = Text::Of("SPX/NPS1");
  d.ecc = Text::Of("on");
  d.cpus = Text::Of("0-31,64-95");
  d.numa_node = Number::Of(0);
  d.link_generation = Number::Of(5);
  d.link_generation_max = Number::Of(5);
  d.link_width = Number::Of(16);
  d.link_width_max = Number::Of(16);
  d.links = Links::Of({{"xgmi", id == "GPU-1" ? "GPU-2" : "GPU-1", 1, 1}});
  d.healthy = Reading<bool>::Of(true);
  return d;
}

Inventory Node() {
  Inventory inventory;
  inventory.devices = {Gpu("GPU-1"), Gpu("GPU-2")};
  inventory.kernel = Text::Of("6.8.0");
  inventory.boot_id = Text::Of("b1");
  auto& facts = inventory.facts[Vendor::kAmd];
  facts["driver"] = Text::Of("6.12.12");
  facts["flavor"] = Text::Of("dkms");
  facts["runtime"] = Text::Of("6.4.0");
  return inventory;
}

// The same with NVIDIA's devices, which have a container toolkit too.
Inventory NvidiaNode() {
  Inventory inventory = Node();
  for (Device& device : inventory.devices) device.vendor = Vendor::kNvidia;
  auto& facts = inventory.facts[Vendor::kNvidia];
  facts = inventory.facts[Vendor::kAmd];
  facts["flavor"] = Text::Of("open");
  facts["toolkit"] = Text::Of("1.17.8");
  return inventory;
}

using Change = std::function<void(Inventory&)>;

std::string Changed(const Change& change) {
  Inventory inventory = Node();
  change(inventory);
  return Fingerprint(inventory, Vendor::kAmd);
}

TEST(FingerprintTest, IsSixteenHexDigitsOfAPinnedText) {
  EXPECT_EQ(FingerprintText(Node(), Vendor::kAmd),
            "bimetal-fingerprint 2\nvendor amd\nkernel 6.8.0\ndriver 6.12.12\nflavor dkms\n"
            "runtime 6.4.0\ngpus 2\n"
            "device 2 x|model=AMD Instinct MI300X OAM|pci=1002:74a1|architecture=gfx942|"
            "firmware=mec:7,vbios:113|partition=SPX/NPS1|ecc=on|link=gen5 x16 of x16|"
            "links=xgmi:1\n");
  EXPECT_EQ(Fingerprint(Node(), Vendor::kAmd).size(), 16u);
}

struct Case {
  const char* what;
  Change change;
};

TEST(FingerprintTest, DoesNotChangeWithWhatMovesByItselfOrNamesTheMachine) {
  const std::string same = Fingerprint(Node(), Vendor::kAmd);
  const std::vector<Case> cases = {
      {"enumeration order", [](Inventory& i) { std::reverse(i.devices.begin(), i.devices.end()); }},
      {"boot", [](Inventory& i) { i.boot_id = Text::Of("b2"); }},
      {"index", [](Inventory& i) { i.devices[0].index = 7; }},
      {"device id", [](Inventory& i) { i.devices[0].id.value = "GPU-9"; }},
      {"serial", [](Inventory& i) { i.devices[0].serial = Text::Of("2"); }},
      {"serial that is lost", [](Inventory& i) { i.devices[0].serial = {}; }},
      {"bus address", [](Inventory& i) { i.devices[0].pci_address = Text::Of("0001:0b:00.0"); }},
      {"NUMA node", [](Inventory& i) { i.devices[0].numa_node = Number::Of(1); }},
      {"order of CPUs", [](Inventory& i) { i.devices[0].cpus = Text::Of("64-95,0-31"); }},
      {"device files", [](Inventory& i) { i.devices[0].device_nodes = {"/dev/dri/card9"}; }},
      {"health", [](Inventory& i) { i.devices[0].healthy = Reading<bool>::Of(false, "x"); }},
      {"errors", [](Inventory& i) { i.devices[0].uncorrected_errors = Number::Of(3); }},
      {"retired rows", [](Inventory& i) { i.devices[0].retired_rows = Number::Of(1); }},
      {"pending rows", [](Inventory& i) { i.devices[0].rows_pending = Number::Of(1); }},
      {"findings", [](Inventory& i) { i.findings.emplace_back(); }},
      {"temperature",
       [](Inventory& i) { i.telemetry["GPU-1"].temperature_millicelsius = Number::Of(90'000); }},
      {"clocks", [](Inventory& i) { i.telemetry["GPU-1"].graphics_clock_mhz = Number::Of(1); }},
      {"energy, which grows with uptime",
       [](Inventory& i) { i.telemetry["GPU-1"].energy_millijoules = Number::Of(1); }},
      {"a process that uses it",
       [](Inventory& i) {
         i.telemetry["GPU-1"].processes = Reading<std::vector<GpuProcess>>::Of({{7, 1}});
       }},
      {"link speed of the moment",
       [](Inventory& i) { i.devices[0].link_generation = Number::Of(1); }},
      {"a link that is down", [](Inventory& i) { i.devices[0].links.value[0].active = 0; }},
      {"library version", [](Inventory& i) { i.facts[Vendor::kAmd]["library"] = Text::Of("1"); }},
      {"the other vendor's devices", [](Inventory& i) {
         i.devices.push_back(Gpu("GPU-n"));
         i.devices.back().vendor = Vendor::kNvidia;
       }}};
  for (const Case& one : cases) EXPECT_EQ(Changed(one.change), same) << one.what;
}

TEST(FingerprintTest, ChangesWithEveryPartThatAPassDependsOn) {
  const std::vector<Case> cases = {
      {"kernel", [](Inventory& i) { i.kernel = Text::Of("6.8.1"); }},
      {"driver", [](Inventory& i) { i.facts[Vendor::kAmd]["driver"] = Text::Of("6.14"); }},
      {"flavour", [](Inventory& i) { i.facts[Vendor::kAmd]["flavor"] = Text::Of("in-tree"); }},
      {"runtime", [](Inventory& i) { i.facts[Vendor::kAmd]["runtime"] = Text::Of("7.0"); }},
      {"VBIOS", [](Inventory& i) { i.devices[0].firmware.value["vbios"] = "114"; }},
      {"the other's VBIOS", [](Inventory& i) { i.devices[1].firmware.value["vbios"] = "115"; }},
      {"a firmware block", [](Inventory& i) { i.devices[0].firmware.value["mec"] = "8"; }},
      {"a firmware block more", [](Inventory& i) { i.devices[0].firmware.value["smc"] = "1"; }},
      {"a firmware block less", [](Inventory& i) { i.devices[0].firmware.value.erase("mec"); }},
      {"partition mode", [](Inventory& i) { i.devices[0].partition = Text::Of("CPX/NPS4"); }},
      {"ECC", [](Inventory& i) { i.devices[0].ecc = Text::Of("off"); }},
      {"link width", [](Inventory& i) { i.devices[0].link_width = Number::Of(8); }},
      {"possible width", [](Inventory& i) { i.devices[0].link_width_max = Number::Of(8); }},
      {"possible speed", [](Inventory& i) { i.devices[0].link_generation_max = Number::Of(4); }},
      {"number of links", [](Inventory& i) { i.devices[0].links.value.clear(); }},
      {"model", [](Inventory& i) { i.devices[0].model = Text::Of("AMD Instinct MI325X"); }},
      {"PCI id", [](Inventory& i) { i.devices[0].pci_id = Text::Of("1002:74b5"); }},
      {"architecture", [](Inventory& i) { i.devices[0].architecture = Text::Of("gfx950"); }},
      {"a device less", [](Inventory& i) { i.devices.pop_back(); }},
      {"a device more", [](Inventory& i) { i.devices.push_back(Gpu("GPU-3")); }},
      {"two partitions of one GPU in place of two GPUs",
       [](Inventory& i) {
         for (Device& device : i.devices) device.parent = Text::Of("GPU-1");
       }},
      // A fact that is lost is a change too: unknown matches nothing that was known.
      {"firmware that is lost", [](Inventory& i) { i.devices[0].firmware = {}; }},
      {"kernel that is lost", [](Inventory& i) { i.kernel = Text::Failed("io"); }}};
  std::set<std::string> seen = {Fingerprint(Node(), Vendor::kAmd)};
  for (const Case& one : cases) EXPECT_TRUE(seen.insert(Changed(one.change)).second) << one.what;
}

TEST(FingerprintTest, HasTheContainerToolkitOfNvidiaAlone) {
  Inventory other = NvidiaNode();
  other.facts[Vendor::kNvidia]["toolkit"] = Text::Of("1.18.0");
  EXPECT_NE(Fingerprint(other, Vendor::kNvidia), Fingerprint(NvidiaNode(), Vendor::kNvidia));
  other = Node();
  other.facts[Vendor::kAmd]["toolkit"] = Text::Of("1.18.0");
  EXPECT_EQ(Fingerprint(other, Vendor::kAmd), Fingerprint(Node(), Vendor::kAmd));
}

// Two nodes that differ in nothing but their parts' names are one group; seeds 1 to 200.
TEST(FingerprintTest, EqualNodesHaveEqualFingerprintsWhateverTheirPartsAreCalled) {
  for (unsigned seed = 1; seed <= 200; ++seed) {
    std::mt19937 random(seed);
    Inventory one = Node();
    // A node of several sorts of devices.
    for (auto n = random() % 6; n > 0; --n) {
      one.devices.push_back(Gpu("GPU-" + std::to_string(random())));
      one.devices.back().firmware.value["vbios"] = std::to_string(random() % 3);
      one.devices.back().link_width = Number::Of(random() % 2 == 0 ? 16 : 8);
    }
    Inventory two = one;
    for (Device& device : two.devices) {
      device.id.value = "GPU-" + std::to_string(random());
      device.serial = Text::Of(std::to_string(random()));
      device.pci_address = Text::Of("0000:" + std::to_string(random() % 90 + 10) + ":00.0");
      device.index = static_cast<int>(random() % 8);
      device.numa_node = Number::Of(static_cast<std::int64_t>(random() % 2));
      two.telemetry[device.id.value].power_milliwatts =
          Number::Of(static_cast<std::int64_t>(random() % 1000));
    }
    std::shuffle(two.devices.begin(), two.devices.end(), random);
    ASSERT_EQ(FingerprintText(one, Vendor::kAmd), FingerprintText(two, Vendor::kAmd))
        << "seed " << seed;
  }
}

// Texts of the machine cannot imitate another machine's.
TEST(FingerprintTest, SeparatorsInsideAValueStandForThemselves) {
  Inventory one = Node();
  one.devices[0].model = Text::Of("a|pci=b\ndevice 1 x");
  EXPECT_EQ(FingerprintText(one, Vendor::kAmd).find("a|pci=b"), std::string::npos);
}

TEST(FingerprintTest, IsEmptyWithoutDevicesOfTheVendor) {
  EXPECT_EQ(Fingerprint(Node(), Vendor::kNvidia), "");
  EXPECT_EQ(FingerprintText(Inventory{}, Vendor::kAmd), "");
}

}  // namespace
}  // namespace bimetal::agent
