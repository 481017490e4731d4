#include "tests/machines/description.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/unit/machines/machine_fixture.h"

namespace bimetal::machines {
namespace {

using testing::HasSubstr;

std::string Good() { return ReadFile(BIMETAL_MACHINES "/amd-mi300x-8.yaml").value(); }

std::string Replaced(const std::string& from, const std::string& to) {
  std::string yaml = Good();
  const auto at = yaml.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  if (at != std::string::npos) yaml.replace(at, from.size(), to);
  return yaml;
}

TEST(DescriptionTest, EveryShippedDescriptionIsValid) {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(BIMETAL_MACHINES)) {
    if (entry.path().extension() != ".yaml") continue;
    const auto parsed = ParseDescription(ReadFile(entry.path().string()).value());
    ASSERT_TRUE(parsed.has_value()) << entry.path() << ": " << parsed.error().message;
    EXPECT_EQ(parsed->name, entry.path().stem().string());
    ++count;
  }
  EXPECT_GE(count, 7u);
}

TEST(DescriptionTest, NamesThePlaceOfAMistake) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {Replaced("vendor: amd", "vendor: intel"), "gpus[0].vendor"},
      {Replaced("arch: gfx942", "arch: sm_90"), "gpus[0].arch"},
      {Replaced("count: 8", "count: -1"), "gpus[0].count"},
      {Replaced("count: 8", "count: 9"), "gpus[0].pci"},
      {Replaced("computeUnits: 304", "computeUnits: many"), "gpus[0].computeUnits"},
      {Replaced("memoryBytes: 206141652992", "memoryBytes: 99999999999999999999"), "memoryBytes"},
      {Replaced("model:", "modle:"), "gpus[0].model"},
      {Replaced("numaNodes: 2", "numaNodes: [2]"), "numaNodes"},
      {Replaced("numaNodes: 2", "nodes: 2"), "nodes: unknown key"},
      {Replaced("compute: SPX", "computer: SPX"), "gpus[0].partition.computer"},
      {Replaced("driver: 6.12.12", "driver: 6.12.12\n    flavor: open"), "gpus[0].flavor"},
      {Replaced("driver: 6.12.12", "driver: 6.12.12\n    nvlinks: 18"), "gpus[0].nvlinks"},
      {Good() + "files: {../etc/passwd: x}", "is no path under the root"},
      {Good() + "faults: [{kind: gremlin, device: 1}]", "faults[0].kind"},
      {Good() + "faults: [{kind: slowHost, device: 1, percent: 100}]", "faults[0].percent"},
      {Replaced("driver: 6.12.12", "driver: 6.12.12\n    rates: {hbm-dot: {value: fast}}"),
       "gpus[0].rates.hbm-dot.value"},
      {Good() + "faults: [{kind: hang, device: 8}]", "device 8"},
      {Good() + "faults: [{kind: memory, device: 0, offset: 206141652992}]", "memory"},
      {Good() + "faults: [{kind: compute, device: 0, unit: 304}]", "compute units"},
      {Good() + "faults: [{kind: xid, device: 0}]", "Xid"},
      {Good() + "faults: [{device: 0}]", "faults[0].kind"},
      {"gpus: 3\nname: x\n", "gpus"},
      {"name: x\n", "gpus"},
      {"[]", "not a map"},
      {"", "not a map"},
      {"a: [", "no YAML"},
      {std::string("\xff\xfe\0", 3), ""}};
  for (const auto& [yaml, place] : cases) {
    const auto parsed = ParseDescription(yaml);
    ASSERT_FALSE(parsed.has_value()) << place;
    EXPECT_EQ(parsed.error().code, ErrorCode::kInvalid);
    EXPECT_THAT(parsed.error().message, HasSubstr(place));
  }
}

TEST(DescriptionTest, StateRoundTrips) {
  State state;
  state.node = "gpu-1";
  state.seed = 7;
  state.boots = 3;
  state.next_sequence = 123;
  Fault fault{Fault::Kind::kMemory, 2};
  fault.offset = 4096;
  fault.bit = 63;
  fault.stuck = 0;
  Fault slow{Fault::Kind::kSlowLink, 3};
  slow.percent = 17;
  Fault hang{Fault::Kind::kHang, 4};
  hang.call = "peer";
  state.faults = {fault, {Fault::Kind::kXid, 1}, slow, hang};
  const auto parsed = ParseState(FormatState(state));
  ASSERT_TRUE(parsed.has_value()) << parsed.error().message;
  EXPECT_EQ(parsed->faults, state.faults);
  EXPECT_EQ(parsed->node, "gpu-1");
  EXPECT_EQ(parsed->boots, 3);
  EXPECT_EQ(parsed->next_sequence, 123);
}

TEST(MachineTestNames, RefusesANodeNameThatKubernetesWouldNotTake) {
  agent::TestTree tree;
  for (const std::string name : {"", "Node", "a b", "../x", "x\"y", "-a"}) {
    const auto machine = Machine::Build(Good(), tree.root(), name, 1, BIMETAL_NVML);
    ASSERT_FALSE(machine.has_value()) << name;
    EXPECT_EQ(machine.error().code, ErrorCode::kInvalid);
  }
  EXPECT_FALSE(Machine::Open(tree.root()).has_value());
  EXPECT_FALSE(Machine::Open("/no/such/folder").has_value());
}

}  // namespace
}  // namespace bimetal::machines
