#pragma once

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "agent/devices/fingerprint.h"
#include "agent/devices/inventory.h"
#include "tests/machines/machine.h"
#include "tests/unit/agent/devices/test_tree.h"

namespace bimetal::machines {

// A machine in a folder of the test, and the inventory that an agent reads of it, vendor calls in a
// probe process (bimetal-machine is one when it is asked to be).
class MachineTest : public testing::Test {
 protected:
  static std::string Yaml(const std::string& name) {
    return ReadFile(BIMETAL_MACHINES "/" + name + ".yaml").value_or("");
  }

  Machine Build(const std::string& yaml, const std::string& node = "gpu-1") {
    auto machine = Machine::Build(yaml, root(), node, 1, BIMETAL_NVML);
    EXPECT_TRUE(machine.has_value()) << (machine ? "" : machine.error().message);
    return std::move(machine).value();
  }

  static agent::InventoryOptions Options() {
    agent::InventoryOptions options;
    options.probe.command = {BIMETAL_MACHINE};
    return options;
  }

  agent::Inventory Inventory() { return agent::ReadInventory(root(), Options()); }

  // Short where a reader is known to hang.
  agent::Inventory InventoryOfHungMachine() {
    agent::InventoryOptions options = Options();
    options.probe.silence = Millis{400};
    return agent::ReadInventory(root(), options);
  }

  const std::string& root() const { return tree_.root(); }
  agent::TestTree& tree() { return tree_; }

 private:
  agent::TestTree tree_;
};

inline std::set<std::string> IdsOf(const agent::Inventory& inventory) {
  std::set<std::string> ids;
  for (const agent::Device& device : inventory.devices) ids.insert(device.id.value);
  return ids;
}

inline const agent::Device* FindDevice(const agent::Inventory& inventory, const std::string& id) {
  for (const agent::Device& device : inventory.devices) {
    if (device.id.value == id) return &device;
  }
  return nullptr;
}

inline std::size_t HealthyCount(const agent::Inventory& inventory) {
  std::size_t count = 0;
  for (const agent::Device& d : inventory.devices) {
    count += d.healthy.known() && d.healthy.value ? 1 : 0;
  }
  return count;
}

// What a description says of a device and what the agent reads of it must be one.
inline void ExpectRoundTrip(const agent::Inventory& inventory, const Machine& machine) {
  const auto expected = machine.Devices();
  ASSERT_EQ(inventory.devices.size(), expected.size());
  for (const SimulatedDevice& want : expected) {
    const agent::Device* got = FindDevice(inventory, want.id);
    ASSERT_NE(got, nullptr) << want.id;
    EXPECT_EQ(agent::VendorName(got->vendor), want.vendor);
    EXPECT_EQ(got->model.value, want.name);
    EXPECT_EQ(got->architecture.value, want.arch);
    EXPECT_EQ(got->compute_units.value, want.compute_units);
    EXPECT_EQ(got->memory_bytes.value, want.memory_bytes);
    EXPECT_TRUE(got->healthy.known() && got->healthy.value) << got->healthy.why;
  }
  EXPECT_TRUE(inventory.simulated);
  EXPECT_TRUE(inventory.boot_id.known());
}

}  // namespace bimetal::machines
