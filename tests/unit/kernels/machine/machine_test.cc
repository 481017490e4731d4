#include "kernels/machine/machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace bimetal::kernels {
namespace {

using testing::HasSubstr;

std::string Device(const std::string& more = "", const std::string& id = "GPU-1") {
  return R"({"id":")" + id + R"(","vendor":"nvidia","computeUnits":8,"memoryBytes":85899345920)" +
         more + "}";
}

std::string Machine(const std::string& devices) {
  return R"({"simulated":true,"devices":[)" + devices + "]}";
}

std::string ErrorOf(const std::string& text) {
  const auto parsed = ParseMachine(text, "m/devices.json");
  if (parsed.ok()) return "";
  EXPECT_THAT(parsed.error().message, HasSubstr("m/devices.json"));
  return parsed.error().message;
}

TEST(MachineTest, ReadsDevicesAndFaults) {
  const auto parsed = ParseMachine(
      Machine(Device(R"(,"name":"N","arch":"sm_90","pciAddress":"0000:17:00.0","faults":[
                        {"kind":"memory","offset":1048576,"bit":3,"stuck":0},
                        {"kind":"compute","unit":7},{"kind":"hang"},{"kind":"vanish"}])")),
      "x");
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  const HostDeviceSpec& spec = parsed.value().at(0);
  EXPECT_EQ(spec.info.id, "GPU-1");
  EXPECT_EQ(spec.info.arch, "sm_90");
  EXPECT_EQ(spec.info.compute_units, 8u);
  EXPECT_EQ(spec.info.memory_bytes, 85899345920u);
  ASSERT_EQ(spec.faults.size(), 4u);
  EXPECT_EQ(spec.faults[0].offset, 1048576u);
  EXPECT_EQ(spec.faults[0].bit, 3u);
  EXPECT_FALSE(spec.faults[0].stuck);
  EXPECT_EQ(spec.faults[1].unit, 7u);
  EXPECT_EQ(spec.faults[2].kind, HostFault::Kind::kHang);
  EXPECT_EQ(spec.faults[3].kind, HostFault::Kind::kVanish);
}

TEST(MachineTest, ReadsRatesInThousandthsAndTheFaultsThatMoveThem) {
  const auto parsed = ParseMachine(
      Machine(Device(R"(,"arch":"sm_90","rates":{"hbm-triad":{"value":2500500,"noisePercent":3},
                        "launch-latency":{"value":4200}},"faults":[
                        {"kind":"slowMemory","percent":40},{"kind":"slowLink","percent":5},
                        {"kind":"errors","count":3},{"kind":"linkDown"},
                        {"kind":"hang","call":"allocate"}])")),
      "x");
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  const HostDeviceSpec& spec = parsed.value().at(0);
  EXPECT_DOUBLE_EQ(spec.rates.at("hbm-triad").value, 2500.5);
  EXPECT_DOUBLE_EQ(spec.rates.at("hbm-triad").noise_percent, 3);
  EXPECT_DOUBLE_EQ(spec.rates.at("launch-latency").value, 4.2);
  EXPECT_GT(spec.rates.at("hbm-copy").value, 0);  // the architecture's own
  EXPECT_EQ(spec.faults[0].percent, 40u);
  EXPECT_EQ(spec.faults[2].count, 3u);
  EXPECT_EQ(spec.faults[4].call, "allocate");
  EXPECT_THAT(ErrorOf(Machine(Device(R"(,"rates":{"hbm-tirad":{"value":1}})"))),
              HasSubstr("rates.hbm-tirad: is no check that measures a rate"));
  EXPECT_THAT(ErrorOf(Machine(Device(R"(,"rates":{"hbm-triad":{"value":0}})"))),
              HasSubstr("value must be an integer from 1"));
  EXPECT_THAT(ErrorOf(Machine(Device(R"(,"faults":[{"kind":"slowMemory","percent":100}])"))),
              HasSubstr("percent must be"));
  EXPECT_THAT(ErrorOf(Machine(Device(R"(,"faults":[{"kind":"hang","call":"sleep"}])"))),
              HasSubstr("call \"sleep\""));
}

TEST(MachineTest, NothingIsSkippedSilently) {
  EXPECT_THAT(ErrorOf(Machine(Device(R"(,"fautls":[])"))), HasSubstr("unknown key \"fautls\""));
  EXPECT_THAT(ErrorOf(Machine(Device(R"(,"faults":[{"kind":"melt"}])"))),
              HasSubstr("devices[0].faults[0]: unknown kind \"melt\""));
  EXPECT_THAT(ErrorOf(Machine(Device(R"(,"faults":[{"kind":"hang","unit":1}])"))),
              HasSubstr("unknown key \"unit\""));
  EXPECT_THAT(ErrorOf(Machine(Device(R"(,"faults":{})"))), HasSubstr("faults must be a list"));
  EXPECT_THAT(ErrorOf(R"({"simulated":true,"devices":[],"x":1})"), HasSubstr("unknown key \"x\""));
}

TEST(MachineTest, RefusesWhatCannotBe) {
  EXPECT_THAT(ErrorOf(Machine(Device(R"(,"faults":[{"kind":"compute","unit":8}])"))),
              HasSubstr("unit must be an integer from 0 to 7"));
  EXPECT_THAT(ErrorOf(Machine(Device(
                  R"(,"faults":[{"kind":"memory","offset":85899345920,"bit":0,"stuck":1}])"))),
              HasSubstr("offset must be"));
  EXPECT_THAT(
      ErrorOf(Machine(Device(R"(,"faults":[{"kind":"memory","offset":0,"bit":64,"stuck":1}])"))),
      HasSubstr("bit must be"));
  EXPECT_THAT(ErrorOf(Machine(Device(R"(,"faults":[{"kind":"memory","offset":0,"bit":1}])"))),
              HasSubstr("stuck is missing"));
  EXPECT_THAT(ErrorOf(Machine(R"({"id":"a","vendor":"x","computeUnits":1,"memoryBytes":1048576})")),
              HasSubstr("vendor must be nvidia or amd"));
  EXPECT_THAT(
      ErrorOf(Machine(R"({"id":"","vendor":"amd","computeUnits":1,"memoryBytes":1048576})")),
      HasSubstr("id must not be empty"));
  EXPECT_THAT(
      ErrorOf(Machine(R"({"id":"a","vendor":"amd","computeUnits":0,"memoryBytes":1048576})")),
      HasSubstr("computeUnits must be"));
  EXPECT_THAT(ErrorOf(Machine(Device() + "," + Device())), HasSubstr("devices[1]"));
  EXPECT_THAT(ErrorOf(R"({"simulated":false,"devices":[]})"), HasSubstr("simulated must be true"));
  EXPECT_THAT(ErrorOf(R"({"devices":[]})"), HasSubstr("simulated is missing"));
  EXPECT_THAT(ErrorOf("[]"), HasSubstr("must be an object"));
  EXPECT_THAT(ErrorOf("{\"simulated\":true,"), HasSubstr("line 1, column"));
}

TEST(MachineTest, RefusesMoreDevicesThanAMachineHas) {
  std::string devices;
  for (int i = 0; i < 65; ++i) {
    devices += (i == 0 ? "" : ",") + Device("", "GPU-" + std::to_string(i));
  }
  EXPECT_THAT(ErrorOf(Machine(devices)), HasSubstr("more than 64 devices"));
}

TEST(MachineTest, ReadsTheFileOrItsFolder) {
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / "bimetal_machine_test";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "devices.json") << Machine(Device());
  EXPECT_TRUE(ReadMachine(folder.string()).ok());
  EXPECT_TRUE(ReadMachine((folder / "devices.json").string()).ok());
  std::filesystem::remove_all(folder);
  const auto gone = ReadMachine(folder.string());
  ASSERT_FALSE(gone.ok());
  EXPECT_THAT(gone.error().message, HasSubstr(folder.string()));
  EXPECT_THAT(gone.error().message, HasSubstr("cannot be read"));
}

}  // namespace
}  // namespace bimetal::kernels
