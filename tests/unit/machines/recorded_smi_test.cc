// Printouts of nvidia-smi of real machines, turned into answers of the library and read by the
// agent, against golden/*.json, derived from the same printouts by hand. No trace of the library's
// own calls is public: what nvidia-smi prints is what the library told it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/unit/agent/devices/golden.h"
#include "tests/unit/machines/machine_fixture.h"
#include "tests/unit/machines/smi_text.h"
#include "tests/unit/recordings.h"

namespace bimetal::machines {
namespace {

namespace fs = std::filesystem;
using agent::golden::Fields;
using agent::golden::Json;
using agent::golden::Merged;
using agent::golden::Shown;

class RecordedSmiTest : public MachineTest, public testing::WithParamInterface<std::string> {};

TEST_P(RecordedSmiTest, ReadsWhatThePrintoutSays) {
  if (!fs::is_directory(Fixtures())) GTEST_SKIP() << "SKIPPED: no recordings at " << Fixtures();
  std::ifstream golden_file(std::string(BIMETAL_GOLDEN) + "/" + GetParam() + ".json");
  const Json golden = Json::parse(golden_file);
  ASSERT_FALSE(golden.at("comment").empty());
  std::ifstream in(Fixtures() + golden.at("root").get<std::string>());
  std::stringstream text;
  text << in.rdbuf();
  // The simulated library beside the answers is all that this machine has.
  fs::create_directories(tree().Path("usr/lib/x86_64-linux-gnu"));
  fs::copy_file(BIMETAL_NVML, tree().Path("usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1"));
  SmiExtras extras = ParseSmiExtras(text.str());
  const bool is_xml = golden.at("root").get<std::string>().ends_with(".xml");
  const SmiText smi = is_xml ? ParseSmiXml(text.str(), extras) : ParseSmiText(text.str());
  tree().Write("machine/nvml.txt", NvmlTextOf(smi, extras));
  const auto inventory = Inventory();
  Json facts = Json::object();
  for (const auto& [fact, reading] : inventory.facts.at(agent::Vendor::kNvidia)) {
    facts[fact] = Shown(reading);
  }
  EXPECT_EQ(facts, golden.at("facts").at("nvidia"));
  const Json& devices = golden.at("devices");
  ASSERT_EQ(inventory.devices.size(), devices.size());
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const agent::Device& device = inventory.devices[i];
    ASSERT_EQ(device.id.value, devices[i].at("id").get<std::string>());
    Json own = devices[i];
    own.erase("id");
    own.erase("telemetry");
    EXPECT_EQ(Fields(device), Merged(golden.at("each"), own)) << device.id.value;
    EXPECT_EQ(Fields(inventory.telemetry.at(device.id.value)),
              Merged(golden.at("each_telemetry"), devices[i].value("telemetry", Json::object())))
        << device.id.value;
  }
}

INSTANTIATE_TEST_SUITE_P(Printouts, RecordedSmiTest,
                         testing::ValuesIn(agent::golden::NamesIn(BIMETAL_GOLDEN)),
                         [](const testing::TestParamInfo<std::string>& one) {
                           return agent::golden::TestName(one.param);
                         });

}  // namespace
}  // namespace bimetal::machines
