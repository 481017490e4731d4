// Every recorded tree against the values in golden/*.json, which were derived from the raw files by
// hand (each file says how), not by the agent. "?" is unknown, "!" is an error.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "agent/devices/device_fields.h"
#include "tests/unit/agent/devices/test_tree.h"

namespace bimetal::agent {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

std::string Fixtures() {
  const char* shared = std::getenv("BIMETAL_SHARED");
  const char* source = std::getenv("BIMETAL_SOURCE_DIR");
  const std::string base =
      shared != nullptr ? shared : std::string(source != nullptr ? source : ".") + "/../shared";
  return base + "/fixtures/";
}

Json Golden(const std::string& name) {
  std::ifstream in(std::string(BIMETAL_GOLDEN) + "/" + name + ".json");
  return Json::parse(in);
}

std::vector<std::string> GoldenNames() {
  std::vector<std::string> names;
  std::error_code code;
  for (const auto& file : fs::directory_iterator(BIMETAL_GOLDEN, code)) {
    if (file.path().extension() == ".json") names.push_back(file.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

Json ToJson(const std::string& value) { return value; }
Json ToJson(std::int64_t value) { return std::to_string(value); }
Json ToJson(bool value) { return value ? "true" : "false"; }
Json ToJson(const std::map<std::string, std::string>& value) { return value; }
Json ToJson(const std::map<std::string, std::int64_t>& value) {
  Json out = Json::object();
  for (const auto& [name, n] : value) out[name] = std::to_string(n);
  return out;
}
Json ToJson(const std::vector<std::string>& value) {
  std::string out;
  for (const std::string& one : value) out += (out.empty() ? "" : ",") + one;
  return out;
}
Json ToJson(const std::vector<DeviceLink>& value) {
  std::string out;
  for (const DeviceLink& link : value) {
    out += (out.empty() ? "" : ",") + link.kind + " " + link.peer + " " +
           std::to_string(link.active) + "/" + std::to_string(link.count);
  }
  return out;
}
Json ToJson(const std::vector<GpuProcess>& value) {
  std::string out;
  for (const GpuProcess& one : value) out += (out.empty() ? "" : ",") + std::to_string(one.pid);
  return out;
}

template <class T>
Json Shown(const Reading<T>& reading) {
  if (reading.state == Known::kError) return "!";
  return reading.known() ? ToJson(reading.value) : Json("?");
}

Json Fields(const Device& device) {
  Json out;
  VisitReadings(
      [&](std::string_view name, const auto& reading) { out[std::string(name)] = Shown(reading); },
      device);
  return out;
}

Json Fields(const Telemetry& telemetry) {
  Json out;
  VisitTelemetry(
      [&](std::string_view name, const auto& reading) { out[std::string(name)] = Shown(reading); },
      telemetry);
  return out;
}

// What the file says of all devices, and then of this one.
Json Merged(const Json& each, const Json& one) {
  Json out = each;
  for (const auto& [name, value] : one.items()) out[name] = value;
  return out;
}

class GoldenTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (!fs::is_directory(Fixtures())) GTEST_SKIP() << "SKIPPED: no recordings at " << Fixtures();
    golden_ = Golden(GetParam());
  }

  Inventory Read() {
    const std::string folder = Fixtures() + golden_.at("root").get<std::string>();
    if (!golden_.at("packed").get<bool>()) return ReadTree(folder);
    const std::string command = "cd '" + tree_.root() + "' && '" BIMETAL_CMAKE "' -E tar xf '" +
                                fs::absolute(folder).string() + "/root.tar.xz'";
    EXPECT_EQ(std::system(command.c_str()), 0);
    return ReadTree(tree_.root());
  }

  Json golden_;
  TestTree tree_;
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

INSTANTIATE_TEST_SUITE_P(Recordings, GoldenTest, testing::ValuesIn(GoldenNames()),
                         [](const testing::TestParamInfo<std::string>& one) {
                           std::string name = one.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// A recording that is added to the fixtures needs its values here.
TEST(GoldenFilesTest, CoverEveryRecordedTree) {
  if (!fs::is_directory(Fixtures())) GTEST_SKIP() << "SKIPPED: no recordings at " << Fixtures();
  std::set<std::string> covered;
  for (const std::string& name : GoldenNames()) {
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
