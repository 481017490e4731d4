#include "agent/devices/labels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

namespace bimetal::agent {
namespace {

using testing::ElementsAre;

const std::set<std::string> kOddNames = {
    "NVIDIA TITAN X (Pascal)",
    "Example Accel [MI300X VF]",
    "Vendor/Family/Series/" + std::string(40, 'x') + "/Model/Number",
    "ends in a space ",
    "",
    "Gr\xc3\xa4phics 1",
    "...",
    "-a-",
    std::string("nul\0name", 8),
    std::string(63, 'a') + "-b"};

TEST(CleanLabelTest, GivesLegalLabelValuesForOddNames) {
  const std::regex legal("([A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?)?");
  for (const std::string& name : kOddNames) {
    const std::string label = CleanLabel(name);
    EXPECT_LE(label.size(), 63u) << name;
    EXPECT_TRUE(std::regex_match(label, legal)) << name << " -> " << label;
    EXPECT_EQ(CleanLabel(name), label);
    EXPECT_EQ(CleanLabel(label), label);
  }
}

TEST(CleanLabelTest, KeepsWhatIsLegal) {
  EXPECT_EQ(CleanLabel("NVIDIA TITAN X (Pascal)"), "NVIDIA-TITAN-X-Pascal");
  EXPECT_EQ(CleanLabel("Example Accel [MI300X VF]"), "Example-Accel-MI300X-VF");
  EXPECT_EQ(CleanLabel("ends in a space "), "ends-in-a-space");
  EXPECT_EQ(CleanLabel("Gr\xc3\xa4phics 1"), "Gr-phics-1");
  EXPECT_EQ(CleanLabel(""), "");
  EXPECT_EQ(CleanLabel("..."), "");
  EXPECT_EQ(CleanLabel("MI300X_A.1"), "MI300X_A.1");
}

TEST(LabelClashesTest, NamesTwoModelsThatCleanToOneLabel) {
  const auto clashes = LabelClashes({"Accel (X)", "Accel [X]", "Accel Y", ""});
  ASSERT_EQ(clashes.size(), 1u);
  EXPECT_THAT(clashes.at("Accel-X"), ElementsAre("Accel (X)", "Accel [X]"));
}

}  // namespace
}  // namespace bimetal::agent
