#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/machines/machine_fixture.h"

namespace bimetal::machines {
namespace {

using agent::FindCode;
using agent::Vendor;
using testing::ElementsAre;

class AmdMachineTest : public MachineTest {};

TEST_F(AmdMachineTest, TheAgentReadsWhatTheDescriptionSays) {
  const Machine machine = Build(Yaml("amd-mi300x-8"));
  const auto inventory = Inventory();
  ExpectRoundTrip(inventory, machine);
  EXPECT_THAT(inventory.findings, ElementsAre());
  EXPECT_EQ(inventory.facts.at(Vendor::kAmd).at("driver").value, "6.12.12");
  EXPECT_EQ(inventory.facts.at(Vendor::kAmd).at("runtime").value, "6.4.0");
  EXPECT_EQ(inventory.kernel.value, "6.8.0-90-generic");
  EXPECT_EQ(inventory.machine, root());
  const agent::Device& gpu = inventory.devices[0];
  EXPECT_EQ(gpu.partition.value, "SPX/NPS1");
  EXPECT_EQ(gpu.firmware.value.at("vbios"), "113-M3000100-103");
  EXPECT_EQ(gpu.link_generation.value, 5);
  EXPECT_EQ(gpu.link_width_max.value, 16);
  EXPECT_EQ(gpu.ecc.value, "on");
  EXPECT_TRUE(gpu.numa_node.known());
  EXPECT_EQ(gpu.device_nodes.size(), 3u);
  EXPECT_EQ(gpu.pci_id.value, "1002:74a1");
  EXPECT_EQ(gpu.cpus.value.size(), gpu.numa_node.value == 0 ? 4u : 6u);  // 0-95 or 96-191
  EXPECT_EQ(gpu.links.value.size(), 7u);
  EXPECT_EQ(gpu.retired_rows.value, 0);
  EXPECT_EQ(inventory.facts.at(Vendor::kAmd).at("flavor").value, "dkms");
  const agent::Telemetry& now = inventory.telemetry.at(gpu.id.value);
  EXPECT_EQ(now.temperature_millicelsius.value, 38'000);
  EXPECT_EQ(now.power_milliwatts.value, 131'000);
  EXPECT_EQ(now.power_cap_milliwatts.value, 750'000);
  EXPECT_EQ(now.energy_millijoules.value, 5'000'000);
  EXPECT_EQ(now.throttle_counts.value.size(), 5u);
}

TEST_F(AmdMachineTest, PartitionsHaveTheIdsOfTheDescription) {
  for (const std::string entry : {"amdgpu_xcp.", "amdgpu_xcp_"}) {
    std::string yaml = Yaml("amd-mi300x-8-cpx");
    yaml.replace(yaml.find("count: 8}"), 9, "count: 8, entryName: \"" + entry + "\"}");
    const Machine machine = Build(yaml);
    const auto inventory = Inventory();
    ExpectRoundTrip(inventory, machine);
    EXPECT_EQ(inventory.devices.size(), 64u);
    EXPECT_THAT(inventory.findings, ElementsAre());
  }
}

TEST_F(AmdMachineTest, RepartitioningReplacesWholeGpusByPartitions) {
  Build(Yaml("amd-mi300x-8"));
  const auto whole = Inventory();
  Build(Yaml("amd-mi300x-8-cpx"));
  const auto cut = Inventory();
  EXPECT_EQ(cut.devices.size(), 64u);
  for (const std::string& id : IdsOf(whole)) EXPECT_FALSE(IdsOf(cut).contains(id));
  EXPECT_NE(agent::Fingerprint(whole, Vendor::kAmd), agent::Fingerprint(cut, Vendor::kAmd));
  Build(Yaml("amd-mi300x-8"));
  EXPECT_EQ(IdsOf(Inventory()), IdsOf(whole));
}

TEST_F(AmdMachineTest, IdsAreUniqueAcrossNodesAndTheSameEachTime) {
  std::set<std::string> ids;
  std::set<std::string> boots;
  for (const std::string node : {"gpu-1", "gpu-2", "gpu-3"}) {
    Build(Yaml("amd-mi300x-8"), node);
    const auto inventory = Inventory();
    const auto some = IdsOf(inventory);
    ids.insert(some.begin(), some.end());
    boots.insert(inventory.boot_id.value);
  }
  EXPECT_EQ(ids.size(), 24u);
  EXPECT_EQ(boots.size(), 3u);
  Build(Yaml("amd-mi300x-8"), "gpu-2");
  for (const std::string& id : IdsOf(Inventory())) EXPECT_TRUE(ids.contains(id));
}

// Nodes of one description are one group, whatever their parts are called and wherever they sit.
TEST_F(AmdMachineTest, EqualMachinesHaveEqualFingerprints) {
  Build(Yaml("amd-mi300x-8"), "gpu-1");
  const auto one = Inventory();
  std::string yaml = Yaml("amd-mi300x-8");
  const std::string bus = "0000:05:00.0";
  yaml.replace(yaml.find(bus), bus.size(), "0000:f1:00.0");
  Build(yaml, "gpu-2");
  const auto two = Inventory();
  EXPECT_NE(one.devices[0].id, two.devices[0].id);
  EXPECT_EQ(agent::FingerprintText(one, Vendor::kAmd), agent::FingerprintText(two, Vendor::kAmd));
  yaml.replace(yaml.find("driver: 6.12.12"), 15, "driver: 6.12.13");
  Build(yaml, "gpu-2");
  EXPECT_NE(agent::Fingerprint(one, Vendor::kAmd), agent::Fingerprint(Inventory(), Vendor::kAmd));
}

// MI300 counts throttling only: the second look knows it from the first.
TEST_F(AmdMachineTest, ThrottlingIsKnownFromTheSecondLookOn) {
  const Machine machine = Build(Yaml("amd-mi300x-8"));
  const std::string id = machine.Devices()[0].id;
  agent::InventoryReader reader(root(), Options());
  EXPECT_FALSE(reader.Read().telemetry.at(id).throttle.known());
  const std::string path = "sys/bus/pci/devices/0000:05:00.0/gpu_metrics";
  std::string metrics = ReadFile(root() + "/" + path).value();
  metrics[48] = 9;  // power
  tree().Write(path, metrics);
  const auto now = reader.Read();
  EXPECT_THAT(now.telemetry.at(id).throttle.value, ElementsAre("power-cap"));
  EXPECT_THAT(now.telemetry.at(machine.Devices()[1].id).throttle.value, ElementsAre());
}

TEST_F(AmdMachineTest, AVanishedDeviceIsGoneAndComesBack) {
  Machine machine = Build(Yaml("amd-mi300x-8"));
  const auto before = Inventory();
  ASSERT_TRUE(machine.Inject({Fault::Kind::kVanish, 3}));
  const auto without = Inventory();
  EXPECT_EQ(without.devices.size(), 7u);
  EXPECT_FALSE(IdsOf(without).contains(machine.Devices()[3].id));
  EXPECT_NE(agent::Fingerprint(without, Vendor::kAmd), agent::Fingerprint(before, Vendor::kAmd));
  ASSERT_TRUE(machine.Clear(3, Fault::Kind::kVanish));
  const auto after = Inventory();
  EXPECT_EQ(after.devices, before.devices);
  EXPECT_EQ(agent::Fingerprint(after, Vendor::kAmd), agent::Fingerprint(before, Vendor::kAmd));
}

TEST_F(AmdMachineTest, AllDevicesMayVanish) {
  Machine machine = Build(Yaml("amd-mi300x-8"));
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(machine.Inject({Fault::Kind::kVanish, i}));
  EXPECT_TRUE(Inventory().devices.empty());
  EXPECT_EQ(*machine.Clear({}, {}), 8u);
  EXPECT_EQ(Inventory().devices.size(), 8u);
}

TEST_F(AmdMachineTest, MemoryErrorsMakeTheDeviceUnhealthy) {
  Machine machine = Build(Yaml("amd-mi300x-8"));
  Fault fault{Fault::Kind::kEcc, 2};
  fault.count = 5;
  ASSERT_TRUE(machine.Inject(fault));
  const auto inventory = Inventory();
  const agent::Device* sick = FindDevice(inventory, machine.Devices()[2].id);
  ASSERT_NE(sick, nullptr);
  EXPECT_EQ(sick->uncorrected_errors.value, 5);
  EXPECT_FALSE(sick->healthy.value);
  EXPECT_EQ(FindCode(inventory.findings, "UncorrectedMemoryErrors")->device, sick->id.value);
  EXPECT_EQ(HealthyCount(inventory), 7u);
}

TEST_F(AmdMachineTest, ACorruptFileHidesNoOtherDevice) {
  const Machine machine = Build(Yaml("amd-mi300x-8"));
  tree().Write("sys/class/kfd/kfd/topology/nodes/4/properties", std::string("\0\xff garbage", 10));
  const auto inventory = Inventory();
  // Still eight: the card is there, and nobody says any more that it is usable.
  EXPECT_EQ(inventory.devices.size(), 8u);
  EXPECT_EQ(HealthyCount(inventory), 7u);
  EXPECT_NE(FindCode(inventory.findings, "KfdNodeUnreadable"), nullptr);
}

TEST_F(AmdMachineTest, ChangesBackAndForthAreFollowed) {
  Machine machine = Build(Yaml("amd-mi300x-8"));
  ASSERT_TRUE(machine.Inject({Fault::Kind::kVanish, 7}));
  std::vector<agent::Inventory> seen;
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(i % 2 == 0 ? machine.Clear({}, {}).has_value()
                           : machine.Inject({Fault::Kind::kVanish, 7}).has_value());
    seen.push_back(Inventory());
  }
  EXPECT_EQ(seen[0].devices, seen[2].devices);
  EXPECT_EQ(seen[1].devices, seen[3].devices);
}

TEST_F(AmdMachineTest, BothVendorsOfAMixedNodeAreRead) {
  const Machine machine = Build(Yaml("mixed-h100-4-mi300x-4"));
  const auto inventory = Inventory();
  ExpectRoundTrip(inventory, machine);
  EXPECT_THAT(inventory.findings, ElementsAre());
  EXPECT_EQ(agent::Fingerprint(inventory, Vendor::kAmd).size(), 16u);
  EXPECT_EQ(agent::Fingerprint(inventory, Vendor::kNvidia).size(), 16u);
  EXPECT_NE(agent::Fingerprint(inventory, Vendor::kAmd),
            agent::Fingerprint(inventory, Vendor::kNvidia));
}

}  // namespace
}  // namespace bimetal::machines
