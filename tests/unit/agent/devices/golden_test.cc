// Every recorded tree against the values in golden/*.json, which were derived from the raw files by
// hand (each file says how), not by the agent. "?" is unknown, "!" is an error.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "tests/unit/agent/devices/golden.h"
#include "tests/unit/agent/devices/packed_tree.h"
#include "tests/unit/agent/devices/test_tree.h"
#include "tests/unit/recordings.h"

namespace bimetal::agent {
namespace {

namespace fs = std::filesystem;
using golden::Fields;
using golden::Json;
using golden::Merged;
using golden::Shown;

Json Golden(const std::string& name) {
  std::ifstream in(std::string(BIMETAL_GOLDEN) + "/" + name + ".json");
  return Json::parse(in);
}

class GoldenTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (!fs::is_directory(Fixtures())) GTEST_SKIP() << "SKIPPED: no recordings at " << Fixtures();
    golden_ = Golden(GetParam());
  }

  Inventory Read() {
    const std::string name = golden_.at("root").get<std::string>();
    return golden_.at("packed").get<bool>() ? ReadPacked(name) : ReadTree(Fixtures() + name);
  }

  Json golden_;
};

TEST_P(GoldenTest, ReadsWhatTheRawFilesSay) {
  ASSERT_FALSE(golden_.at("comment").empty()) << "say how the values were derived";
  const Inventory inventory = Read();
  for (const auto& [name, facts] : golden_.at("facts").items()) {
    const Vendor vendor = name == "amd" ? Vendor::kAmd : Vendor::kNvidia;
    Json read = Json::object();
    for (const auto& [fact, reading] : inventory.facts.at(vendor)) read[fact] = Shown(reading);
    EXPECT_EQ(read, facts) << name;
  }
  const Json& devices = golden_.at("devices");
  ASSERT_EQ(inventory.devices.size(), devices.size());
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const Device& device = inventory.devices[i];
    const Json& want = devices[i];
    ASSERT_EQ(device.id.value, want.at("id").get<std::string>());
    Json own = want;
    own.erase("id");
    own.erase("telemetry");
    EXPECT_EQ(Fields(device), Merged(golden_.at("each"), own)) << device.id.value;
    const auto telemetry = inventory.telemetry.find(device.id.value);
    EXPECT_EQ(Fields(telemetry == inventory.telemetry.end() ? Telemetry{} : telemetry->second),
              Merged(golden_.at("each_telemetry"), want.value("telemetry", Json::object())))
        << device.id.value;
  }
}

INSTANTIATE_TEST_SUITE_P(Recordings, GoldenTest, testing::ValuesIn(golden::NamesIn(BIMETAL_GOLDEN)),
                         [](const testing::TestParamInfo<std::string>& one) {
                           return golden::TestName(one.param);
                         });

// A recording that is added to the fixtures needs its values here.
TEST(GoldenFilesTest, CoverEveryRecordedTree) {
  if (!fs::is_directory(Fixtures())) GTEST_SKIP() << "SKIPPED: no recordings at " << Fixtures();
  std::set<std::string> covered;
  for (const std::string& name : golden::NamesIn(BIMETAL_GOLDEN)) {
    covered.insert(Golden(name).at("root").get<std::string>());
  }
  for (const std::string group : {"amd", "nvidia/proc-driver"}) {
    for (const auto& folder : fs::directory_iterator(Fixtures() + group)) {
      const bool tree = fs::exists(folder.path() / "sys") || fs::exists(folder.path() / "proc") ||
                        fs::exists(folder.path() / "root.tar.xz");
      if (!tree) continue;
      EXPECT_TRUE(covered.contains(group + "/" + folder.path().filename().string()))
          << folder.path();
    }
  }
}

}  // namespace
}  // namespace bimetal::agent
