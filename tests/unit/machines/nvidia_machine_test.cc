#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "agent/devices/labels.h"
#include "tests/unit/machines/machine_fixture.h"

namespace bimetal::machines {
namespace {

using agent::FindCode;
using agent::Known;
using agent::Vendor;
using testing::ElementsAre;
using testing::HasSubstr;

class NvidiaMachineTest : public MachineTest {
 protected:
  // Adds or replaces one line of the library's answers.
  void Answer(const std::string& line) {
    const std::string path = "machine/nvml.txt";
    // "system <key>" or "device <index> <key>" names the answer.
    auto end = line.find(' ', line.find(' ') + 1);
    if (line.starts_with("device")) end = line.find(' ', end + 1);
    const std::string key = line.substr(0, end) + " ";
    std::string out;
    std::istringstream in(ReadFile(root() + "/" + path).value());
    for (std::string old; std::getline(in, old);) {
      if (!old.starts_with(key)) out += old + "\n";
    }
    tree().Write(path, out + line + "\n");
  }
};

TEST_F(NvidiaMachineTest, TheAgentReadsWhatTheDescriptionSays) {
  const Machine machine = Build(Yaml("nvidia-h100-8"));
  const auto inventory = Inventory();
  ExpectRoundTrip(inventory, machine);
  EXPECT_THAT(inventory.findings, ElementsAre());
  EXPECT_EQ(inventory.facts.at(Vendor::kNvidia).at("driver").value, "565.57.01");
  EXPECT_EQ(inventory.facts.at(Vendor::kNvidia).at("runtime").value, "CUDA 12.7");
  const agent::Device* gpu = FindDevice(inventory, machine.Devices()[1].id);
  ASSERT_NE(gpu, nullptr);
  EXPECT_EQ(gpu->pci_address.value, "0000:2a:00.0");
  EXPECT_EQ(gpu->partition.value, "off");
  EXPECT_EQ(gpu->ecc.value, "on");
  EXPECT_EQ(gpu->uncorrected_errors.value, 0);
  EXPECT_EQ(gpu->firmware.value.at("vbios"), "96.00.74.00.01");
  EXPECT_EQ(gpu->firmware.value.at("gsp"), "565.57.01");
  EXPECT_THAT(gpu->device_nodes, ElementsAre("/dev/nvidia-uvm", "/dev/nvidia1", "/dev/nvidiactl"));
}

// The library says so itself: a simulated one never passes for a real one, marker file or not.
TEST_F(NvidiaMachineTest, StaysSimulatedWithoutItsMarker) {
  Build(Yaml("nvidia-h100-8"));
  tree().Remove("simulated");
  EXPECT_TRUE(Inventory().simulated);
}

TEST_F(NvidiaMachineTest, R01AnUnsupportedMemoryQueryHidesNoDevice) {
  const Machine machine = Build(Yaml("nvidia-h100-8"));
  Answer("device 1 memory !3");
  Answer("device 2 memory na");
  Answer("device 3 ecc !3");
  auto inventory = Inventory();
  EXPECT_EQ(inventory.devices.size(), 8u);
  EXPECT_EQ(HealthyCount(inventory), 8u);
  for (const int i : {1, 2}) {
    const agent::Device* gpu = FindDevice(inventory, machine.Devices()[static_cast<size_t>(i)].id);
    EXPECT_EQ(gpu->memory_bytes.state, Known::kUnknown);
    EXPECT_EQ(gpu->compute_units.value, 132);
  }
  EXPECT_THAT(FindDevice(inventory, machine.Devices()[1].id)->memory_bytes.why,
              HasSubstr("not supported"));
  EXPECT_EQ(FindDevice(inventory, machine.Devices()[3].id)->ecc.state, Known::kUnknown);
  // One warning a device, the same in every report.
  EXPECT_EQ(inventory.findings, Inventory().findings);
}

TEST_F(NvidiaMachineTest, R01EveryFieldIsReadByItself) {
  const Machine machine = Build(Yaml("nvidia-h100-8"));
  for (const std::string query :
       {"name", "serial", "minor", "pci", "memory", "cores", "capability", "vbios", "gsp",
        "inforom", "ecc", "ecc_uncorrected", "remapped", "mig", "link_generation", "link_width"}) {
    // Each answer by a device of its own, all in one look: a look is a process.
    for (const std::string answer : {"2 !3", "4 !999", "6 !4"}) {
      Answer("device " + answer.substr(0, 2) + query + answer.substr(1));
    }
    const auto inventory = Inventory();
    EXPECT_EQ(IdsOf(inventory).size(), 8u) << query;
    for (const std::size_t i : {2u, 4u, 6u}) {
      EXPECT_TRUE(FindDevice(inventory, machine.Devices()[i].id)->healthy.value) << query << i;
    }
    Build(Yaml("nvidia-h100-8"));
  }
}

TEST_F(NvidiaMachineTest, R03InventoryFollowsMigWithoutCountingTwice) {
  const Machine whole = Build(Yaml("nvidia-h100-8"));
  ExpectRoundTrip(Inventory(), whole);
  const Machine cut = Build(Yaml("nvidia-h100-8-mig"));
  const auto slices = Inventory();
  EXPECT_EQ(slices.devices.size(), 56u);
  ExpectRoundTrip(slices, cut);
  std::set<std::string> parents;
  for (const agent::Device& device : slices.devices) {
    EXPECT_EQ(device.partition.value, "1g.10gb");
    EXPECT_EQ(device.model.value, "NVIDIA H100 80GB HBM3");
    parents.insert(device.parent.value);
    EXPECT_FALSE(IdsOf(slices).contains(device.parent.value));
  }
  EXPECT_EQ(parents.size(), 8u);
  std::string big = Yaml("nvidia-h100-8");
  big += "    mig:\n      - {profile: 7g.80gb, memoryBytes: 84825604096, computeUnits: 132}\n";
  const Machine one = Build(big);
  ExpectRoundTrip(Inventory(), one);
  EXPECT_EQ(Inventory().devices.size(), 8u);
}

TEST_F(NvidiaMachineTest, NvLinksAreBundledByWhatIsAtTheOtherEnd) {
  Build(Yaml("nvidia-h100-8"));
  auto inventory = Inventory();
  ASSERT_TRUE(inventory.devices[0].links.known()) << inventory.devices[0].links.why;
  // All eighteen end at switches, which are no devices.
  EXPECT_THAT(inventory.devices[0].links.value,
              ElementsAre(agent::DeviceLink{"nvlink", "", 18, 18}));
  // Device 1 has one link down, three to device 2 and no link more.
  const std::string text = ReadFile(root() + "/machine/nvml.txt").value();
  std::string out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with("device 1 nvlink ")) out += line + "\n";
  }
  out += "device 1 nvlink 0 0\n";
  for (int n = 1; n <= 3; ++n) {
    out += "device 1 nvlink " + std::to_string(n) + " 1 0000:3a:00.0\n";
  }
  tree().Write("machine/nvml.txt", out);
  inventory = Inventory();
  const Machine machine = Machine::Open(root()).value();
  const std::string peer = machine.Devices()[2].id;
  EXPECT_THAT(
      FindDevice(inventory, machine.Devices()[1].id)->links.value,
      ElementsAre(agent::DeviceLink{"nvlink", "", 1, 0}, agent::DeviceLink{"nvlink", peer, 3, 3}));
}

TEST_F(NvidiaMachineTest, EveryNewFieldIsRead) {
  const Machine machine = Build(Yaml("nvidia-h100-8"));
  Answer("device 1 remapped 2 1 1 0");
  Answer("device 1 processes 4711:1048576 17:5");
  Answer("device 1 clock_reasons 100");
  const auto inventory = Inventory();
  const std::string id = machine.Devices()[1].id;
  const agent::Device& gpu = *FindDevice(inventory, id);
  EXPECT_EQ(gpu.pci_id.value, "10de:2330");
  EXPECT_EQ(gpu.cpus.value, "0-95");
  EXPECT_EQ(gpu.retired_rows.value, 3);
  EXPECT_EQ(gpu.rows_pending.value, 1);
  EXPECT_EQ(gpu.rows_failed.value, 0);
  const auto& facts = inventory.facts.at(Vendor::kNvidia);
  EXPECT_EQ(facts.at("flavor").value, "open");
  EXPECT_EQ(facts.at("toolkit").value, "1.17.8");
  const agent::Telemetry& now = inventory.telemetry.at(id);
  EXPECT_EQ(now.temperature_millicelsius.value, 31'000);
  EXPECT_EQ(now.memory_temperature_millicelsius.value, 35'000);
  EXPECT_EQ(now.power_milliwatts.value, 70'000);
  EXPECT_EQ(now.power_cap_milliwatts.value, 700'000);
  EXPECT_EQ(now.energy_millijoules.value, 123'456'789);
  EXPECT_EQ(now.graphics_clock_mhz.value, 345);
  EXPECT_EQ(now.memory_clock_mhz.value, 2619);
  EXPECT_EQ(now.corrected_errors.value, 0);
  EXPECT_THAT(now.throttle.value, ElementsAre("hardware-thermal", "power-cap", "thermal"));
  EXPECT_EQ(now.fabric.value, "completed");
  EXPECT_EQ(now.recovery_action.value, "none");
  EXPECT_THAT(now.processes.value,
              ElementsAre(agent::GpuProcess{17, 5}, agent::GpuProcess{4711, 1048576}));
}

// What cannot be answered is that field's gap and no other's.
TEST_F(NvidiaMachineTest, EachNewQueryMayFailByItself) {
  const Machine machine = Build(Yaml("nvidia-h100-8"));
  for (const std::string query : {"remapped", "nvlink", "processes", "fabric", "clock_reasons"}) {
    const std::string asked = query + (query == "nvlink" ? " 0 " : " ");
    Answer("device 4 " + asked + "!3");
    Answer("device 5 " + asked + "!999");
    const auto inventory = Inventory();
    for (const std::size_t i : {4u, 5u}) {
      const std::string id = machine.Devices()[i].id;
      const agent::Device& gpu = *FindDevice(inventory, id);
      EXPECT_TRUE(gpu.healthy.value) << query << i;
      EXPECT_EQ(gpu.pci_id.value, "10de:2330") << query << i;
      EXPECT_TRUE(inventory.telemetry.at(id).power_milliwatts.known()) << query << i;
    }
    Build(Yaml("nvidia-h100-8"));
  }
}

TEST_F(NvidiaMachineTest, GpusBeforeAmpereRetirePages) {
  const Machine machine = Build(Yaml("nvidia-h100-8"));
  Answer("device 0 remapped !3");
  Answer("device 0 retired_pending 1");
  const std::string text = ReadFile(root() + "/machine/nvml.txt").value();
  tree().Write("machine/nvml.txt", text + "device 0 retired 0 4\ndevice 0 retired 1 1\n");
  const auto inventory = Inventory();
  const agent::Device& gpu = *FindDevice(inventory, machine.Devices()[0].id);
  EXPECT_EQ(gpu.retired_rows.value, 5);
  EXPECT_EQ(gpu.rows_pending.value, 1);
  EXPECT_EQ(gpu.rows_failed.state, Known::kUnknown);
}

TEST_F(NvidiaMachineTest, MigWithoutInstancesOffersNothingAndSaysSo) {
  Build(Yaml("nvidia-h100-8"));
  Answer("device 0 mig 1");
  const auto inventory = Inventory();
  EXPECT_EQ(inventory.devices.size(), 7u);
  EXPECT_NE(FindCode(inventory.findings, "MigWithoutInstances"), nullptr);
  EXPECT_EQ(FindCode(inventory.findings, "InventoryInconsistent"), nullptr);
}

TEST_F(NvidiaMachineTest, R04KeepsOddNamesRawAndReportsTheClash) {
  const Machine machine = Build(Yaml("nvidia-h100-8"));
  const std::vector<std::string> names = {"NVIDIA TITAN X (Pascal)",
                                          "NVIDIA TITAN X [Pascal]",
                                          std::string(30, 'a') + "/" + std::string(44, 'b'),
                                          "ends in a space ",
                                          "Gr\xc3\xa4phics",
                                          "tab\there"};
  for (std::size_t i = 0; i < names.size(); ++i) {
    Answer("device " + std::to_string(i) + " name " + names[i]);
  }
  Answer("device 6 name ");
  const auto inventory = Inventory();
  EXPECT_EQ(inventory.devices.size(), 8u);
  for (std::size_t i = 0; i < names.size(); ++i) {
    EXPECT_EQ(FindDevice(inventory, machine.Devices()[i].id)->model.value, names[i]);
  }
  EXPECT_FALSE(FindDevice(inventory, machine.Devices()[6].id)->model.known());
  const agent::Finding* clash = FindCode(inventory.findings, "LabelClash");
  ASSERT_NE(clash, nullptr);
  EXPECT_THAT(clash->evidence, HasSubstr("NVIDIA-TITAN-X-Pascal"));
}

TEST_F(NvidiaMachineTest, ALostGpuStaysListedAndUnhealthy) {
  Machine machine = Build(Yaml("nvidia-h100-8"));
  ASSERT_TRUE(machine.Inject({Fault::Kind::kVanish, 5}));
  const auto inventory = Inventory();
  EXPECT_EQ(inventory.devices.size(), 8u);
  EXPECT_EQ(HealthyCount(inventory), 7u);
  const std::string id = machine.Devices()[5].id;
  EXPECT_FALSE(FindDevice(inventory, id)->healthy.value);
  EXPECT_EQ(FindCode(inventory.findings, "DeviceLost")->device, id);
  // R02: both numbers.
  const agent::Finding* counts = FindCode(inventory.findings, "InventoryInconsistent");
  ASSERT_NE(counts, nullptr);
  EXPECT_THAT(counts->evidence, HasSubstr("/proc/driver/nvidia has 8"));
  EXPECT_THAT(counts->evidence, HasSubstr("the library with answers has 7"));
  ASSERT_TRUE(machine.Clear(5, {}));
  EXPECT_EQ(HealthyCount(Inventory()), 8u);
}

// One bad device never shuts its node: what the others proved still holds.
TEST_F(NvidiaMachineTest, ALostGpuDoesNotChangeTheFingerprintOfItsNode) {
  Machine machine = Build(Yaml("nvidia-h100-8"));
  agent::InventoryReader reader(root(), Options());
  const std::string before = agent::FingerprintText(reader.Read(), Vendor::kNvidia);
  ASSERT_TRUE(machine.Inject({Fault::Kind::kVanish, 5}));
  const auto now = reader.Read();
  EXPECT_EQ(HealthyCount(now), 7u);
  EXPECT_EQ(agent::FingerprintText(now, Vendor::kNvidia), before);
  ASSERT_TRUE(machine.Clear({}, {}));
  EXPECT_EQ(agent::FingerprintText(reader.Read(), Vendor::kNvidia), before);
}

TEST_F(NvidiaMachineTest, AHangIsAFindingAndTheOtherGpusStay) {
  Machine machine = Build(Yaml("nvidia-h100-8"));
  ASSERT_TRUE(machine.Inject({Fault::Kind::kHang, 2}));
  const auto inventory = InventoryOfHungMachine();
  EXPECT_EQ(inventory.devices.size(), 8u);
  EXPECT_EQ(HealthyCount(inventory), 7u);
  EXPECT_FALSE(FindDevice(inventory, machine.Devices()[2].id)->healthy.value);
  const agent::Finding* hung = FindCode(inventory.findings, "VendorLibraryHung");
  ASSERT_NE(hung, nullptr);
  EXPECT_THAT(hung->evidence, HasSubstr("gpu 2"));
}

TEST_F(NvidiaMachineTest, AHungDeviceDoesNotSlowDownEveryRead) {
  Machine machine = Build(Yaml("nvidia-h100-8"));
  ASSERT_TRUE(machine.Inject({Fault::Kind::kHang, 2}));
  agent::InventoryOptions options = Options();
  options.probe.silence = Millis{400};
  agent::InventoryReader reader(root(), options);
  const auto first = reader.Read();
  // A second hang would be counted as a second step; the first stays known instead.
  const auto second = reader.Read();
  EXPECT_EQ(first.devices, second.devices);
  EXPECT_EQ(first.findings, second.findings);
}

// The device is unhealthy; driver, firmware and mode are what they were, and so is the fingerprint.
TEST_F(NvidiaMachineTest, AHangDoesNotLookLikeAnotherConfiguration) {
  Machine machine = Build(Yaml("nvidia-h100-8"));
  agent::InventoryOptions options = Options();
  options.probe.silence = Millis{400};
  agent::InventoryReader reader(root(), options);
  const auto before = reader.Read();
  ASSERT_TRUE(machine.Inject({Fault::Kind::kHang, 2}));
  const auto during = reader.Read();
  EXPECT_EQ(HealthyCount(during), 7u);
  EXPECT_EQ(agent::Fingerprint(during, Vendor::kNvidia),
            agent::Fingerprint(before, Vendor::kNvidia));
}

TEST_F(NvidiaMachineTest, ManyHungDevicesLeaveTheLibraryOut) {
  Machine machine = Build(Yaml("nvidia-h100-8"));
  for (const int i : {0, 3, 4, 6}) ASSERT_TRUE(machine.Inject({Fault::Kind::kHang, i}));
  const auto inventory = InventoryOfHungMachine();
  EXPECT_EQ(inventory.devices.size(), 8u);
  EXPECT_EQ(HealthyCount(inventory), 0u);
}

TEST_F(NvidiaMachineTest, AHangInInitLeavesWhatTheModuleKnows) {
  const Machine machine = Build(Yaml("nvidia-h100-8"));
  Answer("system hang init");
  const auto inventory = InventoryOfHungMachine();
  EXPECT_EQ(inventory.devices.size(), 8u);
  EXPECT_EQ(HealthyCount(inventory), 0u);
  EXPECT_TRUE(FindDevice(inventory, machine.Devices()[0].id)->healthy.known());
  EXPECT_NE(FindCode(inventory.findings, "VendorLibraryHung"), nullptr);
}

TEST_F(NvidiaMachineTest, NamesWhatTheLibraryRefuses) {
  const Machine machine = Build(Yaml("nvidia-h100-8"));
  Answer("system init 18");
  auto inventory = Inventory();
  EXPECT_EQ(inventory.devices.size(), 8u);
  EXPECT_EQ(HealthyCount(inventory), 0u);
  EXPECT_NE(FindCode(inventory.findings, "DriverLibraryMismatch"), nullptr);
  Answer("system init 9");
  EXPECT_NE(FindCode(Inventory().findings, "DriverNotLoaded"), nullptr);
  Answer("system init 999");
  EXPECT_NE(FindCode(Inventory().findings, "VendorLibraryFailed"), nullptr);
  Answer("system init 0");
  Answer("device 1 state reset");
  inventory = Inventory();
  EXPECT_EQ(HealthyCount(inventory), 7u);
  Answer("device 1 state ok");
  Answer("device 1 remapped 0 1 1 1");
  inventory = Inventory();
  EXPECT_NE(FindCode(inventory.findings, "RowRemapPending"), nullptr);
  EXPECT_NE(FindCode(inventory.findings, "RowRemapFailed"), nullptr);
  EXPECT_FALSE(FindDevice(inventory, machine.Devices()[1].id)->healthy.value);
}

TEST_F(NvidiaMachineTest, AShortLibraryCountIsInconsistent) {
  Build(Yaml("nvidia-h100-8"));
  Answer("system count 6");
  const auto inventory = Inventory();
  EXPECT_EQ(inventory.devices.size(), 8u);
  EXPECT_EQ(HealthyCount(inventory), 6u);
  EXPECT_THAT(FindCode(inventory.findings, "InventoryInconsistent")->evidence,
              HasSubstr("the library has 6"));
}

TEST_F(NvidiaMachineTest, AnXidIsAnEventUntilTheNextBoot) {
  Machine machine = Build(Yaml("nvidia-h100-8"));
  const std::string boot = Inventory().boot_id.value;
  Fault fault{Fault::Kind::kXid, 4};
  fault.code = 79;
  ASSERT_TRUE(machine.Inject(fault));
  auto inventory = Inventory();
  const agent::Finding* xid = FindCode(inventory.findings, "XidFatal");
  ASSERT_NE(xid, nullptr);
  EXPECT_EQ(xid->device, machine.Devices()[4].id);
  EXPECT_FALSE(xid->event.empty());
  // The same Xid once more is another event.
  const std::string first = xid->event;
  ASSERT_TRUE(machine.Inject(fault));
  inventory = Inventory();
  EXPECT_NE(FindCode(inventory.findings, "XidFatal")->event, first);
  ASSERT_TRUE(machine.Reboot());
  inventory = Inventory();
  EXPECT_EQ(FindCode(inventory.findings, "XidFatal"), nullptr);
  EXPECT_NE(inventory.boot_id.value, boot);
}

TEST_F(NvidiaMachineTest, MemoryErrorsMakeTheDeviceUnhealthy) {
  Machine machine = Build(Yaml("nvidia-h100-8"));
  ASSERT_TRUE(machine.Inject({Fault::Kind::kEcc, 0}));
  const auto inventory = Inventory();
  EXPECT_EQ(HealthyCount(inventory), 7u);
  EXPECT_NE(FindCode(inventory.findings, "UncorrectedMemoryErrors"), nullptr);
}

TEST_F(NvidiaMachineTest, SurvivesACorruptLibraryFile) {
  Build(Yaml("nvidia-h100-8"));
  for (const std::string& text : {std::string(), std::string("system"), std::string("\n\n \n"),
                                  std::string("system count 4294967295\n"),
                                  std::string("system count -1\nsystem cuda x\n")}) {
    tree().Write("machine/nvml.txt", text);
    const auto inventory = Inventory();
    EXPECT_EQ(inventory.devices.size(), 8u);
    EXPECT_EQ(HealthyCount(inventory), 0u);
  }
}

}  // namespace
}  // namespace bimetal::machines
