#include "kube/transport/line_splitter.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace bimetal::kube {
namespace {

using testing::ElementsAre;

TEST(LineSplitterTest, GivesTheSameLinesForEveryCut) {
  const std::string text = "a\xC3\xA9\n\xE2\x82\xAC\n\n\xF0\x9F\x98\x80 last\n";
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    LineSplitter splitter(100);
    std::vector<std::string> lines;
    const auto add = [&](std::string_view line) {
      lines.emplace_back(line);
      return true;
    };
    splitter.Feed(text.substr(0, cut), add);
    splitter.Feed(text.substr(cut), add);
    EXPECT_THAT(lines, ElementsAre("a\xC3\xA9", "\xE2\x82\xAC", "", "\xF0\x9F\x98\x80 last"));
    EXPECT_EQ(splitter.rest(), "");
  }
}

TEST(LineSplitterTest, StopsAtOnceWhenTold) {
  LineSplitter splitter(100);
  int lines = 0;
  EXPECT_EQ(splitter.Feed("a\nb\nc\n", [&](std::string_view) { return ++lines < 2; }),
            LineSplitter::Outcome::kStopped);
  EXPECT_EQ(lines, 2);
}

TEST(LineSplitterTest, RefusesALineThatIsTooLong) {
  const auto yes = [](std::string_view) { return true; };
  EXPECT_EQ(LineSplitter(4).Feed("12345", yes), LineSplitter::Outcome::kTooLong);
  EXPECT_EQ(LineSplitter(4).Feed("12345\n", yes), LineSplitter::Outcome::kTooLong);
  LineSplitter splitter(4);
  EXPECT_EQ(splitter.Feed("123", yes), LineSplitter::Outcome::kMore);
  EXPECT_EQ(splitter.Feed("45\n", yes), LineSplitter::Outcome::kTooLong);
}

}  // namespace
}  // namespace bimetal::kube
