#include "agent/diagnosis/support_tables.h"

#include <gtest/gtest.h>

#include "agent/diagnosis/csv.h"

namespace bimetal::agent {
namespace {

TEST(SplitCsvTest, KeepsWhatIsQuoted) {
  EXPECT_EQ(SplitCsv("a, b ,c"), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(SplitCsv("\" a, \"\"b\"\"\",c,"), (std::vector<std::string>{" a, \"b\"", "c", ""}));
  EXPECT_EQ(SplitCsv(""), (std::vector<std::string>{""}));
  EXPECT_EQ(SplitCsv("\"open"), (std::vector<std::string>{"open"}));
}

TEST(GfxSupportTest, KnowsReleasesAndTheirRanges) {
  EXPECT_EQ(GfxSupport("gfx942", "6.2.3"), "supported");
  EXPECT_EQ(GfxSupport("gfx942", "10.1"), "supported");
  EXPECT_EQ(GfxSupport("gfx906", "6.2.4"), "deprecated");
  EXPECT_EQ(GfxSupport("gfx906", "6.4"), "unsupported");
  EXPECT_EQ(GfxSupport("gfx906", "10.0"), "supported");
  EXPECT_EQ(GfxSupport("gfx950", "6.4"), "unsupported");
  EXPECT_EQ(GfxSupport("gfx950", "7.0"), "supported");
  EXPECT_EQ(GfxSupport("gfx940", "7.0"), "unsupported");
  EXPECT_EQ(GfxSupport("gfx803", "6.0"), "unsupported");
  EXPECT_EQ(GfxSupport("gfx1250", "7.2"), "unsupported");
}

TEST(GfxSupportTest, JudgesNoReleaseThatItDoesNotKnow) {
  EXPECT_EQ(GfxSupport("gfx906", "5.7.1"), "");
  EXPECT_EQ(GfxSupport("", "6.4"), "");
  // Without a release: whether any supports it.
  EXPECT_EQ(GfxSupport("gfx1103", ""), "supported");
  EXPECT_EQ(GfxSupport("gfx90c", ""), "unsupported");
}

TEST(GfxSupportTest, TellsProcessorsFromCards) {
  EXPECT_TRUE(IsIntegratedGfx("gfx1103"));
  EXPECT_FALSE(IsIntegratedGfx("gfx1100"));
  EXPECT_FALSE(IsIntegratedGfx("gfx942"));
}

// From 590 on, these are what recorded nvidia-smi texts print.
TEST(NewestRuntimeTest, GivesWhatTheDriverSays) {
  EXPECT_EQ(NewestRuntime("nvidia", "550.54.14"), "12.4");
  EXPECT_EQ(NewestRuntime("nvidia", "550.127.05"), "12.4");
  EXPECT_EQ(NewestRuntime("nvidia", "555.42.02"), "12.5");
  EXPECT_EQ(NewestRuntime("nvidia", "565.57.01"), "12.7");
  EXPECT_EQ(NewestRuntime("nvidia", "590.48.01"), "13.1");
  EXPECT_EQ(NewestRuntime("nvidia", "595.71.05"), "13.2");
  EXPECT_EQ(NewestRuntime("nvidia", "610.57.04"), "13.3");
  EXPECT_EQ(NewestRuntime("amd", "6.8.5"), "6.4");
}

TEST(NewestRuntimeTest, SaysNothingOfDriversItDoesNotKnow) {
  EXPECT_EQ(NewestRuntime("nvidia", "999.1"), "");
  EXPECT_EQ(NewestRuntime("nvidia", "390.10"), "");
  EXPECT_EQ(NewestRuntime("amd", "6.19.14.31400000"), "");
  EXPECT_EQ(NewestRuntime("intel", "550.1"), "");
  EXPECT_EQ(NewestRuntime("nvidia", ""), "");
}

}  // namespace
}  // namespace bimetal::agent
