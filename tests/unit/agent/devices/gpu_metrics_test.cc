// Versions 1.3, 2.1 and 3.0 are tested on recordings, in golden_test.cc. Everything here is
// SYNTHETIC: bytes put at the offsets of the kernel's structures, as no recording of the other
// versions is public.
#include "agent/devices/amd/gpu_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace bimetal::agent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A table whose fields are all "not supported".
std::string Blank(std::size_t size, int format, int content) {
  std::string out(size, '\xff');
  out[0] = static_cast<char>(size & 0xff);
  out[1] = static_cast<char>(size >> 8);
  out[2] = static_cast<char>(format);
  out[3] = static_cast<char>(content);
  return out;
}

void Put(std::string& bytes, std::size_t at, std::size_t width, std::uint64_t value) {
  for (std::size_t i = 0; i < width && i < 8; ++i) {
    bytes[at + i] = static_cast<char>(value >> (8 * i));
  }
}

struct Version {
  int format;
  int content;
  std::size_t size;
  std::size_t temperature, power, energy, clock, memory_clock, width, replays;  // 0: has none
  std::size_t energy_width = 8;
};

// Sizes by the notes of the kernel's header; offsets counted by hand in the same structures.
const std::vector<Version> kVersions = {
    {1, 0, 80, 18, 34, 36, 54, 58, 0, 0, 4},    {1, 1, 96, 6, 22, 24, 54, 58, 74, 0},
    {1, 2, 104, 6, 22, 24, 54, 58, 74, 0},      {1, 3, 120, 6, 22, 24, 54, 58, 74, 0},
    {1, 4, 288, 4, 10, 24, 240, 280, 48, 88},   {1, 5, 360, 4, 10, 88, 312, 352, 112, 152},
    {1, 6, 1664, 4, 10, 16, 264, 304, 60, 104}, {1, 7, 2208, 4, 10, 24, 296, 336, 68, 112},
    {1, 8, 3872, 4, 10, 24, 296, 336, 68, 112}};

TEST(GpuMetricsTest, ReadsEveryVersionOfDiscreteGpus) {
  for (const Version& v : kVersions) {
    const std::string name = std::to_string(v.format) + "." + std::to_string(v.content);
    std::string bytes = Blank(v.size, v.format, v.content);
    Put(bytes, v.temperature, 2, 61);
    Put(bytes, v.power, 2, 742);
    Put(bytes, v.energy, v.energy_width, (std::uint64_t{1500} << 16) + 0x8000);  // 1500.5 J
    Put(bytes, v.clock, 2, 2100);
    Put(bytes, v.memory_clock, 2, 1300);
    if (v.width != 0) Put(bytes, v.width, 2, 16);
    if (v.replays != 0) Put(bytes, v.replays, 8, 7);
    const auto parsed = ParseGpuMetrics(bytes);
    ASSERT_TRUE(parsed.has_value()) << name << ": " << parsed.error().message;
    EXPECT_EQ(parsed->temperature_millicelsius, 61'000) << name;
    EXPECT_EQ(parsed->power_milliwatts, 742'000) << name;
    EXPECT_EQ(parsed->energy_millijoules, 1'500'500) << name;
    EXPECT_EQ(parsed->graphics_clock_mhz, 2100) << name;
    EXPECT_EQ(parsed->memory_clock_mhz, 1300) << name;
    EXPECT_EQ(parsed->link_width.value_or(16), 16) << name;
    EXPECT_EQ(parsed->link_width.has_value(), v.width != 0) << name;
    EXPECT_EQ(parsed->link_replays.has_value(), v.replays != 0) << name;
  }
}

TEST(GpuMetricsTest, AllOnesIsNotSupportedInEveryVersion) {
  for (Version v : kVersions) {
    const auto parsed = ParseGpuMetrics(Blank(v.size, v.format, v.content));
    ASSERT_TRUE(parsed.has_value());
    EXPECT_FALSE(parsed->temperature_millicelsius || parsed->memory_temperature_millicelsius ||
                 parsed->power_milliwatts || parsed->energy_millijoules || parsed->activity ||
                 parsed->graphics_clock_mhz || parsed->memory_clock_mhz || parsed->link_width ||
                 parsed->link_replays || parsed->throttlers || parsed->xgmi_links ||
                 parsed->partitions);
    EXPECT_TRUE(parsed->throttle_counts.empty());
  }
}

TEST(GpuMetricsTest, ReadsTheVersionsOfApus) {
  const std::vector<std::pair<int, std::size_t>> sizes = {{1, 120}, {2, 128}, {3, 152}, {4, 168}};
  for (const auto& [content, size] : sizes) {
    std::string bytes = Blank(size, 2, content);
    Put(bytes, 4, 2, 4512);
    Put(bytes, 40, 2, 15'300);
    Put(bytes, 64, 2, 800);
    const auto parsed = ParseGpuMetrics(bytes);
    ASSERT_TRUE(parsed.has_value()) << content;
    EXPECT_EQ(parsed->temperature_millicelsius, 45'120);
    EXPECT_EQ(parsed->power_milliwatts, 15'300);
    EXPECT_EQ(parsed->graphics_clock_mhz, 800);  // the average: the present one is not told
  }
  std::string first = Blank(120, 2, 0);
  Put(first, 16, 2, 4512);
  Put(first, 44, 2, 9000);
  Put(first, 80, 2, 1200);
  const auto parsed = ParseGpuMetrics(first);
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(parsed->temperature_millicelsius, 45'120);
  EXPECT_EQ(parsed->power_milliwatts, 9'000);
  EXPECT_EQ(parsed->graphics_clock_mhz, 1200);
}

TEST(GpuMetricsTest, TakesTheHighestOfSeveralClocks) {
  std::string bytes = Blank(2208, 1, 7);
  Put(bytes, 296, 2, 132);
  Put(bytes, 296 + 2 * 5, 2, 2105);
  EXPECT_EQ(ParseGpuMetrics(bytes)->graphics_clock_mhz, 2105);
}

TEST(GpuMetricsTest, CountsThrottlingAndLinksOfTheMi300Versions) {
  std::string bytes = Blank(3872, 1, 8);
  for (std::size_t i = 0; i < 5; ++i) Put(bytes, 44 + 4 * i, 4, 10 + i);
  for (std::size_t i = 0; i < 7; ++i) Put(bytes, 264 + 2 * i, 2, i == 3 ? 0 : 1);
  Put(bytes, 264 + 14, 2, 2);  // not available
  Put(bytes, 338, 2, 8);
  const auto parsed = ParseGpuMetrics(bytes);
  EXPECT_EQ(parsed->throttle_counts, (std::map<std::string, std::int64_t>{{"hardware-thermal", 10},
                                                                          {"power-cap", 11},
                                                                          {"thermal", 12},
                                                                          {"regulator-thermal", 13},
                                                                          {"memory-thermal", 14}}));
  EXPECT_EQ(parsed->xgmi_links, 7);
  EXPECT_EQ(parsed->xgmi_links_up, 6);
  EXPECT_EQ(parsed->partitions, 8);
  std::string older = Blank(1664, 1, 6);
  Put(older, 40, 4, 99);
  EXPECT_EQ(ParseGpuMetrics(older)->throttle_counts.at("power-cap"), 99);
}

// Version 1.9: attributes in a packed list (the kernel's DECLARE_SMU_METRICS_CLASS).
class Attributes {
 public:
  Attributes& Add(unsigned id, unsigned type, std::vector<std::uint64_t> values) {
    const std::uint64_t code =
        (std::uint64_t{type} << 20) | (std::uint64_t{id} << 10) | values.size();
    Append(8, code);
    for (const std::uint64_t value : values) Append(std::size_t{1} << (type / 2), value);
    ++count_;
    return *this;
  }
  std::string Bytes() const {
    std::string out = Blank(8, 1, 9) + body_;
    Put(out, 0, 2, out.size());
    Put(out, 4, 4, count_);
    return out;
  }

 private:
  void Append(std::size_t width, std::uint64_t value) {
    body_.resize(body_.size() + width);
    Put(body_, body_.size() - width, width, value);
  }
  std::string body_;
  std::uint64_t count_ = 0;
};

Attributes Mi300Attributes() {
  Attributes list;
  list.Add(0, 2, {63}).Add(1, 2, {41}).Add(3, 2, {713}).Add(4, 2, {97});
  list.Add(7, 6, {std::uint64_t{2000} << 16}).Add(11, 4, {123}).Add(16, 2, {16});
  list.Add(25, 6, {3}).Add(31, 2, {1, 1, 1, 0, 1, 1, 1, 2});
  list.Add(33, 2, {130, 2100, 1990, 130, 130, 130, 130, 130}).Add(37, 2, {1300}).Add(38, 2, {1});
  list.Add(900, 0, {1, 2, 3});  // of a later driver
  return list;
}

TEST(GpuMetricsTest, ReadsTheListOfAttributes) {
  const auto parsed = ParseGpuMetrics(Mi300Attributes().Bytes());
  ASSERT_TRUE(parsed.has_value()) << parsed.error().message;
  EXPECT_EQ(parsed->temperature_millicelsius, 63'000);
  EXPECT_EQ(parsed->memory_temperature_millicelsius, 41'000);
  EXPECT_EQ(parsed->power_milliwatts, 713'000);
  EXPECT_EQ(parsed->energy_millijoules, 2'000'000);
  EXPECT_EQ(parsed->throttle_counts.at("power-cap"), 123);
  EXPECT_EQ(parsed->link_width, 16);
  EXPECT_EQ(parsed->link_replays, 3);
  EXPECT_EQ(parsed->xgmi_links, 7);
  EXPECT_EQ(parsed->xgmi_links_up, 6);
  EXPECT_EQ(parsed->graphics_clock_mhz, 2100);
  EXPECT_EQ(parsed->memory_clock_mhz, 1300);
  EXPECT_EQ(parsed->partitions, 1);
  EXPECT_FALSE(ParseGpuMetrics(Attributes().Add(3, 2, {0xffff}).Bytes())->power_milliwatts);
}

TEST(GpuMetricsTest, RefusesAListThatRunsOutOrLies) {
  const std::string good = Mi300Attributes().Bytes();
  for (std::size_t cut = 4; cut < good.size(); ++cut) {
    std::string bytes = good.substr(0, cut);
    Put(bytes, 0, 2, bytes.size());
    EXPECT_FALSE(ParseGpuMetrics(bytes).has_value()) << cut;
  }
  std::string many = good;
  Put(many, 4, 4, 0xffffffff);
  EXPECT_FALSE(ParseGpuMetrics(many).has_value());
  EXPECT_FALSE(ParseGpuMetrics(Attributes().Add(3, 9, {1}).Bytes()).has_value());
}

TEST(GpuMetricsTest, RefusesWhatIsNoWholeTable) {
  for (const Version& v : kVersions) {
    const std::string good = Blank(v.size, v.format, v.content);
    EXPECT_FALSE(ParseGpuMetrics(good.substr(0, v.size - 1)).has_value());
    EXPECT_FALSE(ParseGpuMetrics(good + "x").has_value());
    // A header that agrees with the bytes but not with the version.
    EXPECT_THAT(ParseGpuMetrics(Blank(v.size + 8, v.format, v.content)).error().message,
                HasSubstr("the version has"));
  }
  EXPECT_FALSE(ParseGpuMetrics("").has_value());
  EXPECT_FALSE(ParseGpuMetrics(std::string("\x04\x00\x01", 3)).has_value());
  const auto later = ParseGpuMetrics(Blank(64, 4, 1));
  ASSERT_FALSE(later.has_value());
  EXPECT_EQ(later.error().code, ErrorCode::kUnsupported);
}

// Whatever the bytes are: an answer, no crash. Seeds 1 to 2000.
TEST(GpuMetricsTest, SurvivesAnyBytes) {
  for (unsigned seed = 1; seed <= 2000; ++seed) {
    std::mt19937 random(seed);
    std::string bytes(random() % 400, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    if (bytes.size() >= 4 && random() % 2 == 0) {
      Put(bytes, 0, 2, bytes.size());
      bytes[2] = static_cast<char>(1 + random() % 3);
      bytes[3] = static_cast<char>(random() % 10);
    }
    ParseGpuMetrics(bytes);
  }
}

TEST(ThrottleReasonsTest, GroupsTheDriversBits) {
  EXPECT_THAT(ThrottleReasons(0), ElementsAre());
  EXPECT_THAT(ThrottleReasons(1), ElementsAre("power-cap"));
  EXPECT_THAT(ThrottleReasons(std::uint64_t{1} << 36), ElementsAre("thermal"));
  EXPECT_THAT(ThrottleReasons((std::uint64_t{1} << 44) | (std::uint64_t{1} << 22)),
              ElementsAre("current", "hardware-thermal"));
}

}  // namespace
}  // namespace bimetal::agent
