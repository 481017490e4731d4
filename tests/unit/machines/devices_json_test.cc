#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/unit/machines/machine_fixture.h"

namespace bimetal::machines {
namespace {

class DevicesJsonTest : public MachineTest {
 protected:
  nlohmann::json Json() {
    return nlohmann::json::parse(ReadFile(root() + "/devices.json").value_or(""));
  }
};

// The validation program reads this file; it refuses keys and kinds that it does not know.
TEST_F(DevicesJsonTest, HasTheKeysOfTheContractAndTheIdsOfTheAgent) {
  for (const std::string name : {"amd-mi300x-8", "nvidia-h100-8", "amd-mi300x-8-cpx",
                                 "nvidia-h100-8-mig", "mixed-h100-4-mi300x-4"}) {
    Build(Yaml(name));
    const auto json = Json();
    EXPECT_EQ(json.at("simulated"), true);
    std::set<std::string> ids;
    for (const auto& device : json.at("devices")) {
      EXPECT_EQ(device.size(), 8u);
      ids.insert(device.at("id").get<std::string>());
      EXPECT_GT(device.at("computeUnits").get<std::int64_t>(), 0);
      EXPECT_GT(device.at("memoryBytes").get<std::int64_t>(), 0);
      EXPECT_TRUE(device.at("faults").empty());
      EXPECT_TRUE(device.at("vendor") == "amd" || device.at("vendor") == "nvidia");
    }
    EXPECT_EQ(ids, IdsOf(Inventory())) << name;
  }
}

TEST_F(DevicesJsonTest, CarriesTheFaultsThatTheHostBackEndKnows) {
  Machine machine = Build(Yaml("amd-mi300x-8-memory-fault"));
  EXPECT_EQ(Json().at("devices").at(3).at("faults"),
            nlohmann::json::parse(R"([{"kind":"memory","offset":1048576,"bit":3,"stuck":1}])"));
  Fault compute{Fault::Kind::kCompute, 1};
  compute.unit = 17;
  ASSERT_TRUE(machine.Inject(compute));
  ASSERT_TRUE(machine.Inject({Fault::Kind::kHang, 1}));
  ASSERT_TRUE(machine.Inject({Fault::Kind::kEcc, 1}));
  EXPECT_EQ(Json().at("devices").at(1).at("faults"),
            nlohmann::json::parse(R"([{"kind":"compute","unit":17},{"kind":"hang"}])"));
  ASSERT_TRUE(machine.Clear({}, Fault::Kind::kMemory));
  EXPECT_TRUE(Json().at("devices").at(3).at("faults").empty());
}

TEST_F(DevicesJsonTest, CarriesRatesAndTheFaultsOfTheValidationProgramAlone) {
  std::string yaml = Yaml("nvidia-h100-8");
  const std::string line = "    link: {generation: 5, width: 16}\n";
  ASSERT_NE(yaml.find(line), std::string::npos);
  yaml.insert(yaml.find(line), "    rates: {hbm-triad: {value: 2700000, noisePercent: 4}}\n");
  Machine machine = Build(yaml);
  const auto healthy = Inventory();
  Fault slow{Fault::Kind::kSlowMemory, 2};
  slow.percent = 40;
  Fault hang{Fault::Kind::kHang, 2};
  hang.call = "allocate";
  ASSERT_TRUE(machine.Inject(slow));
  ASSERT_TRUE(machine.Inject(hang));
  ASSERT_TRUE(machine.Inject({Fault::Kind::kLinkDown, 2}));
  const auto device = Json().at("devices").at(2);
  EXPECT_EQ(device.at("rates"),
            nlohmann::json::parse(R"({"hbm-triad":{"value":2700000,"noisePercent":4}})"));
  EXPECT_EQ(device.at("faults"), nlohmann::json::parse(R"([{"kind":"slowMemory","percent":40},
                {"kind":"hang","call":"allocate"},{"kind":"linkDown"}])"));
  // The agent sees nothing of them.
  EXPECT_EQ(IdsOf(Inventory()), IdsOf(healthy));
}

TEST_F(DevicesJsonTest, PutsAFaultIntoTheRightPartition) {
  Machine machine = Build(Yaml("amd-mi300x-8-cpx"));
  Fault memory{Fault::Kind::kMemory, 1};
  memory.offset = 206141652992 / 8 * 3 + 4096;
  ASSERT_TRUE(machine.Inject(memory));
  Fault compute{Fault::Kind::kCompute, 1};
  compute.unit = 303;
  ASSERT_TRUE(machine.Inject(compute));
  const auto devices = Json().at("devices");
  EXPECT_EQ(devices.at(8 + 3).at("faults").at(0).at("offset"), 4096);
  EXPECT_EQ(devices.at(8 + 7).at("faults").at(0).at("unit"), 37);
  std::size_t faults = 0;
  for (const auto& device : devices) faults += device.at("faults").size();
  EXPECT_EQ(faults, 2u);
}

}  // namespace
}  // namespace bimetal::machines
